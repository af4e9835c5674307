//! The mock provider over real sockets. Everything else is tested against it, so what it promises is tested here.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

mod answers;
mod bedrock;
mod cohere;
mod counting;
mod faults;
mod formats;
mod framing;
mod gemini;
mod tls;

use std::time::Duration;

use bench::mock::{Mock, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn mock() -> Mock {
    Mock::start(Options::default())
}

/// A chat request that carries a fault the way first-class endpoints let it through.
fn chat(fault: Value) -> Value {
    let message = json!({ "mock": fault }).to_string();
    json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": message }] })
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

async fn post(mock: &Mock, path: &str, body: &Value) -> reqwest::Response {
    let request = reqwest::Client::new().post(mock.url() + path).bearer_auth("sk-test").json(body);
    request.send().await.unwrap()
}

async fn post_json(mock: &Mock, path: &str, body: &Value) -> Value {
    post(mock, path, body).await.json().await.unwrap()
}

/// To a path below no version, with any key.
async fn send(mock: &Mock, path: &str, body: &Value) -> reqwest::Response {
    let request = reqwest::Client::new().post(mock.origin() + path).bearer_auth("sk-test").json(body);
    request.send().await.unwrap()
}

async fn send_json(mock: &Mock, path: &str, body: &Value) -> Value {
    send(mock, path, body).await.json().await.unwrap()
}

/// The `data` of each event.
fn events(text: &str) -> Vec<String> {
    let data = |event: &str| event.lines().find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    text.split_terminator("\n\n").filter_map(data).collect()
}

/// A connection that shows the bytes as they are.
struct Raw {
    tcp: TcpStream,
    seen: Vec<u8>,
}

impl Raw {
    async fn connect(mock: &Mock) -> Self {
        Self { tcp: TcpStream::connect(mock.address()).await.unwrap(), seen: Vec::new() }
    }

    async fn send(&mut self, text: &str) {
        self.tcp.write_all(text.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, body: &Value) {
        let body = body.to_string();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\nauthorization: Bearer k\r\n";
        self.send(&format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
    }

    /// Reads until what was seen contains `text`; false at the end of the connection.
    async fn sees(&mut self, text: &str) -> bool {
        loop {
            if String::from_utf8_lossy(&self.seen).contains(text) {
                return true;
            }
            if self.read().await.unwrap() == 0 {
                return false;
            }
        }
    }

    /// Everything until the peer closes, or the error that ended it.
    async fn rest(mut self) -> std::io::Result<String> {
        while self.read().await? > 0 {}
        Ok(String::from_utf8_lossy(&self.seen).into_owned())
    }

    async fn read(&mut self) -> std::io::Result<usize> {
        within(self.tcp.read_buf(&mut self.seen)).await
    }
}

/// What hangs has failed.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("nothing happened for 20 seconds")
}

/// Head and body of a response.
fn parts(response: &str) -> (&str, &str) {
    response.split_once("\r\n\r\n").unwrap()
}
