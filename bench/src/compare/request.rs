//! The requests that targets are measured with, most often a kilobyte of chat, and a plain client for them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};

use crate::open_loop::answer_length;

/// Body length of the measured request.
const BODY_BYTES: usize = 1024;

/// Where to send what.
#[derive(Debug, Clone)]
pub struct Request {
    pub address: SocketAddr,
    pub path: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Arc<str>,
}

impl Request {
    /// The bytes of the request with another body.
    pub fn bytes_with(&self, body: &str) -> Vec<u8> {
        let mut head = format!("POST {} HTTP/1.1\r\nhost: {}\r\n", self.path, self.address);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(&self.body)
    }

    pub fn connect(&self) -> io::Result<TcpStream> {
        let tcp = TcpStream::connect(self.address)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(tcp)
    }

    /// Sends once and checks the answer; what a start-up waits for.
    pub fn probe(&self) -> anyhow::Result<()> {
        exchange(&mut self.connect()?, &self.bytes())
    }
}

/// A chat of exactly a kilobyte.
pub fn body() -> String {
    let chat = |text: &str| {
        json!({ "model": "gpt-4o-mini", "temperature": 0.7, "messages": [
            { "role": "system", "content": "You are a helpful assistant." },
            { "role": "user", "content": text },
        ]})
    };
    a_kilobyte(chat)
}

/// A chat as long, which is answered by a stream of so many stamped events, this far apart.
pub fn stream_body(events: usize, apart: Duration) -> String {
    let fault = json!({ "mock": { "stamp": true, "chunks": events, "chunk_delay_ms": apart.as_millis() as u64 } });
    let chat = |text: &str| {
        json!({ "model": "gpt-4o-mini", "stream": true, "messages": [
            { "role": "system", "content": text },
            { "role": "user", "content": fault.to_string() },
        ]})
    };
    a_kilobyte(chat)
}

/// A chat as long, which is answered by a stream of so many events one at a time, as models write.
pub fn one_by_one_body(events: usize) -> String {
    let fault = json!({ "mock": { "chunks": events, "chunk_delay_ms": 1 } });
    let chat = |text: &str| {
        json!({ "model": "gpt-4o-mini", "stream": true, "messages": [
            { "role": "system", "content": text },
            { "role": "user", "content": fault.to_string() },
        ]})
    };
    a_kilobyte(chat)
}

/// Exactly a kilobyte of what is made of a text.
pub fn a_kilobyte(chat: impl Fn(&str) -> Value) -> String {
    let missing = BODY_BYTES.saturating_sub(chat("").to_string().len());
    chat(&"Tell me more. ".chars().cycle().take(missing).collect::<String>()).to_string()
}

/// One request and its whole answer on a connection that stays open. Only status 200 passes; an answer without a length
/// ends with its last chunk.
pub fn exchange(tcp: &mut TcpStream, request: &[u8]) -> anyhow::Result<()> {
    tcp.write_all(request)?;
    let mut seen = Vec::with_capacity(4096);
    let mut buffer = [0; 16384];
    loop {
        let count = tcp.read(&mut buffer)?;
        if count == 0 {
            bail!("the connection ended inside an answer");
        }
        seen.extend_from_slice(&buffer[..count]);
        if is_stream(&seen) {
            if seen.ends_with(b"0\r\n\r\n") {
                return Ok(());
            }
            continue;
        }
        if let Some(length) = answer_length(&seen)? {
            if seen.len() > length {
                bail!("more bytes came than the answer announced");
            }
            if seen.len() == length {
                return Ok(());
            }
        }
    }
}

/// Whether a good answer comes in chunks.
fn is_stream(seen: &[u8]) -> bool {
    let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&seen[..end]).to_ascii_lowercase();
    head.starts_with("http/1.1 200") && head.lines().any(|line| line == "transfer-encoding: chunked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_bodies_are_a_kilobyte_of_json() {
        for body in [
            body(),
            one_by_one_body(20),
            stream_body(1, Duration::from_millis(2)),
            stream_body(60, Duration::from_millis(10)),
        ] {
            assert_eq!(body.len(), BODY_BYTES);
            assert!(serde_json::from_str::<Value>(&body).is_ok());
        }
    }

    #[test]
    fn an_answer_in_chunks_is_told_by_its_head() {
        for (seen, expected) in [
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false),
            ("HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ] {
            assert_eq!(is_stream(seen.as_bytes()), expected, "{seen}");
        }
    }
}
