//! A browser, as far as logins go: it keeps cookies, sends them along, and follows one redirect when told to.

use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::Value;
use std::collections::BTreeMap;

pub struct Browser {
    client: Client,
    origin: String,
    pub cookies: BTreeMap<String, String>,
    /// Repeated with every call that changes something, once it is known.
    pub csrf_token: Option<String>,
}

impl Browser {
    pub fn new(service: &Service) -> Self {
        Self::at(&service.origin)
    }

    /// `origin` has no path.
    pub fn at(origin: &str) -> Self {
        Self {
            client: Client::new(&format!("{origin}/v1")),
            origin: origin.to_owned(),
            cookies: BTreeMap::new(),
            csrf_token: None,
        }
    }

    /// The same browser with one header more.
    pub fn with(&self, name: &str, value: &str) -> Self {
        Self {
            client: self.client.with(name, value),
            origin: self.origin.clone(),
            cookies: self.cookies.clone(),
            csrf_token: self.csrf_token.clone(),
        }
    }

    /// Its session as it is now, for calls that a client makes for it. It must not last until the session's token is replaced.
    pub fn as_client(&self) -> Client {
        let client = self.client.with("cookie", self.cookie_line());
        match &self.csrf_token {
            Some(token) => client.with("x-gateway-csrf-token", token),
            None => client,
        }
    }

    fn cookie_line(&self) -> String {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        cookies.join("; ")
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub async fn delete(&mut self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    /// Goes to where a redirect leads: a whole address of this service, or a path of it.
    pub async fn follow(&mut self, location: &str) -> Answer {
        let path = match location.find("/v1/") {
            Some(at) => &location[at + 3..],
            None => location,
        };
        self.get(path).await
    }

    /// Reads the token that calls repeat.
    pub async fn learn_csrf(&mut self) {
        let session = self.get("/auth/session").await;
        assert_eq!(session.status, 200, "{}", session.text());
        self.csrf_token = session.json()["csrf_token"].as_str().map(str::to_owned);
    }

    pub async fn send(&mut self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let mut request = self.client.request(method.clone(), path);
        if !self.cookies.is_empty() {
            request = request.header("cookie", self.cookie_line());
        }
        if let (Some(token), true) = (&self.csrf_token, method != Method::GET) {
            request = request.header("x-gateway-csrf-token", token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = whole(request).await;
        self.keep(&answer);
        answer
    }

    fn keep(&mut self, answer: &Answer) {
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Who is signed in.
    pub async fn user(&mut self) -> uuid::Uuid {
        self.get("/auth/session").await.json()["user"]["id"].as_str().unwrap().parse().unwrap()
    }

    /// The token of its session.
    pub fn session(&self) -> Option<&String> {
        self.cookies.get("gateway_session")
    }
}
