//! The client of a plain request, as the engine sees it: what it sent is read from its connection as far as the head said,
//! and answers are framed and written to it.

use super::super::client::{LARGEST_WHOLE, by};
use crate::gateway::client_connection::ClientConnection;
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use pingora_core::protocols::http::date::get_cached_date;
use pingora_http::{RequestHeader, ResponseHeader};
use proxy::net::downstream::{ClientGone, Contention, Downstream};
use proxy::net::head_lines::HeadLines;
use std::io::{self, Write as _};
use std::pin::pin;
use std::time::Instant;
use std::{future, mem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Of what is read at once.
pub const PIECE: usize = 4 << 10;
const LARGE_PIECE: usize = 64 << 10;
/// What a client may send of its next requests while it waits for an answer. Beyond that it is not listened to.
const MOST_AHEAD: usize = 64 << 10;

pub struct PlainClient<'c> {
    connection: &'c mut ClientConnection,
    head: &'c RequestHeader,
    /// Bytes that have come and were not used: of the body, then of next requests.
    unread: &'c mut BytesMut,
    /// Of the body, in bytes.
    left: u64,
    is_kept_alive: bool,
    /// The head of an answer was given.
    has_begun: bool,
    /// One whose length is known leaves with its body.
    held: Vec<u8>,
    /// How much its body has still to be; none where chunks tell.
    promised: Option<u64>,
    deadline: Option<Instant>,
}

impl<'c> PlainClient<'c> {
    pub fn new(
        connection: &'c mut ClientConnection,
        head: &'c RequestHeader,
        unread: &'c mut BytesMut,
        body_length: u64,
        is_kept_alive: bool,
    ) -> Self {
        let left = body_length;
        let (has_begun, held, promised, deadline) = (false, Vec::new(), None, None);
        Self { connection, head, unread, left, is_kept_alive, has_begun, held, promised, deadline }
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// All of the request was read.
    pub fn is_read(&self) -> bool {
        self.left == 0
    }

    /// Reads away what is left of the body. Whether it all came.
    pub async fn drain(&mut self) -> bool {
        loop {
            match self.read_body().await {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(ClientGone) => return false,
            }
        }
    }

    /// The head as it is written, framed for a body whose length may be unknown.
    fn head_text(&mut self, mut head: ResponseHeader) -> Vec<u8> {
        let has_body = !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let length = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        self.promised = if has_body { length } else { Some(0) };
        if self.promised.is_none() {
            head.remove_header(&header::CONTENT_LENGTH);
            let _ = head.insert_header(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let connection = if self.is_kept_alive { "keep-alive" } else { "close" };
        let _ = head.insert_header(header::DATE, get_cached_date());
        let _ = head.insert_header(header::CONNECTION, HeaderValue::from_static(connection));
        let mut text = Vec::with_capacity(PIECE);
        let reason = head.get_reason_phrase().unwrap_or_default();
        // A vector takes all that is written to it.
        let _ = write!(text, "HTTP/1.1 {} {reason}\r\n", head.status.as_str());
        head.header_to_h1_wire(&mut text);
        text.extend_from_slice(b"\r\n");
        text
    }

    /// A piece of the body behind what is written before it, framed, and sent. What is beyond the promised length is left out: its
    /// client would take it for the next answer. One that ends before it ends the connection.
    async fn send(&mut self, mut before: Vec<u8>, bytes: &[u8], end: bool) -> Result<(), ClientGone> {
        self.has_begun = true;
        let (mut bytes, mut after): (&[u8], &[u8]) = (bytes, b"");
        match &mut self.promised {
            Some(promised) => {
                bytes = &bytes[..bytes.len().min(usize::try_from(*promised).unwrap_or(usize::MAX))];
                *promised -= bytes.len() as u64;
            }
            None => {
                if !bytes.is_empty() {
                    let _ = write!(before, "{:x}\r\n", bytes.len());
                    after = b"\r\n";
                }
                after = match (end, bytes.is_empty()) {
                    (true, true) => b"0\r\n\r\n",
                    (true, false) => b"\r\n0\r\n\r\n",
                    (false, _) => after,
                };
            }
        }
        let sent = send_parts(self.connection, [&before, bytes, after]);
        by(self.deadline, pin!(sent)).await?;
        if end && self.promised.is_some_and(|promised| promised > 0) { Err(ClientGone) } else { Ok(()) }
    }
}

/// All of them, in as few packets as there can be.
async fn send_parts(connection: &mut ClientConnection, parts: [&[u8]; 3]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length <= LARGEST_WHOLE {
        connection.write_all(&parts.concat()).await?;
    } else {
        for part in parts {
            connection.write_all(part).await?;
        }
    }
    connection.flush().await
}

impl Downstream for PlainClient<'_> {
    fn head(&self) -> &RequestHeader {
        self.head
    }

    fn end_by(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    fn yield_under(&mut self, contention: Contention) {
        self.connection.set_contention(Some(contention));
    }

    /// Copied, or a short body would hold the room of all that was read with it.
    async fn read_body(&mut self) -> Result<Option<Bytes>, ClientGone> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.unread.is_empty() {
            self.unread.reserve(usize::try_from(self.left).unwrap_or(LARGE_PIECE).clamp(PIECE, LARGE_PIECE));
            match self.connection.read_buf(self.unread).await {
                Ok(0) | Err(_) => return Err(ClientGone),
                Ok(_) => {}
            }
        }
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.unread.len());
        self.left -= length as u64;
        let piece = Bytes::copy_from_slice(&self.unread[..length]);
        self.unread.advance(length);
        Ok(Some(piece))
    }

    /// No plain request waits for permission.
    async fn write_continue(&mut self) -> Result<(), ClientGone> {
        Ok(())
    }

    async fn write_head(&mut self, head: ResponseHeader) -> Result<(), ClientGone> {
        let text = self.head_text(head);
        if self.promised.is_some_and(|promised| promised > 0) {
            (self.held, self.has_begun) = (text, true);
            return Ok(());
        }
        self.send(text, b"", false).await
    }

    async fn write_beginning(&mut self, head: ResponseHeader, first: Bytes, end: bool) -> Result<(), ClientGone> {
        let text = self.head_text(head);
        self.send(text, &first, end).await
    }

    async fn write_whole(&mut self, lines: HeadLines, body: Bytes) -> Result<(), ClientGone> {
        self.has_begun = true;
        if body.len() > LARGEST_WHOLE {
            return self.write_beginning(lines.head(body.len()), body, true).await;
        }
        let answer = lines.into_answer(&get_cached_date(), self.is_kept_alive, &body);
        let sent = send_whole(self.connection, &answer);
        by(self.deadline, pin!(sent)).await
    }

    async fn write_body(&mut self, bytes: Bytes, end: bool) -> Result<(), ClientGone> {
        if bytes.is_empty() && !end {
            return Ok(());
        }
        let held = mem::take(&mut self.held);
        self.send(held, &bytes, end).await
    }

    async fn gone(&mut self) {
        while self.unread.len() < MOST_AHEAD {
            self.unread.reserve(PIECE);
            match self.connection.read_buf(self.unread).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        future::pending().await
    }
}

async fn send_whole(connection: &mut ClientConnection, answer: &[u8]) -> io::Result<()> {
    connection.write_all(answer).await?;
    connection.flush().await
}

#[cfg(test)]
mod tests;
