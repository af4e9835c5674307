//! A provider that the hostile tenant runs itself: each path is answered in another way that could make a gateway hold,
//! unpack or read more than the call is worth.

use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long an answer that does not end is held open.
const HELD: Duration = Duration::from_secs(10);
/// What an answer without an end sends before it falls silent.
const SENT: usize = 24 << 20;
const PIECE: usize = 64 << 10;
const DEPTH: usize = 100_000;

const EVENTS: &str = "content-type: text/event-stream\r\nconnection: close\r\n\r\n";
const FRAMES: &str = "content-type: application/vnd.amazon.eventstream\r\nconnection: close\r\n\r\n";
const JSON: &str = "content-type: application/json\r\nconnection: close\r\n\r\n";

/// Serves until its runtime ends; the address is followed by the name of an answer.
pub async fn serve() -> std::io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            // How an answer ends is the gateway's affair.
            tokio::spawn(async move { drop(answer(tcp).await) });
        }
    });
    Ok(format!("http://{address}"))
}

async fn answer(mut tcp: TcpStream) -> std::io::Result<()> {
    let mut head = vec![0; 64 << 10];
    let length = tcp.read(&mut head).await?;
    let line = String::from_utf8_lossy(&head[..length.min(200)]).into_owned();
    let name = line.split('/').nth(1).unwrap_or_default();
    tcp.write_all(b"HTTP/1.1 200 OK\r\n").await?;
    match name {
        "half-event" => endless(&mut tcp, EVENTS, b"data: ").await?,
        "packed-event" => {
            tcp.write_all([EVENTS.trim_end(), "\r\ncontent-encoding: gzip\r\n\r\n"].concat().as_bytes()).await?;
            tcp.write_all(&packed(b"data: ", SENT)).await?;
            tokio::time::sleep(HELD).await;
        }
        // A stream that is listened to says nothing; an answer is begun.
        "mcp" if line.starts_with("GET") => {
            tcp.write_all([EVENTS, ": here\n\n"].concat().as_bytes()).await?;
            tokio::time::sleep(HELD).await;
        }
        "mcp" => endless(&mut tcp, EVENTS, b"data: {\"jsonrpc\":\"").await?,
        "half-frame" => endless(&mut tcp, FRAMES, &long_frame()).await?,
        "half-list" => endless(&mut tcp, JSON, b"[{\"text\":\"").await?,
        "endless-head" => endless(&mut tcp, "x-long: ", b"x").await?,
        "deep" => {
            let deep = [r#"{"usage":"#.repeat(DEPTH), "1".into(), "}".repeat(DEPTH)].concat();
            tcp.write_all([JSON, &deep].concat().as_bytes()).await?;
        }
        "deep-events" => {
            let deep = ["data: ", &r#"{"usage":"#.repeat(DEPTH), "1", &"}".repeat(DEPTH), "\n\n"].concat();
            tcp.write_all([EVENTS, &deep].concat().as_bytes()).await?;
        }
        "many-events" => {
            tcp.write_all(EVENTS.as_bytes()).await?;
            let events = "data: {}\n\n".repeat(PIECE / 10);
            for _ in 0..SENT / PIECE {
                tcp.write_all(events.as_bytes()).await?;
            }
        }
        _ => {
            tcp.write_all(JSON.as_bytes()).await?;
            for byte in br#"{"object":"chat.completion"}"#.iter().cycle().take(20) {
                tcp.write_all(&[*byte]).await?;
                tokio::time::sleep(HELD / 20).await;
            }
        }
    }
    tcp.shutdown().await
}

async fn endless(tcp: &mut TcpStream, head: &str, start: &[u8]) -> std::io::Result<()> {
    tcp.write_all(&[head.as_bytes(), start].concat()).await?;
    let piece = vec![b'x'; PIECE];
    for _ in 0..SENT / PIECE {
        tcp.write_all(&piece).await?;
    }
    tokio::time::sleep(HELD).await;
    Ok(())
}

/// A beginning and so many equal letters, packed as small as that goes without a table: a length and a distance for each 258.
/// The end does not come.
fn packed(begin: &[u8], letters: usize) -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], held: 0, count: 0 };
    // Not the last block, of fixed codes.
    bits.put(0b010, 3);
    for byte in begin.iter().chain(b"x") {
        bits.code(0x30 + u32::from(*byte), 8);
    }
    for _ in 0..letters / 258 {
        bits.code(0b1100_0101, 8);
        bits.code(0, 5);
    }
    bits.bytes
}

struct Bits {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    /// The lowest bit first.
    fn put(&mut self, value: u32, length: u32) {
        self.held |= value << self.count;
        self.count += length;
        while self.count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// The highest bit first, as codes are.
    fn code(&mut self, value: u32, length: u32) {
        (0..length).rev().for_each(|bit| self.put(value >> bit & 1, 1));
    }
}

/// The prelude of a frame of an AWS event stream that announces as much as is sent, and a byte more.
fn long_frame() -> Vec<u8> {
    let mut prelude = (SENT as u32 + 1).to_be_bytes().to_vec();
    prelude.extend_from_slice(&0_u32.to_be_bytes());
    let checksum = crc32fast::hash(&prelude);
    prelude.extend_from_slice(&checksum.to_be_bytes());
    prelude
}
