//! What is sent to an authorisation server, and which answers are believed.

use super::super::discovery::AuthorizationServer;
use super::*;

fn client(names_issuer: bool) -> OAuthClient {
    OAuthClient {
        id: Uuid::nil(),
        server: AuthorizationServer {
            issuer: "https://as.example".into(),
            authorization_endpoint: Some("https://as.example/auth?tenant=1".into()),
            token_endpoint: "https://as.example/token".into(),
            registration_endpoint: None,
            revocation_endpoint: None,
            auth_methods: Vec::new(),
            names_issuer,
        },
        resource: "https://m.example/mcp".into(),
        scope: Some("a offline_access".into()),
        client_id: "c&1".into(),
        client_secret: None,
        auth_method: "none".into(),
        redirect_uri: Some("https://gw.example/mcp-oauth/callback".into()),
        secret_expires_at: None,
    }
}

#[test]
fn the_person_is_sent_with_everything_that_binds_the_answer() {
    let url = authorization_url(&client(false), "st4te", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").unwrap();
    for part in [
        "https://as.example/auth?tenant=1&",
        "client_id=c%261",
        "redirect_uri=https%3A%2F%2Fgw.example%2Fmcp-oauth%2Fcallback",
        "state=st4te",
        // The example of RFC 7636.
        "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method=S256",
        "resource=https%3A%2F%2Fm.example%2Fmcp",
        "prompt=consent",
    ] {
        assert!(url.contains(part), "{part} in {url}");
    }
    assert!(!url.contains("dBjftJeZ4CVP"), "the verifier stays here: {url}");
}

#[test]
fn an_answer_of_another_issuer_is_refused() {
    for (names_issuer, issuer, expected) in [
        (false, None, true),
        (false, Some("https://as.example"), true),
        (false, Some("https://evil.example"), false),
        (true, None, false),
        (true, Some("https://as.example"), true),
        (true, Some(""), false),
    ] {
        assert_eq!(check_issuer(&client(names_issuer), issuer).is_ok(), expected, "{names_issuer} {issuer:?}");
    }
}
