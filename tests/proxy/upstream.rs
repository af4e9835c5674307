//! A provider that shows every byte it was sent and answers with any bytes a test wrote, well-formed or not.

use crate::raw::find;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// Lives as long as the test.
pub struct RawUpstream {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Vec<u8>>,
    answers: VecDeque<Vec<u8>>,
}

impl RawUpstream {
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = seen.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(tcp, shared.clone()));
            }
        });
        Self { port, seen }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The next request gets these bytes and then the end of the connection.
    pub fn answer(&self, bytes: impl Into<Vec<u8>>) {
        self.seen.lock().unwrap().answers.push_back(bytes.into());
    }

    /// The requests since the last time, each with its head and body as they came.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.seen.lock().unwrap().requests)
    }

    /// The only request since the last time, as text.
    pub fn only(&self) -> String {
        let mut requests = self.take();
        assert_eq!(requests.len(), 1, "{requests:?}");
        String::from_utf8_lossy(&requests.remove(0)).into_owned()
    }
}

/// A provider that says this to whoever comes, and then nothing more.
pub async fn stalling(said: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let said = said.clone();
            tokio::spawn(async move {
                let _ = tcp.read(&mut [0; 4096]).await;
                let _ = tcp.write_all(&said).await;
                // Until the other side leaves.
                while tcp.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {}
            });
        }
    });
    url
}

async fn serve(mut tcp: TcpStream, seen: Arc<Mutex<Seen>>) {
    let mut held = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = request_end(&held) {
                break end;
            }
            if !matches!(tcp.read_buf(&mut held).await, Ok(count) if count > 0) {
                return;
            }
        };
        let request = held.drain(..end).collect();
        let answer = {
            let mut seen = seen.lock().unwrap();
            seen.requests.push(request);
            seen.answers.pop_front()
        };
        let _ = tcp.write_all(answer.as_deref().unwrap_or(OK)).await;
        if answer.is_some() {
            return;
        }
    }
}

/// Where the first request ends, once it is whole.
fn request_end(bytes: &[u8]) -> Option<usize> {
    let head_end = find(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
    if head.contains("\r\ntransfer-encoding:") {
        let body = &bytes[head_end..];
        if body.starts_with(b"0\r\n\r\n") {
            return Some(head_end + 5);
        }
        return find(body, b"\r\n0\r\n\r\n").map(|at| head_end + at + 7);
    }
    let length = head.split("\r\ncontent-length:").nth(1).and_then(|rest| rest.split("\r\n").next());
    let end = head_end + length.map_or(0, |text| text.trim().parse().expect("a length is a number"));
    (bytes.len() >= end).then_some(end)
}
