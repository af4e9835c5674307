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

/// Begins a message of a session in fragments and does not end it.
pub async fn fragments(by: Arc<Attacker>) -> String {
    const LENGTH: u64 = 200 << 10;
    let request = String::from_utf8_lossy(&by.caller.post_bytes("/v1/realtime?model=m", "")).into_owned();
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let head = request.replacen("POST", "GET", 1).replace("content-length: 0\r\n\r\n", upgrade);
    // A text that goes on, masked with nothing.
    let frame = [&[0x01, 0xff][..], &LENGTH.to_be_bytes(), &[0; 4], &vec![b'x'; LENGTH as usize]].concat();
    let sent = async {
        let mut tcp = TcpStream::connect(by.caller.address).await?;
        tcp.write_all(head.as_bytes()).await?;
        let first = next(&mut tcp).await?;
        tcp.write_all(&frame).await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(first)
    };
    sent.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
}

/// A file whose end never comes, and whose length nobody was told.
pub async fn endless_upload(by: Arc<Attacker>) -> String {
    const PIECE: usize = 256 << 10;
    const PIECES: usize = 16;
    let mut head = by.by_config.head_bytes("POST", "/v1/files");
    head.extend_from_slice(b"content-type: multipart/form-data; boundary=b\r\ntransfer-encoding: chunked\r\n\r\n");
    let begin = "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\ncontent-disposition: form-data; \
                 name=\"file\"; filename=\"f\"\r\n\r\n";
    let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let sent = async {
        let mut tcp = TcpStream::connect(by.by_config.address).await?;
        tcp.write_all(&[head, chunk(begin.as_bytes())].concat()).await?;
        for _ in 0..PIECES {
            tcp.write_all(&chunk(&vec![b'x'; PIECE])).await?;
        }
        let answer = tokio::time::timeout(Duration::from_secs(10), next(&mut tcp)).await;
        answer.unwrap_or_else(|_| Ok("held for 10 s".into()))
    };
    sent.await.unwrap_or_else(|error: std::io::Error| error.kind().to_string())
}

/// A form of a page that anybody may post, of which only the beginning comes.
pub async fn slow_form(by: Arc<Attacker>, number: usize) -> String {
    let pages = ["/oauth/register", "/oauth/token", "/oauth/authorize", "/mcp-oauth/start"];
    let mut head = by.bare.head_bytes("POST", pages[number % pages.len()]);
    head.extend_from_slice(b"content-type: application/json\r\ncontent-length: 1000\r\n\r\n{");
    let sent = async {
        let mut tcp = TcpStream::connect(by.bare.address).await?;
        tcp.write_all(&head).await?;
        let answer = tokio::time::timeout(Duration::from_secs(30), next(&mut tcp)).await;
        answer.unwrap_or_else(|_| Ok("held for 30 s".into()))
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
