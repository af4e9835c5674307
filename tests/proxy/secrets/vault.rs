//! A secret manager on loopback that speaks as HashiCorp Vault does: it gives its secret to one token, counts who
//! asks, and fails, denies or falls silent on demand.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub const TOKEN: &str = "hvs.the-token-of-the-gateway";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Serving,
    Status(u16),
    /// Takes questions and never answers them.
    Silent,
    /// Sends who asks to another place.
    Redirecting,
}

pub struct Vault {
    site: Arc<Site>,
    port: u16,
}

struct Site {
    mood: Mutex<Mood>,
    entries: Mutex<Value>,
    asked: AtomicUsize,
    waiting: AtomicUsize,
}

impl Vault {
    /// Its secrets have these entries.
    pub async fn start(entries: Value) -> Self {
        let site = Arc::new(Site {
            mood: Mutex::new(Mood::Serving),
            entries: Mutex::new(entries),
            asked: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        });
        // Of any address of this machine, so that a test can ask for one that is not trusted.
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let router = Router::new().route("/v1/{*path}", get(answer)).with_state(site.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { site, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where the rules of the gateway do not let it go.
    pub fn untrusted_url(&self) -> String {
        format!("http://127.0.0.2:{}", self.port)
    }

    pub fn hold(&self, entries: Value) {
        *self.site.entries.lock().unwrap() = entries;
    }

    pub fn be(&self, mood: Mood) {
        *self.site.mood.lock().unwrap() = mood;
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.site.asked.load(Ordering::SeqCst)
    }

    /// How many of them it never answered.
    pub fn waiting(&self) -> usize {
        self.site.waiting.load(Ordering::SeqCst)
    }
}

/// The second version of the key-value engine.
async fn answer(State(site): State<Arc<Site>>, Path(path): Path<String>, headers: HeaderMap) -> Response {
    site.asked.fetch_add(1, Ordering::SeqCst);
    let mood = *site.mood.lock().unwrap();
    match mood {
        Mood::Serving => {}
        Mood::Status(status) => return StatusCode::from_u16(status).unwrap().into_response(),
        Mood::Silent => {
            site.waiting.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        Mood::Redirecting => return (StatusCode::FOUND, [("location", "/v1/secret/data/elsewhere")]).into_response(),
    }
    if headers.get("x-vault-token").is_none_or(|token| token != TOKEN) {
        return (StatusCode::FORBIDDEN, json!({ "errors": ["permission denied"] }).to_string()).into_response();
    }
    if !path.starts_with("secret/data/") {
        return (StatusCode::NOT_FOUND, json!({ "errors": [] }).to_string()).into_response();
    }
    let entries = site.entries.lock().unwrap().clone();
    let body = json!({ "data": { "data": entries, "metadata": { "version": 1, "destroyed": false } } });
    body.to_string().into_response()
}
