//! MCP clients that log in with a browser: what a person agrees to, what the client gets, and who gets nothing.

use super::access::{member, server};
use super::{register as register_integration, start};
use crate::service::Service;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness::client::whole;
use harness::{Answer, Client};
use http::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CALLBACK: &str = "http://127.0.0.1:7777/callback";
const CSRF: &str = "csrf-of-the-test";

fn form(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

struct McpLogin {
    service: Service,
    client_id: String,
}

impl McpLogin {
    async fn start() -> (Self, Client) {
        let (service, client, origin) = start().await;
        register_integration(&client, &origin, "plain").await;
        server(&service, &client, "plain", "tools").await;
        let registered = Client::new(&service.origin)
            .post("/oauth/register", &json!({ "client_name": "Editor <b>", "redirect_uris": [CALLBACK] }))
            .await;
        assert_eq!(registered.status, 201, "{}", registered.text());
        let client_id = registered.json()["client_id"].as_str().unwrap().to_owned();
        (Self { service, client_id }, client)
    }

    fn pages(&self) -> Client {
        Client::new(&self.service.origin)
    }

    /// What the client opens in the browser.
    fn request(&self) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        form(&[
            ("response_type", "code"),
            ("client_id", self.client_id.as_str()),
            ("redirect_uri", CALLBACK),
            ("state", "st"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", "http://localhost:8787/tools/mcp"),
        ])
    }

    /// The browser of somebody who is signed in.
    async fn browser(&self, person: Uuid) -> Client {
        const SESSION: &str = "INSERT INTO sessions (organisation_id, user_id, hash, provider, csrf_token)
                               VALUES ($1, $2, $3, 'link', $4)";
        let token = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let hash = Sha256::digest(token.as_bytes()).to_vec();
        let database = self.service.database.client().await;
        database.execute(SESSION, &[&self.service.home.organisation_id, &person, &hash, &CSRF]).await.unwrap();
        self.pages().with("cookie", format!("gateway_session={token}"))
    }

    async fn decide(&self, browser: &Client, choice: &str, csrf: &str, site: &str) -> Answer {
        let body = form(&[("request", &self.request()), ("csrf_token", csrf), ("choice", choice)]);
        whole(browser.request(Method::POST, "/oauth/authorize").header("sec-fetch-site", site).body(body)).await
    }

    /// A code for somebody who agrees.
    async fn code(&self, browser: &Client) -> String {
        let sent = self.decide(browser, "allow", CSRF, "same-origin").await;
        assert_eq!(sent.status, 303, "{}", sent.text());
        let url = Url::parse(sent.header("location")).unwrap();
        assert!(url.as_str().starts_with(CALLBACK), "{url}");
        let pair = |name: &str| url.query_pairs().find(|(one, _)| one == name).map(|(_, value)| value.into_owned());
        assert_eq!((pair("state").as_deref(), pair("iss").as_deref()), (Some("st"), Some("http://localhost:8787")));
        pair("code").unwrap_or_else(|| panic!("no code: {url}"))
    }

    async fn redeem(&self, code: &str, change: (&str, &str)) -> Answer {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", self.client_id.as_str()),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        pairs.retain(|(name, _)| *name != change.0);
        pairs.push(change);
        whole(self.pages().request(Method::POST, "/oauth/token").body(form(&pairs))).await
    }
}

#[tokio::test]
async fn a_client_gets_a_key_of_the_person_that_only_invokes() {
    let (it, _) = McpLogin::start().await;
    let metadata = it.pages().get("/.well-known/oauth-authorization-server").await.json();
    assert_eq!(metadata["issuer"], "http://localhost:8787", "{metadata}");
    let (person, _) = member(&it.service).await;
    let page = it.pages().get(&format!("/oauth/authorize?{}", it.request())).await;
    assert!(page.text().contains("/v1/auth/login"), "a stranger signs in first: {}", page.text());
    let browser = it.browser(person).await;
    let page = browser.get(&format!("/oauth/authorize?{}", it.request())).await;
    assert_eq!((page.status.as_u16(), page.header("x-frame-options")), (200, "DENY"), "{}", page.text());
    assert!(page.text().contains("Editor &lt;b&gt;") && page.text().contains("127.0.0.1"), "{}", page.text());
    let code = it.code(&browser).await;
    let got = it.redeem(&code, ("x", "")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!((&got.json()["token_type"], &got.json()["scope"]), (&json!("Bearer"), &json!("mcp.invoke")));
    assert!((1..=8 * 3600).contains(&got.json()["expires_in"].as_i64().unwrap()), "{}", got.text());
    let token = got.json()["access_token"].as_str().unwrap().to_owned();
    let client = it.service.client().with("authorization", format!("Bearer {token}"));
    let check = client.get("/mcp-servers/tools/user-access/check").await;
    assert_eq!(check.json(), json!({ "has_access": true }));
    assert_eq!(client.get("/mcp-servers/tools").await.status, 403, "it invokes and nothing else");
    assert_eq!(it.redeem(&code, ("x", "")).await.json()["error"], "invalid_grant", "a code serves once");
    let trail = it.service.trail(it.service.home.organisation_id).await;
    let made = trail.iter().find(|row| row["uri"] == "/oauth/token").unwrap_or_else(|| panic!("{trail:?}"));
    assert_eq!((&made["user_id"], &made["resource_type"]), (&json!(person), &json!("api_keys")), "{made}");
    assert!(!json!(trail).to_string().contains(&token));
}

#[tokio::test]
async fn a_code_is_of_no_use_to_anybody_else() {
    let (it, _) = McpLogin::start().await;
    let (person, _) = member(&it.service).await;
    let browser = it.browser(person).await;
    let other = json!({ "client_name": "Other", "redirect_uris": [CALLBACK] });
    let other = it.pages().post("/oauth/register", &other).await.json()["client_id"].as_str().unwrap().to_owned();
    for change in [
        ("code_verifier", "another-verifier-another-verifier-another-ver"),
        ("client_id", other.as_str()),
        ("redirect_uri", "http://127.0.0.1:7777/other"),
        ("code", "guessed"),
    ] {
        let code = it.code(&browser).await;
        assert_eq!(it.redeem(&code, change).await.json()["error"], "invalid_grant", "{change:?}");
        if change.0 != "code" {
            assert_eq!(it.redeem(&code, ("x", "")).await.json()["error"], "invalid_grant", "{change:?} uses it up");
        }
    }
    for (change, error) in
        [(("grant_type", "refresh_token"), "unsupported_grant_type"), (("code_verifier", ""), "invalid_request")]
    {
        assert_eq!(it.redeem("x", change).await.json()["error"], error);
    }
    // Whoever leaves between agreeing and fetching leaves nothing behind.
    let code = it.code(&browser).await;
    it.service.sql(&format!("UPDATE users SET status = 'archived' WHERE id = '{person}'")).await;
    assert_eq!(it.redeem(&code, ("x", "")).await.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn other_sites_strangers_and_people_without_access_agree_to_nothing() {
    let (it, client) = McpLogin::start().await;
    let (person, _) = member(&it.service).await;
    let browser = it.browser(person).await;
    assert_eq!(it.decide(&browser, "allow", "guessed", "same-origin").await.status, 403);
    assert_eq!(it.decide(&browser, "allow", CSRF, "cross-site").await.status, 403);
    assert_eq!(it.decide(&it.pages(), "allow", CSRF, "same-origin").await.status, 403, "nobody is signed in");
    let refused = it.decide(&browser, "refuse", CSRF, "same-origin").await;
    assert!(refused.header("location").contains("error=access_denied"), "{}", refused.header("location"));
    let deny = json!({ "default_user_access": "deny" });
    assert_eq!(client.put("/mcp-servers/tools/user-access", &deny).await.status, 200);
    assert_eq!(browser.get(&format!("/oauth/authorize?{}", it.request())).await.status, 403);
    let sent = it.decide(&browser, "allow", CSRF, "same-origin").await;
    assert!(sent.header("location").contains("error=invalid_target"), "{}", sent.header("location"));
    for bad in ["", "client_id=mcp_x", "client_id=mcp_x&redirect_uri=https://evil.example"] {
        let answer = browser.get(&format!("/oauth/authorize?{bad}")).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (400, ""), "{bad}");
    }
    for wrong in [json!({}), json!({ "redirect_uris": ["javascript:alert(1)"] }), Value::Null] {
        assert_eq!(it.pages().post("/oauth/register", &wrong).await.status, 400, "{wrong}");
    }
}
