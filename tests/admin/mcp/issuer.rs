//! An authorisation server and an MCP server that demands its tokens, each on a port of its own. The authorisation server
//! is strict where attacks are: codes and refresh tokens serve once, the code verifier, the redirect address and the
//! resource must be those that the code was given for.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;

type Pairs = HashMap<String, String>;

/// What the servers remember, and how they are told to behave.
#[derive(Default)]
pub struct Book {
    pub issuer: String,
    pub mcp: String,
    /// Fields over the usual metadata of the authorisation server.
    pub metadata: Value,
    /// The whole metadata of the MCP server, instead of the usual.
    pub resource_metadata: Option<Value>,
    pub registrations: Vec<Value>,
    codes: HashMap<String, Pairs>,
    /// Access tokens that the MCP server accepts, each with the refresh token that came with it.
    pub live: HashMap<String, String>,
    pub revoked: Vec<String>,
    pub grants: Vec<String>,
    /// Whether token requests fail as if the server were in trouble.
    pub is_in_trouble: bool,
    count: usize,
}

#[derive(Clone, Default)]
pub struct Issuer(Arc<Mutex<Book>>);

impl Issuer {
    pub async fn start() -> Self {
        let issuer = Self::default();
        let [here, there] =
            [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
        issuer.book().issuer = format!("http://{}", here.local_addr().unwrap());
        issuer.book().mcp = format!("http://{}", there.local_addr().unwrap());
        let authorisation = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(issuer.clone());
        let mcp = Router::new()
            .route("/mcp", post(answer))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(here, authorisation).await.unwrap() });
        tokio::spawn(async move { axum::serve(there, mcp).await.unwrap() });
        issuer
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap()
    }

    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.book().mcp)
    }
}

async fn metadata(State(issuer): State<Issuer>) -> Json<Value> {
    let book = issuer.book();
    let at = |path: &str| format!("{}/{path}", book.issuer);
    let mut metadata = json!({
        "issuer": book.issuer, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "registration_endpoint": at("register"), "revocation_endpoint": at("revoke"),
        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        "authorization_response_iss_parameter_supported": true,
    });
    for (name, value) in book.metadata.as_object().into_iter().flatten() {
        metadata[name] = value.clone();
    }
    Json(metadata)
}

async fn register(State(issuer): State<Issuer>, Json(asked): Json<Value>) -> Response {
    let mut book = issuer.book();
    book.registrations.push(asked);
    let n = book.registrations.len();
    let made = json!({ "client_id": format!("client-{n}"), "client_secret": format!("client-s3cret-{n}") });
    (StatusCode::CREATED, Json(made)).into_response()
}

/// Whoever comes has agreed already.
async fn authorize(State(issuer): State<Issuer>, Query(asked): Query<Pairs>) -> Redirect {
    let mut book = issuer.book();
    book.count += 1;
    let code = format!("c0de-{}", book.count);
    let back = format!("{}?code={code}&state={}&iss={}", asked["redirect_uri"], asked["state"], book.issuer);
    book.codes.insert(code, asked);
    Redirect::to(&back)
}

async fn token(State(issuer): State<Issuer>, headers: HeaderMap, body: Bytes) -> Response {
    let form = pairs(&body);
    let mut book = issuer.book();
    let refuse = |code: &str| {
        let words = json!({ "error": code, "error_description": format!("{form:?}") });
        (StatusCode::BAD_REQUEST, Json(words)).into_response()
    };
    book.grants.push(form["grant_type"].clone());
    if book.is_in_trouble {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let Some(client) = client_of(&headers) else { return refuse("invalid_client") };
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some(asked) = book.codes.remove(&form["code"]) else { return refuse("invalid_grant") };
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            let is_same = |name: &str| form.get(name) == asked.get(name);
            if asked["client_id"] != client
                || asked["code_challenge"] != challenge
                || asked["code_challenge_method"] != "S256"
                || !is_same("redirect_uri")
                || !is_same("resource")
            {
                return refuse("invalid_grant");
            }
        }
        "refresh_token" => {
            let old = book.live.iter().find(|(_, refresh)| **refresh == form["refresh_token"]);
            let Some(old) = old.map(|(access, _)| access.clone()) else { return refuse("invalid_grant") };
            book.live.remove(&old);
        }
        "client_credentials" => {}
        _ => return refuse("unsupported_grant_type"),
    }
    if form.get("resource") != Some(&format!("{}/mcp", book.mcp)) {
        return refuse("invalid_target");
    }
    book.count += 1;
    let (access, refresh) = (format!("access-t0ken-{}", book.count), format!("refresh-t0ken-{}", book.count));
    book.live.insert(access.clone(), refresh.clone());
    Json(json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600 }))
        .into_response()
}

fn pairs(body: &[u8]) -> Pairs {
    url::form_urlencoded::parse(body).into_owned().collect()
}

fn client_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let pair = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
    let (client, secret) = pair.split_once(':')?;
    (secret.starts_with("client-s3cret")).then(|| client.to_owned())
}

async fn revoke(State(issuer): State<Issuer>, body: Bytes) -> StatusCode {
    let form = pairs(&body);
    let mut book = issuer.book();
    let token = form["token"].clone();
    book.live.retain(|access, refresh| *access != token && *refresh != token);
    book.revoked.push(token);
    StatusCode::OK
}

async fn resource(State(issuer): State<Issuer>) -> Json<Value> {
    let book = issuer.book();
    let usual = || json!({ "resource": format!("{}/mcp", book.mcp), "authorization_servers": [book.issuer] });
    Json(book.resource_metadata.clone().unwrap_or_else(usual))
}

async fn answer(State(issuer): State<Issuer>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let book = issuer.book();
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !sent.strip_prefix("Bearer ").is_some_and(|token| book.live.contains_key(token)) {
        let at = format!("{}/.well-known/oauth-protected-resource/mcp", book.mcp);
        let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{at}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], sent.to_owned()).into_response();
    }
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "owned", "version": "1" },
        }),
        _ => json!({ "tools": [{ "name": "mine", "inputSchema": { "type": "object" } }] }),
    };
    Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response()
}
