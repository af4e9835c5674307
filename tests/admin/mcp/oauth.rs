//! People connecting to an MCP server that demands tokens: discovery, registration, consent, refresh and revocation; and
//! what comes of those who try to use any of it for something else.

use super::access::{everything, member, server};
use super::issuer::Issuer;
use crate::jobs;
use crate::service::Service;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness::client::whole;
use harness::{Answer, Client, until};
use http::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use shared::model::KeyKind;
use shared::secrets::seal::Keyring;
use std::collections::HashMap;
use url::Url;
use uuid::Uuid;

const CSRF: &str = "csrf-of-the-test";

struct Connecting {
    service: Service,
    issuer: Issuer,
    client: Client,
    server: String,
    /// For an admin on the same database that runs jobs.
    key: String,
}

/// What a browser keeps between pages.
#[derive(Default)]
struct Browser {
    cookies: Vec<String>,
}

impl Connecting {
    async fn start() -> Self {
        Self::start_with("oauth_auto", json!({})).await
    }

    async fn start_with(auth_type: &str, configurations: Value) -> Self {
        let issuer = Issuer::start().await;
        let key = format!("--gateway-master-key={}", Keyring::generate("test").unwrap().trim());
        let service = Service::start_with(&["--trusted-custom-hosts=127.0.0.1", &key]).await;
        let client = service.administrator();
        let body = json!({
            "name": "Owned", "slug": "owned", "url": issuer.mcp_url(), "auth_type": auth_type, "transport": "http",
            "configurations": configurations,
        });
        let made = client.post("/mcp-integrations", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let server = server(&service, &client, "owned", "srv").await;
        Self { service, issuer, client, server, key }
    }

    fn pages(&self) -> Client {
        Client::new(&self.service.origin)
    }

    /// The link's path and query; its host is the public one, which is not this test's.
    async fn link(&self, person: &Client) -> String {
        let link = person.get(&format!("{}/connect", self.server)).await;
        assert_eq!(link.status, 200, "{}", link.text());
        here(link.json()["authorization_url"].as_str().unwrap())
    }

    /// Signs a person in; the cookie of their browser.
    async fn sign_in(&self, person: Uuid) -> String {
        const SESSION: &str = "INSERT INTO sessions (organisation_id, user_id, hash, provider, csrf_token)
                               SELECT organisation_id, id, $2, 'link', $3 FROM users WHERE id = $1";
        let token = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let hash = Sha256::digest(token.as_bytes()).to_vec();
        let database = self.service.database.client().await;
        database.execute(SESSION, &[&person, &hash, &CSRF]).await.unwrap();
        format!("gateway_session={token}")
    }

    /// Signs the person of a link in and agrees on the page behind it; answers where the browser is sent.
    async fn agree(&self, browser: &mut Browser, link: &str) -> Answer {
        const WHOSE: &str = "SELECT user_id FROM mcp_oauth_states WHERE state_hash = $1";
        let state = query(link)["state"].clone();
        let database = self.service.database.client().await;
        let hash = Sha256::digest(state.as_bytes()).to_vec();
        let person = database.query_one(WHOSE, &[&hash]).await.unwrap().get(0);
        let session = self.sign_in(person).await;
        browser.cookies.retain(|cookie| !cookie.starts_with("gateway_session="));
        browser.cookies.push(session.clone());
        let signed_in = self.pages().with("cookie", session);
        let page = signed_in.get(link).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let form = signed_in.request(Method::POST, "/mcp-oauth/start").header("sec-fetch-site", "same-origin");
        let sent = whole(form.body(format!("state={state}&csrf_token={CSRF}"))).await;
        let cookie = sent.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
        browser.cookies.push(cookie);
        sent
    }

    /// What the authorisation server sends the browser back with.
    async fn granted(&self, sent: &Answer) -> String {
        assert_eq!(sent.status, 303, "{}", sent.text());
        let back = Client::new("").get(sent.header("location")).await;
        here(back.header("location"))
    }

    async fn come_back(&self, browser: &Browser, callback: &str) -> Answer {
        self.pages().with("cookie", browser.cookies.join("; ")).get(callback).await
    }

    /// The whole way of one person.
    async fn connect(&self, person: &Client) {
        let mut browser = Browser::default();
        let sent = self.agree(&mut browser, &self.link(person).await).await;
        let callback = self.granted(&sent).await;
        let done = self.come_back(&browser, &callback).await;
        assert_eq!(done.status, 200, "{}", done.text());
    }

    async fn connections(&self) -> i64 {
        self.client.get(&format!("{}/connections", self.server)).await.json()["total"].as_i64().unwrap()
    }

    /// Whether the server behind lets the person in.
    async fn is_let_in(&self, person: &Client) -> bool {
        let tested = person.post(&format!("{}/test", self.server), &json!({})).await.json();
        assert!(!tested.to_string().contains("t0ken"), "{tested}");
        tested["success"].as_bool().unwrap()
    }

    async fn run_job(&self) -> u64 {
        let app = jobs::admin_with(&self.service.database, &["--trusted-custom-hosts=127.0.0.1", &self.key]).await;
        jobs::run(&app, "refresh_mcp_tokens").await
    }
}

fn here(url: &str) -> String {
    let url = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

fn query(path: &str) -> HashMap<String, String> {
    Url::parse(&format!("http://x{path}")).unwrap().query_pairs().into_owned().collect()
}

#[tokio::test]
async fn a_person_connects_and_only_they_are_let_in() {
    let it = Connecting::start().await;
    let (ada, ada_client) = member(&it.service).await;
    let (_, bob_client) = member(&it.service).await;
    assert!(!it.is_let_in(&ada_client).await);
    it.connect(&ada_client).await;
    assert!(it.is_let_in(&ada_client).await);
    assert!(!it.is_let_in(&bob_client).await, "another's token is nobody's");
    assert!(!it.is_let_in(&it.client).await, "nor does an admin key use it");
    // What was registered, and what is shown of it.
    {
        let book = it.issuer.book();
        let asked = &book.registrations[0];
        assert_eq!(asked["redirect_uris"], json!(["http://localhost:8787/mcp-oauth/callback"]), "{asked}");
        assert_eq!(asked["token_endpoint_auth_method"], "client_secret_basic", "{asked}");
    }
    let info = it.client.get(&format!("{}/client-info", it.server)).await.json();
    assert_eq!(info, json!({ "client_id": "client-1", "client_secret": "cl*****t-1" }));
    let tokens = ada_client.get(&format!("{}/tokens", it.server)).await.json();
    assert!(tokens["access_token"].as_str().unwrap().starts_with("ac*****"), "{tokens}");
    // A person who is connected can ask what the server offers.
    let synced = it.service.person_client(it.service.home.workspace_id, it.service.home.owner_id).await;
    it.connect(&synced).await;
    assert_eq!(it.issuer.book().registrations.len(), 1, "one registration serves everybody");
    let synced = synced.post(&format!("{}/capabilities/sync", it.server), &json!({})).await.json();
    assert_eq!((&synced["success"], &synced["details"]["tools"]), (&json!(true), &json!(1)), "{synced}");
    // Ending it erases and revokes.
    let ended = it.client.delete(&format!("{}/connections?user_id={ada}", it.server)).await;
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert!(!it.is_let_in(&ada_client).await);
    let revoked = it.issuer.book().revoked.clone();
    assert!(revoked.iter().any(|token| token.starts_with("refresh-t0ken")), "{revoked:?}");
    let left = everything(&it.service).await;
    for secret in ["t0ken", "s3cret", "c0de"] {
        assert!(!left.contains(secret), "{secret} is stored or recorded in clear");
    }
    let trail = it.service.trail(it.service.home.organisation_id).await;
    let told = trail.iter().find(|row| row["uri"] == "/mcp-oauth/callback").unwrap_or_else(|| panic!("{trail:?}"));
    assert_eq!((&told["user_id"], &told["after"]["connected"]), (&json!(ada), &json!(true)), "{told}");
}

#[tokio::test]
async fn tokens_are_refreshed_ahead_by_the_job_and_when_they_are_needed() {
    const AGE: &str = "UPDATE mcp_connections SET refresh_due_at = now()";
    const END: &str = "UPDATE mcp_connections SET refresh_due_at = now(), expires_at = now() - interval '1 second'";
    let it = Connecting::start().await;
    let (_, person) = member(&it.service).await;
    it.connect(&person).await;
    assert_eq!(it.run_job().await, 0, "nothing is due yet");
    let before: Vec<String> = it.issuer.book().live.keys().cloned().collect();
    it.service.sql(AGE).await;
    assert_eq!(it.run_job().await, 1);
    let after: Vec<String> = it.issuer.book().live.keys().cloned().collect();
    assert_ne!(before, after);
    assert!(it.is_let_in(&person).await, "the new token is the one that is used");
    it.service.sql(END).await;
    assert!(it.is_let_in(&person).await, "one that is over is refreshed for whoever needs it");
    // A server in trouble is asked again later; the token is kept.
    it.issuer.book().is_in_trouble = true;
    it.service.sql(AGE).await;
    assert_eq!(it.run_job().await, 1);
    assert_eq!(it.run_job().await, 0, "it waits before it asks again");
    it.issuer.book().is_in_trouble = false;
    assert!(it.is_let_in(&person).await);
    // A refresh token that is not accepted any more ends it, once.
    it.issuer.book().live.clear();
    it.service.sql(END).await;
    let asked = it.issuer.book().grants.len();
    assert_eq!(it.run_job().await, 1);
    assert!(!it.is_let_in(&person).await);
    assert_eq!(it.issuer.book().grants.len(), asked + 1, "a dead token is not presented again");
    let listed = person.get(&format!("{}/connections", it.server)).await.json();
    assert_eq!(listed["data"][0]["connected"], false, "{listed}");
    it.connect(&person).await;
    assert!(it.is_let_in(&person).await, "connecting again mends it");
}

/// Many servers take a refresh token that comes again for theft.
#[tokio::test]
async fn tokens_that_could_not_be_stored_are_stored_later_and_not_asked_for_again() {
    const REFUSE: &str = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'not now'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE OF access_token ON mcp_connections FOR EACH ROW EXECUTE FUNCTION refuse()";
    let it = Connecting::start().await;
    let (_, person) = member(&it.service).await;
    it.connect(&person).await;
    let asked = it.issuer.book().grants.len();
    it.service.sql(REFUSE).await;
    it.service.sql("UPDATE mcp_connections SET refresh_due_at = now()").await;
    let app = jobs::admin_with(&it.service.database, &["--trusted-custom-hosts=127.0.0.1", &it.key]).await;
    jobs::run(&app, "refresh_mcp_tokens").await;
    assert_eq!(it.issuer.book().grants.len(), asked + 1, "they are got, and not stored");
    assert!(!it.is_let_in(&person).await, "the server has forgotten the token before");
    assert_eq!(jobs::run(&app, "refresh_mcp_tokens").await, 0, "the row is leased");
    it.service.sql("DROP TRIGGER refuse ON mcp_connections").await;
    until("they are stored", async || it.is_let_in(&person).await).await;
    assert_eq!(it.issuer.book().grants.len(), asked + 1, "nothing was asked for again");
}

#[tokio::test]
async fn a_way_that_somebody_else_began_or_finished_connects_nobody() {
    let it = Connecting::start().await;
    let (attacker_id, attacker) = member(&it.service).await;
    // Another site submits the form of a link that the attacker made.
    let link = it.link(&attacker).await;
    let state = query(&link)["state"].clone();
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        let form = it.pages().request(Method::POST, "/mcp-oauth/start").header(name, value);
        assert_eq!(whole(form.body(format!("state={state}"))).await.status, 400, "{name}");
    }
    let bare = it.pages().request(Method::POST, "/mcp-oauth/start").body(format!("state={state}"));
    assert_eq!(whole(bare).await.status, 400);
    let page = it.pages().with("cookie", it.sign_in(attacker_id).await).get(&link).await;
    assert!(page.text().contains("@home.test"), "the page says whom it connects: {}", page.text());
    assert_eq!(page.header("x-frame-options"), "DENY");
    // The attacker agrees in their own browser, and lures a victim to the rest: the victim's browser has no cookie.
    let mut own = Browser::default();
    let sent = it.agree(&mut own, &link).await;
    let callback = it.granted(&sent).await;
    assert_eq!(it.come_back(&Browser::default(), &callback).await.status, 400);
    assert_eq!(it.come_back(&own, &callback).await.status, 400, "and the state is used up by the attempt");
    // A way serves once.
    let mut browser = Browser::default();
    let link = it.link(&attacker).await;
    let sent = it.agree(&mut browser, &link).await;
    assert_eq!(it.pages().get(&link).await.status, 400, "a link that was followed shows nothing");
    let callback = it.granted(&sent).await;
    assert_eq!(it.connections().await, 0);
    assert_eq!(it.come_back(&browser, &callback).await.status, 200);
    assert_eq!(it.come_back(&browser, &callback).await.status, 400, "neither state nor code serve twice");
    assert_eq!(it.connections().await, 1);
    for callback in ["/mcp-oauth/callback", "/mcp-oauth/callback?state=x&code=y", "/mcp-oauth/start?state=x"] {
        assert_eq!(it.pages().get(callback).await.status, 400, "{callback}");
    }
}

/// What each caller holds before they open a person's link, and that it connects nothing for anybody but that person.
#[tokio::test]
async fn a_link_serves_only_its_person_while_they_are_signed_in() {
    let it = Connecting::start().await;
    let (eve_id, eve) = member(&it.service).await;
    let (bob, _) = member(&it.service).await;
    let stranger = it.service.organisation().await.owner_id;
    let link = it.link(&eve).await;
    let state = query(&link)["state"].clone();
    let eves_key = it.service.key_for(
        &it.service.home,
        it.service.home.workspace_id,
        eve_id,
        KeyKind::WorkspaceUser,
        &["mcp.invoke"],
    );
    let eves_key = eves_key.await.key;
    let session_of = async |person: Uuid| it.pages().with("cookie", it.sign_in(person).await);
    let hers = session_of(eve_id).await;
    for (holds, client, csrf, page_status, form_status) in [
        ("nothing", it.pages(), CSRF, 200, 403),
        ("an invented cookie", it.pages().with("cookie", "gateway_session=invented"), CSRF, 200, 403),
        ("her key and no session", it.pages().with_key(&eves_key), CSRF, 200, 403),
        ("a session of another member", session_of(bob).await, CSRF, 403, 400),
        ("a session of the owner", session_of(it.service.home.owner_id).await, CSRF, 403, 400),
        ("a session of another organisation", session_of(stranger).await, CSRF, 403, 400),
        ("her session and a guessed token", hers.clone(), "guessed", 200, 400),
        ("her session and no token", hers.clone(), "", 200, 400),
    ] {
        let page = client.get(&link).await;
        let form = client.request(Method::POST, "/mcp-oauth/start").header("sec-fetch-site", "same-origin");
        let answer = whole(form.body(format!("state={state}&csrf_token={csrf}"))).await;
        let statuses = (page.status.as_u16(), answer.status.as_u16());
        assert_eq!(statuses, (page_status, form_status), "{holds}: {} {}", page.text(), answer.text());
        let is_hers = holds.starts_with("her session");
        assert_eq!(page.text().contains("@home.test"), is_hers, "{holds}: the page names the person: {}", page.text());
        let offers_sign_in = page.text().contains("/v1/auth/login");
        assert_eq!(offers_sign_in, !is_hers && page_status == 200, "{holds}: {}", page.text());
        assert!(!answer.header("set-cookie").contains("mcp_oauth"), "{holds}: {:?}", answer.headers);
    }
    let form = hers.request(Method::POST, "/mcp-oauth/start").header("sec-fetch-site", "same-origin");
    let sent_on = whole(form.body(format!("state={state}&csrf_token={CSRF}"))).await;
    assert_eq!(sent_on.status, 303, "no attempt of others uses the link up: {}", sent_on.text());
    assert_eq!(it.connections().await, 0);
}

/// A provider's answer, or a page of a neighbouring host, can plant a cookie in a browser: it makes nobody connect for another.
#[tokio::test]
async fn a_way_that_somebody_else_began_connects_nobody_even_with_its_cookie() {
    let it = Connecting::start().await;
    let (_, eve) = member(&it.service).await;
    let (victim, _) = member(&it.service).await;
    for session in [it.sign_in(victim).await, String::new()] {
        let mut browser = Browser::default();
        let sent = it.agree(&mut browser, &it.link(&eve).await).await;
        let callback = it.granted(&sent).await;
        browser.cookies.retain(|cookie| !cookie.starts_with("gateway_session="));
        browser.cookies.push(session);
        let answer = it.come_back(&browser, &callback).await;
        assert!([400, 403].contains(&answer.status.as_u16()), "{} {}", answer.status, answer.text());
        assert_eq!(it.connections().await, 0);
    }
}

#[tokio::test]
async fn answers_of_another_issuer_refusals_and_late_answers_connect_nobody() {
    let it = Connecting::start().await;
    let (person_id, person) = member(&it.service).await;
    let issuer = it.issuer.book().issuer.clone();
    for (change, status) in [
        (("iss", Some("https://evil.example")), 400),
        (("iss", None), 400),
        (("code", Some("c0de-of-somebody-else")), 400),
        (("error", Some("access_denied")), 400),
        (("state", Some("another")), 400),
    ] {
        let mut browser = Browser::default();
        let sent = it.agree(&mut browser, &it.link(&person).await).await;
        let callback = it.granted(&sent).await;
        assert_eq!(query(&callback)["iss"], issuer);
        let mut pairs = query(&callback);
        match change {
            (name, Some(value)) => pairs.insert(name.into(), value.into()),
            (name, None) => pairs.remove(name),
        };
        let changed = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
        let answer = it.come_back(&browser, &format!("/mcp-oauth/callback?{changed}")).await;
        assert_eq!(answer.status, status, "{change:?}: {}", answer.text());
        assert!(!answer.text().contains("c0de") && !answer.text().contains("evil"), "{}", answer.text());
    }
    let ends = [
        "UPDATE mcp_oauth_states SET expires_at = now() - interval '1 second'".to_owned(),
        format!(
            "INSERT INTO mcp_user_access (organisation_id, server_id, user_id, enabled)
                 SELECT organisation_id, id, '{person_id}', false FROM mcp_servers"
        ),
    ];
    for sql in ends {
        let mut browser = Browser::default();
        let sent = it.agree(&mut browser, &it.link(&person).await).await;
        let callback = it.granted(&sent).await;
        it.service.sql(&sql).await;
        let answer = it.come_back(&browser, &callback).await;
        assert!([400, 403].contains(&answer.status.as_u16()), "{sql}: {}", answer.text());
    }
    assert_eq!(person.get(&format!("{}/connect", it.server)).await.status, 403, "who has no access cannot begin");
    assert_eq!(it.connections().await, 0);
}

#[tokio::test]
async fn metadata_that_leads_inside_or_to_another_server_is_not_followed() {
    let it = Connecting::start().await;
    let (_, person) = member(&it.service).await;
    let (mcp, issuer) = (it.issuer.mcp_url(), it.issuer.book().issuer.clone());
    let elsewhere =
        |resource: &str, issuer: &str| Some(json!({ "resource": resource, "authorization_servers": [issuer] }));
    let cases = [
        (elsewhere("https://other.example/mcp", &issuer), json!({})),
        (elsewhere(&mcp, "http://169.254.169.254"), json!({})),
        (elsewhere(&mcp, "https://10.0.0.1"), json!({})),
        (elsewhere(&mcp, "http://localhost"), json!({})),
        (Some(json!({ "resource": mcp })), json!({})),
        (None, json!({ "issuer": "https://other.example" })),
        (None, json!({ "token_endpoint": "http://169.254.169.254/latest/meta-data" })),
        (None, json!({ "registration_endpoint": "https://192.168.0.1/register" })),
        (None, json!({ "authorization_endpoint": "javascript:alert(1)" })),
        (None, json!({ "code_challenge_methods_supported": ["plain"] })),
        (None, json!({ "padding": "x".repeat(200_000) })),
    ];
    for (resource, metadata) in cases {
        it.issuer.book().resource_metadata = resource.clone();
        it.issuer.book().metadata = metadata.clone();
        let refused = person.get(&format!("{}/connect", it.server)).await;
        assert_eq!(refused.status, 400, "{resource:?} {metadata}: {}", refused.text());
        assert!(it.issuer.book().registrations.is_empty(), "{resource:?} {metadata}");
    }
    it.issuer.book().resource_metadata = None;
    it.issuer.book().metadata = json!({});
    it.connect(&person).await;
}

#[tokio::test]
async fn client_credentials_serve_everybody_and_are_renewed() {
    let told = json!({ "oauth_metadata": { "client_id": "made-by-hand", "client_secret": "client-s3cret-by-hand" } });
    let it = Connecting::start_with("oauth_client_credentials", told).await;
    let tested = it.client.post("/mcp-integrations/owned/test", &json!({})).await.json();
    assert_eq!(tested["success"], true, "{tested}");
    let synced = it.client.post("/mcp-integrations/owned/sync", &json!({})).await.json();
    assert_eq!(synced["details"]["tools"], 1, "{synced}");
    assert_eq!(it.issuer.book().grants, ["client_credentials"], "one token serves until it is due");
    it.service.sql("UPDATE mcp_clients SET refresh_due_at = now()").await;
    assert_eq!(it.run_job().await, 1);
    assert_eq!(it.issuer.book().grants.len(), 2);
    assert!(it.is_let_in(&it.client).await);
    let read = it.client.get("/mcp-integrations/owned").await.text();
    let left = everything(&it.service).await;
    assert!(!read.contains("s3cret") && !left.contains("s3cret") && !left.contains("t0ken"));
    let (_, person) = member(&it.service).await;
    assert_eq!(person.get(&format!("{}/connect", it.server)).await.status, 400, "nobody connects by themselves");
    for wrong in [json!({ "token_endpoint": "http://169.254.169.254/" }), json!("text")] {
        let change = json!({ "configurations": { "oauth_metadata": wrong } });
        assert_eq!(it.client.put("/mcp-integrations/owned", &change).await.status, 400, "{change}");
    }
}
