//! The one request all targets are measured with, and a plain client for it: a kilobyte of chat.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
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
}

impl Request {
    /// The bytes of the request with this body.
    pub fn bytes(&self, body: &str) -> Vec<u8> {
        let mut head = format!("POST {} HTTP/1.1\r\nhost: {}\r\n", self.path, self.address);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    pub fn connect(&self) -> io::Result<TcpStream> {
        let tcp = TcpStream::connect(self.address)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(tcp)
    }

    /// Sends once and checks the answer; what a start-up waits for.
    pub fn probe(&self) -> anyhow::Result<()> {
        exchange(&mut self.connect()?, &self.bytes(&body()))
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

fn a_kilobyte(chat: impl Fn(&str) -> Value) -> String {
    let missing = BODY_BYTES.saturating_sub(chat("").to_string().len());
    chat(&"Tell me more. ".chars().cycle().take(missing).collect::<String>()).to_string()
}

/// One request and its whole answer on a connection that stays open. Only answers with a length and status 200 pass.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_bodies_are_a_kilobyte_of_json() {
        for body in [body(), stream_body(1, Duration::from_millis(2)), stream_body(60, Duration::from_millis(10))] {
            assert_eq!(body.len(), BODY_BYTES);
            assert!(serde_json::from_str::<Value>(&body).is_ok());
        }
    }
}
