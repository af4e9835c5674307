//! A realtime session with one response. The mock sends back what it hears, so the client says what the provider shall.

use crate::prove::client::Caller;
use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const MASK: [u8; 4] = [1, 2, 3, 4];
const HANDSHAKE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const MAX_HEAD: usize = 16 << 10;

pub async fn respond(caller: &Caller, tag: &str) -> anyhow::Result<()> {
    let mut wire = TcpStream::connect(caller.address).await?;
    let mut head = caller.head_bytes("GET", "/v1/realtime?model=gpt-4o-realtime-preview");
    head.extend_from_slice(HANDSHAKE.as_bytes());
    wire.write_all(&head).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        ensure!(answer.len() < MAX_HEAD, "an endless head");
        answer.push(wire.read_u8().await?);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    ensure!(answer.starts_with("HTTP/1.1 101"), "{}", answer.lines().next().unwrap_or_default());
    let usage = json!({ "total_tokens": 50, "input_tokens": 40, "output_tokens": 10,
        "input_token_details": { "text_tokens": 40 }, "output_token_details": { "text_tokens": 10 } });
    let done = json!({ "type": "response.done", "response": { "object": "realtime.response", "status": "completed",
        "usage": usage, "metadata": { "tag": format!("bill:{tag}") } } });
    wire.write_all(&frame(TEXT, done.to_string().as_bytes())).await?;
    read_frame(&mut wire).await.context("the response does not come back")?;
    wire.write_all(&frame(CLOSE, &[3, 232])).await?;
    read_frame(&mut wire).await.context("the session is not closed")
}

/// A client's frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

async fn read_frame(wire: &mut TcpStream) -> anyhow::Result<()> {
    wire.read_u8().await?;
    let length = match wire.read_u8().await? & 0x7F {
        126 => u64::from(wire.read_u16().await?),
        127 => wire.read_u64().await?,
        short => u64::from(short),
    };
    ensure!(length < 1 << 20, "a frame of {length} bytes");
    let mut payload = vec![0; length as usize];
    wire.read_exact(&mut payload).await?;
    Ok(())
}
