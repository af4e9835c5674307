//! MCP, by a server that the hostile tenant runs itself and by clients of it.

use super::{Attacker, status};
use crate::prove::client::{empty, whole};
use http::{HeaderValue, Method, header};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The hostile tenant's server, as the gateway serves it.
pub const SLUG: &str = "hostile-tools";
const PATH: &str = "/hostile-tools/mcp";
const LISTENED: Duration = Duration::from_secs(10);

/// The server begins an answer and does not end it.
pub async fn half_answer(by: Arc<Attacker>) -> String {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x", "arguments": {} } });
    status(&by.tools, by.tools.post_json(PATH, &call)).await
}

/// A stream that is listened to and says nothing.
pub async fn listening(by: Arc<Attacker>) -> String {
    let head = by.tools.head_bytes("GET", PATH);
    let listen = async {
        let mut tcp = TcpStream::connect(by.tools.address).await?;
        tcp.write_all(&[&head[..], b"\r\n"].concat()).await?;
        let mut bytes = [0; 64];
        let read = tcp.read(&mut bytes).await?;
        tokio::time::sleep(LISTENED).await;
        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
        Ok(text.split(' ').nth(1).unwrap_or("closed").to_owned())
    };
    listen.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
}

/// What one reader takes for a message and another does not.
pub async fn ambiguous(by: Arc<Attacker>, number: usize) -> String {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let odd = [r#"1e999"#, r#""\ud800""#, r#"{"a":1,"a":2}"#, &deep];
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"q":{}}}}}}}"#,
        odd[number % odd.len()]
    );
    let mut request = by.tools.request(Method::POST, PATH, whole(body));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    status(&by.tools, request).await
}

/// Its server is asked what it offers, again and again.
pub async fn lists(by: Arc<Attacker>) -> String {
    let path = format!("/v1/mcp-servers/{SLUG}/capabilities");
    status(&by.administrator, by.administrator.request(Method::GET, &path, empty())).await
}
