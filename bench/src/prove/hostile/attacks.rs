//! What a hostile tenant does, each bounded in number and pace: what hurts is meant to be the kind of the request, not
//! how many there are.

use crate::prove::client::{Caller, chat, empty, whole};
use futures::future::BoxFuture;
use http::{Method, header};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

pub struct Attacker {
    /// With its key and a provider.
    pub caller: Caller,
    /// With its key alone, for inline configs.
    pub by_config: Caller,
    /// With the key of its own administrator.
    pub administrator: Caller,
    /// Without any key.
    pub bare: Caller,
    /// The address of the provider.
    pub provider: String,
}

pub struct Attack {
    pub name: &'static str,
    /// How many do it at once.
    pub parties: usize,
    /// Between two moves of one party.
    pub pause: Duration,
    /// One move; answers what became of it.
    pub make: fn(Arc<Attacker>, usize) -> BoxFuture<'static, String>,
}

/// How often an attack was made, and what became of it.
#[derive(Debug)]
pub struct Done {
    pub name: &'static str,
    pub moves: u64,
    outcomes: BTreeMap<String, u64>,
}

impl Done {
    pub fn new(name: &'static str) -> Self {
        Self { name, moves: 0, outcomes: BTreeMap::new() }
    }

    /// What became of a move.
    pub fn note(&mut self, what: String) {
        *self.outcomes.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        self.moves += other.moves;
        for (what, times) in &other.outcomes {
            *self.outcomes.entry(what.clone()).or_default() += times;
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} times", self.moves)?;
        self.outcomes.iter().try_for_each(|(what, times)| write!(f, ", {times} × {what}"))
    }
}

pub static ALL: &[Attack] = &[
    Attack { name: "random long models", parties: 4, pause: ms(100), make: |by, _| Box::pin(long_model(by, 4000)) },
    Attack { name: "oversized models", parties: 1, pause: ms(2000), make: |by, _| Box::pin(long_model(by, 2 << 20)) },
    Attack { name: "large bodies without a key", parties: 2, pause: ms(1000), make: |by, _| Box::pin(large_body(by)) },
    Attack {
        name: "1,800 patterns on a long field",
        parties: 2,
        pause: ms(2000),
        make: |by, _| Box::pin(patterns(by)),
    },
    Attack { name: "stalled uploads", parties: 12, pause: ms(100), make: |by, _| Box::pin(stalled_upload(by)) },
    Attack {
        name: "readers that stop reading",
        parties: 8,
        pause: ms(100),
        make: |by, _| Box::pin(stopped_reader(by)),
    },
    Attack { name: "heads that never end", parties: 50, pause: ms(100), make: |by, _| Box::pin(slow_head(by)) },
    Attack { name: "costly log queries", parties: 8, pause: ms(100), make: |by, at| Box::pin(costly_query(by, at)) },
];

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

async fn long_model(by: Arc<Attacker>, length: usize) -> String {
    let mut model = String::with_capacity(length + 32);
    while model.len() < length {
        model.push_str(&Uuid::new_v4().simple().to_string());
    }
    let mut body = chat(&json!({}), false);
    body["model"] = model.into();
    status(&by.caller, by.caller.post_json("/v1/chat/completions", &body)).await
}

/// Fourteen megabytes for whoever would read them before knowing from whom they are.
async fn large_body(by: Arc<Attacker>) -> String {
    let mut body = String::with_capacity(14 << 20);
    body.push_str("{\"token\": [");
    while body.len() < 14 << 20 {
        body.push_str("{},[],{},[],");
    }
    body.push_str("0]}");
    let mut request = by.bare.request(Method::POST, "/v1/admin/users/invites/accept", whole(body));
    request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    status(&by.bare, request).await
}

async fn patterns(by: Arc<Attacker>) -> String {
    let tests: Vec<_> = (0..1800).map(|n| json!({ "params.a": { "$regex": format!("x{n}") } })).collect();
    let target = json!({ "name": "t", "provider": "openai", "api_key": "sk-mock", "custom_host": format!("{}/v1", by.provider) });
    let strategy =
        json!({ "mode": "conditional", "conditions": [{ "query": { "$or": tests }, "then": "t" }], "default": "t" });
    let config = json!({ "strategy": strategy, "targets": [target] }).to_string();
    let Ok(caller) = by.by_config.with("x-gateway-config", &config) else { return "no config".into() };
    let mut body = chat(&json!({}), false);
    body["a"] = "y".repeat(20 << 20).into();
    status(&caller, caller.post_json("/v1/chat/completions", &body)).await
}

/// Promises ninety megabytes, sends few of them, and waits.
async fn stalled_upload(by: Arc<Attacker>) -> String {
    let request = by.caller.post_bytes("/v1/chat/completions", "");
    let head = String::from_utf8_lossy(&request).replace("content-length: 0", "content-length: 94371840");
    let sent = async {
        let mut tcp = TcpStream::connect(by.caller.address).await?;
        tcp.write_all(head.as_bytes()).await?;
        tcp.write_all(&vec![b' '; 64 << 10]).await?;
        until_closed(tcp).await
    };
    sent.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
}

/// Asks for much and takes none of it.
async fn stopped_reader(by: Arc<Attacker>) -> String {
    let body = chat(&json!({ "reply_bytes": 16 << 20, "chunks": 2000 }), true).to_string();
    let request = by.caller.post_bytes("/v1/chat/completions", &body);
    let sent = async {
        let mut tcp = TcpStream::connect(by.caller.address).await?;
        tcp.write_all(&request).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok("held for 20 s".into())
    };
    sent.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
}

/// A byte each ten seconds.
async fn slow_head(by: Arc<Attacker>) -> String {
    let request = by.caller.post_bytes("/v1/chat/completions", "{}");
    let sent = async {
        let mut tcp = TcpStream::connect(by.caller.address).await?;
        for byte in request {
            tcp.write_all(&[byte]).await?;
            if let Ok(closed) = tokio::time::timeout(Duration::from_secs(10), next(&mut tcp)).await {
                return closed;
            }
        }
        Ok("the whole head was taken".into())
    };
    sent.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
}

async fn costly_query(by: Arc<Attacker>, number: usize) -> String {
    let queries = [
        "/v1/logs?ai_model=none&workspace_slug=*",
        "/v1/logs?ai_model=none&page_size=100",
        "/v1/logs?metadata=%7B%22_user%22%3A%22nobody%22%7D",
        "/v1/logs?ai_model=none&workspace_slug=*&current_page=1000",
    ];
    let request = by.administrator.request(Method::GET, queries[number % queries.len()], empty());
    status(&by.administrator, request).await
}

async fn status(caller: &Caller, request: http::Request<crate::prove::client::Body>) -> String {
    match caller.status(request).await {
        Ok(status) => status.as_u16().to_string(),
        Err(error) => format!("{error}"),
    }
}

/// What came first, and then that it was closed.
async fn until_closed(mut tcp: TcpStream) -> std::io::Result<String> {
    let first = next(&mut tcp).await?;
    let mut rest = [0; 4096];
    while tcp.read(&mut rest).await? > 0 {}
    Ok(first)
}

/// The status of an answer, or that there was none.
async fn next(tcp: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = [0; 4096];
    let length = tcp.read(&mut bytes).await?;
    let line = String::from_utf8_lossy(&bytes[..length]);
    let status = line.split(' ').nth(1).map(|status| status.chars().take(3).collect());
    Ok(status.unwrap_or_else(|| "closed without an answer".into()))
}
