//! What discovery believes of the documents that strangers serve.

use super::*;
use serde_json::json;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn a_challenge_says_where_the_metadata_is() {
    for (challenge, expected) in [
        (r#"Bearer resource_metadata="https://m.example/x""#, Some("https://m.example/x")),
        (
            r#"bearer error="invalid_token", resource_metadata="https://m.example/x", scope="a""#,
            Some("https://m.example/x"),
        ),
        ("Bearer resource_metadata=https://m.example/x, a=b", Some("https://m.example/x")),
        (r#"Basic resource_metadata="https://m.example/x""#, None),
        (r#"Bearer resource_metadata="""#, None),
        ("Bearer", None),
        ("", None),
    ] {
        assert_eq!(metadata_in_challenge(challenge).as_deref(), expected, "{challenge}");
    }
}

#[test]
fn documents_are_looked_for_where_the_standards_say() {
    assert_eq!(
        resource_candidates(&url("https://m.example/a/mcp/")),
        [
            "https://m.example/.well-known/oauth-protected-resource/a/mcp",
            "https://m.example/.well-known/oauth-protected-resource",
        ]
    );
    assert_eq!(
        issuer_candidates("https://as.example/t1").unwrap(),
        [
            "https://as.example/.well-known/oauth-authorization-server/t1",
            "https://as.example/.well-known/openid-configuration/t1",
            "https://as.example/t1/.well-known/openid-configuration",
        ]
    );
    for issuer in ["as.example", "javascript:alert(1)", "https://as.example/?x", ""] {
        assert!(issuer_candidates(issuer).is_err(), "{issuer}");
    }
}

#[test]
fn a_resource_is_believed_about_itself_alone() {
    let server = url("https://m.example/a/mcp");
    for (resource, expected) in [
        ("https://m.example/a/mcp", true),
        ("https://m.example/a", true),
        ("https://m.example", true),
        ("https://m.example/", true),
        ("https://m.example/b", false),
        ("https://m.example/a/m", false),
        ("https://m.example:444/a/mcp", false),
        ("http://m.example/a/mcp", false),
        ("https://evil.example/a/mcp", false),
        ("a", false),
    ] {
        let document = json!({ "resource": resource, "authorization_servers": ["https://as.example"] });
        assert_eq!(read_resource(&server, &document).is_ok(), expected, "{resource}");
    }
    let read = read_resource(
        &server,
        &json!({ "resource": "https://m.example/a", "authorization_servers": ["https://as.example"], "scopes_supported": ["a", "b"] }),
    );
    assert_eq!(read.unwrap().scope.as_deref(), Some("a b"));
    assert!(
        read_resource(&server, &json!({ "resource": "https://m.example/a", "authorization_servers": [] })).is_err()
    );
}

#[test]
fn metadata_of_another_issuer_without_pkce_or_with_addresses_inside_is_refused() {
    let guard = Guard::new(&[], &[]).unwrap();
    let good = json!({
        "issuer": "https://as.example", "authorization_endpoint": "https://as.example/auth",
        "token_endpoint": "https://as.example/token", "code_challenge_methods_supported": ["S256"],
    });
    assert!(read_server(&guard, "https://as.example", &good).is_ok());
    assert!(read_server(&guard, "https://as.example/", &good).is_ok());
    for (field, value) in [
        ("issuer", json!("https://other.example")),
        ("issuer", json!(null)),
        ("code_challenge_methods_supported", json!(["plain"])),
        ("code_challenge_methods_supported", json!(null)),
        ("token_endpoint", json!(null)),
        ("token_endpoint", json!("http://169.254.169.254/latest")),
        ("token_endpoint", json!("https://10.0.0.1/token")),
        ("token_endpoint", json!("http://as.example/token")),
        ("registration_endpoint", json!("https://localhost/register")),
        ("revocation_endpoint", json!("file:///etc/passwd")),
        ("authorization_endpoint", json!("javascript:alert(1)")),
    ] {
        let mut document = good.clone();
        document[field] = value.clone();
        assert!(read_server(&guard, "https://as.example", &document).is_err(), "{field} {value}");
    }
}
