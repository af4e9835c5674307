//! An OIDC provider inside the test: discovery, token endpoint with PKCE, keys and what it says of people over real
//! sockets. Where a person would look at its pages, the test says who they are (`authorize`), honestly or not.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::Utc;
use harness::Issuer;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use url::Url;
use uuid::Uuid;

pub const CLIENT: &str = "gateway";
pub const SECRET: &str = "s3cr3t of the client";

pub struct Provider {
    pub issuer: String,
    pub site: Arc<Site>,
}

pub struct Site {
    pub keys: Issuer,
    issuer: String,
    codes: Mutex<HashMap<String, Grant>>,
    /// What it knows of whoever signed in last.
    known: Mutex<Value>,
    /// What it does otherwise than it should.
    pub habits: Mutex<Habits>,
    /// Forms that came to the token endpoint.
    pub redeemed: Mutex<Vec<BTreeMap<String, String>>>,
    /// How often its metadata were asked for.
    pub discovered: AtomicUsize,
}

/// Deviations, each off.
#[derive(Default)]
pub struct Habits {
    /// Metadata name this issuer.
    pub says_it_is: Option<String>,
    /// It promises to name itself in every answer (RFC 9207).
    pub promises_iss: bool,
    /// Claims of ID tokens that replace what they should be.
    pub claims: Option<Value>,
    /// How ID tokens come to be, instead of by its own key.
    pub forge: Option<fn(&Site, &Value) -> String>,
    /// What it says of people beyond ID tokens, which then hold no more than they must.
    pub user_info: Option<Value>,
}

struct Grant {
    challenge: String,
    redirect_uri: String,
    nonce: String,
    claims: Value,
}

impl Provider {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let site = Arc::new(Site {
            keys: Issuer::start().await,
            issuer: issuer.clone(),
            codes: Mutex::default(),
            known: Mutex::default(),
            habits: Mutex::default(),
            redeemed: Mutex::default(),
            discovered: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/token", post(token))
            .route("/userinfo", get(user_info))
            .with_state(site.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { issuer, site }
    }

    /// For `oidc` of auth settings.
    pub fn settings(&self) -> Value {
        json!({ "issuer": self.issuer, "client_id": CLIENT, "client_secret": SECRET })
    }

    /// Lets a person in who was sent to `location`; where the provider sends the browser.
    pub fn authorize(&self, location: &str, claims: Value) -> String {
        let asked = asked(location);
        let code = format!("code-{}", Uuid::new_v4());
        let grant = Grant {
            challenge: asked["code_challenge"].clone(),
            redirect_uri: asked["redirect_uri"].clone(),
            nonce: asked["nonce"].clone(),
            claims,
        };
        self.site.codes.lock().unwrap().insert(code.clone(), grant);
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &asked["state"])
            .append_pair("iss", &self.issuer)
            .append_pair("session_state", "of no interest");
        back.to_string()
    }

    /// A token of this provider's making, whatever it says.
    pub fn sign(&self, kind: &str, claims: &Value) -> String {
        self.site.keys.sign(&json!({ "alg": "RS256", "typ": kind, "kid": "k1" }), claims)
    }

    pub fn redeemed(&self) -> usize {
        self.site.redeemed.lock().unwrap().len()
    }
}

/// The parameters of an address.
pub fn asked(location: &str) -> HashMap<String, String> {
    Url::parse(location).unwrap().query_pairs().into_owned().collect()
}

/// The same address with another value of a parameter, or without it.
pub fn altered(location: &str, name: &str, value: Option<&str>) -> String {
    let mut url = Url::parse(location).unwrap();
    let others: Vec<(String, String)> = url.query_pairs().into_owned().filter(|(one, _)| one != name).collect();
    url.query_pairs_mut().clear().extend_pairs(others).extend_pairs(value.map(|value| (name, value)));
    url.to_string()
}

async fn metadata(State(site): State<Arc<Site>>) -> Json<Value> {
    let habits = site.habits.lock().unwrap();
    let issuer = &site.issuer;
    site.discovered.fetch_add(1, Relaxed);
    Json(json!({
        "issuer": habits.says_it_is.as_ref().unwrap_or(issuer),
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "end_session_endpoint": format!("{issuer}/logout"),
        "jwks_uri": site.keys.url(),
        "authorization_response_iss_parameter_supported": habits.promises_iss,
    }))
}

async fn token(State(site): State<Arc<Site>>, headers: HeaderMap, body: String) -> (StatusCode, Json<Value>) {
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    site.redeemed.lock().unwrap().push(form.clone());
    let refused = |code: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": code })));
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET))));
    if headers.get("authorization").is_none_or(|sent| sent != basic.as_str()) {
        return refused("invalid_client");
    }
    let given = |name: &str| form.get(name).cloned().unwrap_or_default();
    let Some(grant) = site.codes.lock().unwrap().remove(&given("code")) else { return refused("invalid_grant") };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(given("code_verifier")));
    if challenge != grant.challenge || given("redirect_uri") != grant.redirect_uri {
        return refused("invalid_grant");
    }
    *site.known.lock().unwrap() = grant.claims.clone();
    let habits = site.habits.lock().unwrap();
    let now = Utc::now().timestamp();
    let mut claims = json!({
        "iss": site.issuer, "aud": CLIENT, "nonce": grant.nonce, "iat": now, "exp": now + 300, "sid": "sid-1",
    });
    let said = match &habits.user_info {
        Some(_) => json!({ "sub": grant.claims["sub"] }),
        None => grant.claims,
    };
    for (name, value) in said.as_object().into_iter().chain(habits.claims.as_ref().and_then(Value::as_object)).flatten()
    {
        claims[name] = value.clone();
    }
    let id_token = match habits.forge {
        Some(forge) => forge(&site, &claims),
        None => site.keys.token(&claims),
    };
    let tokens = json!({ "id_token": id_token, "access_token": "access-1", "token_type": "Bearer" });
    (StatusCode::OK, Json(tokens))
}

async fn user_info(State(site): State<Arc<Site>>, headers: HeaderMap) -> (StatusCode, Json<Value>) {
    let habits = site.habits.lock().unwrap();
    let is_known = headers.get("authorization").is_some_and(|sent| sent == "Bearer access-1");
    if !is_known {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_token" })));
    }
    let said = habits.user_info.clone().unwrap_or_else(|| site.known.lock().unwrap().clone());
    (StatusCode::OK, Json(said))
}
