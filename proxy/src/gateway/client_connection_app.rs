//! What becomes of a new connection: the gateway serves what is plain on it itself, and Pingora the rest.

use crate::gateway::Gateway;
use crate::gateway::client_connection::{ClientConnection, ConnectionTimeouts};
use crate::gateway::http1::Left;
use crate::gateway::ticks;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::protocols::Stream;
use pingora_core::server::ShutdownWatch;
use std::sync::{Arc, Once};

/// On one thread.
pub struct ClientConnectionApp<A> {
    app: Arc<A>,
    gateway: Gateway,
    patience: ConnectionTimeouts,
    ticks: Once,
}

impl<A> ClientConnectionApp<A> {
    pub fn new(app: A, gateway: Gateway, patience: ConnectionTimeouts) -> Self {
        Self { app: Arc::new(app), gateway, patience, ticks: Once::new() }
    }
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> ServerApp for ClientConnectionApp<A> {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        self.ticks.call_once(ticks::start);
        let mut connection = Box::new(ClientConnection::new(stream, self.patience));
        if !connection.is_http2() && self.gateway.serve_plain(&mut connection, shutdown).await == Left::Over {
            return None;
        }
        self.app.process_new(connection, shutdown).await
    }

    async fn cleanup(&self) {
        self.app.cleanup().await;
    }
}
