//! A small HTTP client that speaks for one key.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

/// Sends what it is told with the key of one caller. Redirects are never followed: the gateway sends none.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: String,
    headers: Vec<(String, String)>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Client {
    /// `base_url` ends in `/v1`; paths are relative to it.
    pub fn new(base_url: &str) -> Self {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        Self { http: http.expect("a plain client can be built"), base_url: base_url.to_owned(), headers: Vec::new() }
    }

    /// The same client with one header more.
    pub fn with(&self, name: &str, value: impl Into<String>) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.into()));
        client
    }

    /// The same caller at another address, which ends in `/v1`.
    pub fn at(&self, base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), ..self.clone() }
    }

    /// The same client as another caller.
    pub fn with_key(&self, key: &str) -> Self {
        self.with("x-gateway-api-key", key)
    }

    /// Whether both send the same credentials and everything else that they say with each call.
    pub fn is_same_caller(&self, other: &Self) -> bool {
        self.headers == other.headers
    }

    /// A request with this client's headers, for whatever the short forms do not cover.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base_url));
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    pub async fn get(&self, path: &str) -> Answer {
        whole(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        whole(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        whole(self.request(Method::POST, path).json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        whole(self.request(Method::PUT, path).json(body)).await
    }
}

impl Answer {
    /// The body as JSON; panics with what came instead.
    pub fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{} with a body that is no JSON ({error}): {}", self.status, self.text()),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header as text; empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Sends a request and reads the whole answer.
pub async fn whole(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("the request can be sent");
    let (status, headers) = (response.status(), response.headers().clone());
    // Of a stream that never ends there is only a beginning.
    if status.is_success() && response.url().path().ends_with("/logs/tail") {
        return Answer { status, headers, body: Default::default() };
    }
    Answer { status, headers, body: response.bytes().await.expect("the answer is whole") }
}
