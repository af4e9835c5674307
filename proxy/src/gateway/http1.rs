//! Plain calls of the engine lane over HTTP/1.1, past Pingora's own reader and walk of callbacks, which cost a good part of
//! what such a call does. A connection begins here. The first request that is not plain, or that belongs to the relay lane,
//! takes it to Pingora for the rest of its life, with every byte that has come.

mod client;
mod head;

use super::client_connection::{ClientConnection, Opened};
use super::fresh_connections::FIRST_REQUEST;
use super::{DRAIN, Gateway};
use bytes::BytesMut;
use client::{PIECE, PlainClient};
use futures::FutureExt as _;
use head::{Found, PlainHead};
use http::header;
use pingora_core::server::ShutdownWatch;
use proxy::refusal::Refusal;
use proxy::visit::Visit;
use proxy::walk::{Delivered, EngineRequest, NextStep};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// What becomes of a connection that is not served here any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Over,
    /// What has come and was not used can be read from it again.
    ToPingora,
}

/// What became of one request.
enum Served {
    NextMayCome,
    Over,
    ToPingora,
}

impl Gateway {
    /// Serves the plain requests of a connection, one after the other. What it waits for is pinned where it stands: handed on, or put
    /// into a box, its state would be copied for every request.
    pub async fn serve_plain(&self, connection: &mut ClientConnection, shutdown: &ShutdownWatch) -> Left {
        let peer = connection.peer();
        let mut unread = BytesMut::new();
        let mut leaving = shutdown.clone();
        let mut leaving = pin!(leaving.wait_for(|is_leaving| *is_leaving));
        loop {
            let heard = tokio::select! {
                biased;
                found = next_head(connection, &mut unread) => Some(found),
                _ = &mut leaving => None,
            };
            let found = match heard {
                Some(found) => found,
                // Whoever waits between two requests is told at once. Whoever was let in just now, or has begun to ask, is
                // answered, and told then.
                None if connection.is_fresh() || !unread.is_empty() => {
                    match timeout(FIRST_REQUEST, next_head(connection, &mut unread)).await {
                        Ok(found) => found,
                        Err(_) => return Left::Over,
                    }
                }
                None => return Left::Over,
            };
            let served = match found {
                Some(found) => pin!(self.serve_one(connection, found, &mut unread, peer, shutdown)).await,
                None if unread.is_empty() => Served::Over,
                None => Served::ToPingora,
            };
            match served {
                Served::NextMayCome => {}
                Served::Over => return Left::Over,
                Served::ToPingora => {
                    connection.read_again_later(&unread);
                    return Left::ToPingora;
                }
            }
            if unread.is_empty() {
                // The room of a long body is not held until the next.
                unread = if unread.capacity() > 2 * PIECE { BytesMut::new() } else { unread };
            } else {
                // Requests that came together are served in turns with those of others.
                tokio::task::consume_budget().await;
            }
        }
    }

    async fn serve_one(
        &self,
        connection: &mut ClientConnection,
        found: Box<PlainHead>,
        unread: &mut BytesMut,
        peer: Option<IpAddr>,
        shutdown: &ShutdownWatch,
    ) -> Served {
        connection.begin_request();
        let is_kept_alive = found.is_kept_alive && !*shutdown.borrow();
        let mut visit = Visit::begin();
        visit.request.is_from_browser = found.head.headers.contains_key(header::ORIGIN);
        let opened = AssertUnwindSafe(pin!(self.engine.open(&found.head, peer, &mut visit))).catch_unwind().await;
        let step = match opened.unwrap_or_else(|_| Err(self.panicked())) {
            Ok(NextStep::Engine(request)) => Ok(request),
            Err(refusal) => Err(refusal),
            Ok(next) => {
                connection.leave_opened(Opened { visit, next });
                return Served::ToPingora;
            }
        };
        head::take(unread, &found);
        let mut client = PlainClient::new(connection, &found.head, unread, found.body_length, is_kept_alive);
        let delivered = pin!(self.deliver(&mut client, &mut visit, step)).await;
        if visit.answer.status == 0 {
            visit.answer.status = 499;
        }
        self.tell(&found.head, peer, &mut visit, None);
        let now = visit.settle(&self.engine.metrics);
        let is_answered = delivered == Delivered::Answered;
        // Closed before its body was read, the connection would be reset, which could take the answer with it.
        if !is_answered || !client.is_read() && !timeout(DRAIN, client.drain()).await.unwrap_or(false) {
            return Served::Over;
        }
        if !is_kept_alive {
            // Whoever does not hear it sees the connection closed.
            let _ = connection.shutdown().await;
            return Served::Over;
        }
        connection.end_request(now);
        if !unread.is_empty() {
            // Of the next one.
            connection.hear();
        }
        Served::NextMayCome
    }

    async fn deliver(
        &self,
        client: &mut PlainClient<'_>,
        visit: &mut Visit,
        step: Result<Box<EngineRequest>, Refusal>,
    ) -> Delivered {
        let refusal = match step {
            Err(refusal) => refusal,
            Ok(mut request) => {
                let run = pin!(self.engine.run(client, visit, &mut request));
                match AssertUnwindSafe(run).catch_unwind().await {
                    Ok(delivered) => return delivered,
                    Err(_) => self.panicked(),
                }
            }
        };
        match client.has_begun() {
            true => Delivered::Torn,
            false => self.engine.refuse(client, visit, &refusal).await,
        }
    }

    fn panicked(&self) -> Refusal {
        self.engine.metrics.panics.inc();
        Refusal::internal()
    }
}

/// The head of the next request; none where that is not plain, or none will come.
async fn next_head(connection: &mut ClientConnection, unread: &mut BytesMut) -> Option<Box<PlainHead>> {
    loop {
        match head::find(unread) {
            Found::Plain(head) => return Some(head),
            Found::Other => return None,
            Found::Part => {}
        }
        unread.reserve(PIECE);
        match connection.read_buf(unread).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
