//! HTTP/2 by hand: frames with headers that no library would send. Headers are written as HPACK literals, so that
//! every byte of them is the test's.

use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Frames {
    tcp: TcpStream,
    held: Vec<u8>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The status, as far as HPACK's static table has it; 0 for others.
    Answered(u16),
    Reset,
    /// The whole connection was given up.
    ConnectionClosed,
}

pub type Header<'a> = (&'a [u8], &'a [u8]);

impl Frames {
    pub async fn open(port: u16) -> Self {
        let mut tcp = TcpStream::connect(("127.0.0.1", port)).await.expect("the port is open");
        tcp.set_nodelay(true).expect("a socket takes its options");
        tcp.write_all(PREFACE).await.expect("a new connection takes bytes");
        let mut frames = Self { tcp, held: Vec::new() };
        frames.write(SETTINGS, 0, 0, &[]).await;
        frames
    }

    /// A request in as few frames as possible.
    pub async fn request(&mut self, stream: u32, headers: &[Header<'_>], body: &[u8]) {
        let flags = if body.is_empty() { END_HEADERS | END_STREAM } else { END_HEADERS };
        self.write(HEADERS, flags, stream, &literal(headers)).await;
        if !body.is_empty() {
            self.write(DATA, END_STREAM, stream, body).await;
        }
    }

    /// Only the head of a request whose body never comes.
    pub async fn begin(&mut self, stream: u32, headers: &[Header<'_>]) {
        self.write(HEADERS, END_HEADERS, stream, &literal(headers)).await;
    }

    /// A request whose body is followed by a second block of headers.
    pub async fn request_with_trailers(
        &mut self,
        stream: u32,
        headers: &[Header<'_>],
        body: &[u8],
        trailers: &[Header<'_>],
    ) {
        self.write(HEADERS, END_HEADERS, stream, &literal(headers)).await;
        self.write(DATA, 0, stream, body).await;
        self.write(HEADERS, END_HEADERS | END_STREAM, stream, &literal(trailers)).await;
    }

    /// A peer that has already closed is no failure: how the stream ended tells why.
    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("test frames are small").to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        let _ = self.tcp.write_all(&frame).await;
    }

    pub async fn ending(&mut self, stream: u32) -> Ending {
        let mut status = None;
        while let Some((kind, flags, on, payload)) = self.read().await {
            match kind {
                GOAWAY => return Ending::ConnectionClosed,
                RST_STREAM if on == stream && status.is_none() => return Ending::Reset,
                HEADERS if on == stream && status.is_none() => status = Some(static_status(payload.first())),
                _ => {}
            }
            if let Some(status) = status
                && on == stream
                && flags & END_STREAM != 0
                && matches!(kind, HEADERS | DATA)
            {
                return Ending::Answered(status);
            }
        }
        Ending::ConnectionClosed
    }

    async fn read(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let head = self.exactly(9).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let payload = self.exactly(length as usize).await?;
        Some((head[3], head[4], stream, payload))
    }

    async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.held.len() < length {
            let read = tokio::time::timeout(PATIENCE, self.tcp.read_buf(&mut self.held)).await;
            match read.expect("the proxy neither answers nor closes") {
                Ok(count) if count > 0 => {}
                _ => return None,
            }
        }
        Some(self.held.drain(..length).collect())
    }
}

/// Literal fields, not indexed, without Huffman codes.
fn literal(headers: &[Header<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            integer(&mut block, text.len());
            block.extend_from_slice(text);
        }
    }
    block
}

/// An integer with a prefix of seven bits (RFC 7541 §5.1).
fn integer(block: &mut Vec<u8>, mut value: usize) {
    if value < 127 {
        block.push(value as u8);
        return;
    }
    block.push(127);
    value -= 127;
    while value >= 128 {
        block.push((value % 128) as u8 | 128);
        value /= 128;
    }
    block.push(value as u8);
}

fn static_status(first: Option<&u8>) -> u16 {
    match first {
        Some(0x88) => 200,
        Some(0x8c) => 400,
        Some(0x8d) => 404,
        Some(0x8e) => 500,
        _ => 0,
    }
}
