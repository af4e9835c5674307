//! Connections that are held without being used.

use super::Attacker;
use crate::prove::client::chat;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Promises ninety megabytes, sends few of them, and waits.
pub async fn stalled_upload(by: Arc<Attacker>) -> String {
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
pub async fn stopped_reader(by: Arc<Attacker>) -> String {
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
pub async fn slow_head(by: Arc<Attacker>) -> String {
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

/// Asks for a websocket, says nothing on it, and waits.
pub async fn half_upgrade(by: Arc<Attacker>) -> String {
    let request = String::from_utf8_lossy(&by.caller.post_bytes("/v1/realtime?model=m", "")).into_owned();
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let head = request.replacen("POST", "GET", 1).replace("content-length: 0\r\n\r\n", upgrade);
    let sent = async {
        let mut tcp = TcpStream::connect(by.caller.address).await?;
        tcp.write_all(head.as_bytes()).await?;
        let first = next(&mut tcp).await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(first)
    };
    sent.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
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
