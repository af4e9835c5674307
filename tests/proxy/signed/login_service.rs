//! A login service on loopback: hands out one token at every address of clouds' logins, or fails, or falls silent.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::json;
use std::sync::{Arc, Mutex};

pub const TOKEN: &str = "ya29.granted-by-the-login-service";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Granting,
    Status(u16),
    /// Answers, but with no token.
    Rubbish,
    /// Takes questions and never answers them.
    Silent,
}

pub struct LoginService {
    site: Arc<Site>,
    port: u16,
}

struct Site {
    mood: Mutex<Mood>,
    asked: Mutex<Vec<(String, String)>>,
}

impl LoginService {
    pub async fn start() -> Self {
        let site = Arc::new(Site { mood: Mutex::new(Mood::Granting), asked: Mutex::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let router = Router::new().route("/{*path}", post(answer)).with_state(site.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { site, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn be(&self, mood: Mood) {
        *self.site.mood.lock().unwrap() = mood;
    }

    /// Paths and forms, in the order they came.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.site.asked.lock().unwrap().clone()
    }
}

async fn answer(State(site): State<Arc<Site>>, uri: Uri, form: String) -> Response {
    site.asked.lock().unwrap().push((uri.path().to_owned(), form));
    let mood = *site.mood.lock().unwrap();
    match mood {
        Mood::Granting => json!({ "access_token": TOKEN, "expires_in": 3600 }).to_string().into_response(),
        Mood::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Mood::Rubbish => "<html>\u{0}{\"access_token\":7".into_response(),
        Mood::Silent => std::future::pending().await,
    }
}
