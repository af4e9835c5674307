//! HTTP/1 by hand: sends exactly the bytes a test wrote and reads what comes back, one answer at a time. Libraries
//! repair what they send, and it is the unrepaired that these tests are about.

use harness::Stack;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Far beyond what a healthy run needs: whoever waits this long has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection to the proxy.
pub struct Wire {
    tcp: TcpStream,
    held: Vec<u8>,
}

/// One answer, its body free of chunks.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Names in lower case, in their order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// A header's value; empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    pub fn says_close(&self) -> bool {
        self.header("connection").eq_ignore_ascii_case("close")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Wire {
    pub async fn open(port: u16) -> Self {
        let tcp = TcpStream::connect(("127.0.0.1", port)).await.expect("the port is open");
        tcp.set_nodelay(true).expect("a socket takes its options");
        Self { tcp, held: Vec::new() }
    }

    /// The kernel takes little off the proxy's hands for this one, so that a reader who stops is felt at once.
    pub async fn open_narrow(port: u16) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a socket takes its options");
        let tcp = socket.connect(([127, 0, 0, 1], port).into()).await.expect("the port is open");
        Self { tcp, held: Vec::new() }
    }

    /// A peer that has already closed is no failure: its answer tells why.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.tcp.write_all(bytes.as_ref()).await;
    }

    /// No more will come from us.
    pub async fn finish(&mut self) {
        let _ = self.tcp.shutdown().await;
    }

    /// The next final answer; None when the connection ends instead. Interim answers are skipped.
    pub async fn answer(&mut self) -> Option<RawAnswer> {
        self.answer_to("POST").await
    }

    /// As `answer`; an answer to HEAD has no body whatever its head says.
    pub async fn answer_to(&mut self, method: &str) -> Option<RawAnswer> {
        loop {
            let (status, headers) = self.head().await?;
            let mut answer = RawAnswer { status, headers, body: Vec::new() };
            if (100..200).contains(&status) && status != 101 {
                continue;
            }
            if method != "HEAD" && status != 204 && status != 304 && status != 101 {
                answer.body = self.body(&answer).await?;
            }
            return Some(answer);
        }
    }

    /// The next head, interim or final.
    pub async fn head(&mut self) -> Option<(u16, Vec<(String, String)>)> {
        let end = loop {
            if let Some(at) = find(&self.held, b"\r\n\r\n") {
                break at;
            }
            if !self.more().await {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&self.held[..end]).into_owned();
        self.held.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line:?}"));
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        Some((status.unwrap_or_else(|| panic!("no status line: {head:?}")), headers.collect()))
    }

    async fn body(&mut self, answer: &RawAnswer) -> Option<Vec<u8>> {
        if answer.header("transfer-encoding") == "chunked" {
            return self.chunks().await;
        }
        match answer.header("content-length").parse::<usize>() {
            Ok(length) => self.exactly(length).await,
            Err(_) => {
                while self.more().await {}
                Some(std::mem::take(&mut self.held))
            }
        }
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                if let Some(at) = find(&self.held, b"\r\n") {
                    break self.held.drain(..at + 2).collect::<Vec<_>>();
                }
                if !self.more().await {
                    return None;
                }
            };
            let digits = String::from_utf8_lossy(&line).trim().to_owned();
            let length = usize::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("no chunk size: {digits:?}"));
            let chunk = self.exactly(length + 2).await?;
            if length == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    pub async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.held.len() < length {
            if !self.more().await {
                return None;
            }
        }
        Some(self.held.drain(..length).collect())
    }

    /// Everything up to the end of the connection, which must come.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.held)
    }

    /// Whether the peer closed, and said nothing more before it did.
    pub async fn is_closed(&mut self) -> bool {
        self.rest().await.is_empty()
    }

    /// Whether the peer says something or closes within this time.
    pub async fn is_heard_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.tcp.read_buf(&mut self.held)).await.is_ok()
    }

    async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.tcp.read_buf(&mut self.held)).await;
        // A reset is an end like any other here.
        matches!(read.expect("the proxy neither answers nor closes"), Ok(count) if count > 0)
    }
}

/// What an application's requests have in common: the key, the provider and where it is.
pub fn credentials(stack: &Stack) -> String {
    credentials_for(stack, &stack.mock.url())
}

pub fn credentials_for(stack: &Stack, custom_host: &str) -> String {
    format!(
        "Host: gateway.test\r\nx-gateway-api-key: {}\r\nx-gateway-provider: openai\r\nAuthorization: Bearer sk-mock\r\n\
         x-gateway-custom-host: {custom_host}\r\n",
        stack.home.workspace_key
    )
}

/// A whole POST of JSON with its length.
pub fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
}

pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
