//! How people sign in: sessions, one-time links, OIDC, and the attacks on each, by name.

mod attacks;
pub mod browser;
mod flood;
mod links;
mod methods;
mod oidc;
pub mod provider;
mod provider_peer;
mod provisioning;
mod refused;
mod session_keys;
mod sessions;
mod tenancy;

use crate::service::Service;
use browser::Browser;
use provider::Provider;
use serde_json::{Value, json};
use uuid::Uuid;

/// Identity providers of tests are on loopback, in the clear.
const TRUSTING: &str = "--trusted-custom-hosts=127.0.0.1";
pub const AUTH_SETTINGS: &str = "/admin/organisation/auth-settings";

/// A service whose first organisation signs in at the provider, and has proved `home.test`.
pub async fn started(more: &[&str]) -> (Service, Provider) {
    let (service, provider) = (Service::start_with(&[&[TRUSTING], more].concat()).await, Provider::start().await);
    set_up(&service, json!({ "oidc": provider.settings() })).await;
    prove(&service, service.home.organisation_id, "home.test").await;
    (service, provider)
}

/// Changes the auth settings of the first organisation.
pub async fn set_up(service: &Service, change: Value) {
    let answer = service.administrator().put(AUTH_SETTINGS, &change).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// The domain is the organisation's, as the operator says.
async fn prove(service: &Service, organisation: Uuid, domain: &str) {
    const PROVE: &str = "INSERT INTO verified_domains (organisation_id, domain, method) VALUES ($1, $2, 'operator')";
    service.database.client().await.execute(PROVE, &[&organisation, &domain]).await.unwrap();
}

/// Begins a login of the first organisation in this browser; where it was sent.
async fn begun(service: &Service, browser: &mut Browser) -> String {
    let answer = browser.get(&format!("/auth/login?organisation={}", service.home.organisation_id)).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.header("location").to_owned()
}

/// Signs somebody in at the provider with these claims; what the callback answered.
pub async fn signed_in(
    service: &Service,
    provider: &Provider,
    browser: &mut Browser,
    claims: Value,
) -> harness::Answer {
    let location = begun(service, browser).await;
    let callback = provider.authorize(&location, claims);
    browser.follow(&callback).await
}

/// The claims of somebody whose address the provider vouches for.
pub fn person(subject: &str, email: &str) -> Value {
    json!({ "sub": subject, "email": email, "email_verified": true, "given_name": "Ada", "family_name": "L" })
}

/// Signs a person in by a link, as the operator's command makes them.
pub async fn by_link(service: &Service, user: Uuid) -> Browser {
    let token = link(service, service.home.organisation_id, user).await;
    let mut browser = Browser::new(service);
    let answer = browser.post("/auth/sessions", &json!({ "token": token })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    browser.learn_csrf().await;
    browser
}

/// The owner says that the provider may sign them in.
async fn allow_owner(service: &Service, provider: &Provider) {
    let mut owner = by_link(service, service.home.owner_id).await;
    let answer = owner.post("/auth/owner-links", &json!({ "issuer": provider.issuer })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// A link for a person, straight into the database.
async fn link(service: &Service, organisation: Uuid, user: Uuid) -> String {
    const INSERT: &str = "INSERT INTO login_links (hash, organisation_id, user_id, expires_at)
        VALUES ($1, $2, $3, now() + interval '10 minutes')";
    let token = shared::identity::api_key::generate("");
    let hash = shared::identity::api_key::KeyHash::from_key(token.as_bytes()).0.to_vec();
    service.database.client().await.execute(INSERT, &[&hash, &organisation, &user]).await.unwrap();
    token
}

/// Rows of the audit trail about sessions, oldest first.
async fn trail(service: &Service) -> Vec<Value> {
    let all = service.trail(service.home.organisation_id).await;
    all.into_iter().filter(|row| row["resource_type"] == "sessions").collect()
}
