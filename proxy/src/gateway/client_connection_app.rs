//! What happens to a new connection: Pingora serves it, wrapped so that its waits end and its writes join.

use crate::gateway::client_connection::{ClientConnection, ConnectionTimeouts};
use crate::gateway::ticks;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::protocols::Stream;
use pingora_core::server::ShutdownWatch;
use std::sync::{Arc, Once};

/// On one thread.
pub struct ClientConnectionApp<A> {
    app: Arc<A>,
    patience: ConnectionTimeouts,
    ticks: Once,
}

impl<A> ClientConnectionApp<A> {
    pub fn new(app: A, patience: ConnectionTimeouts) -> Self {
        Self { app: Arc::new(app), patience, ticks: Once::new() }
    }
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> ServerApp for ClientConnectionApp<A> {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        self.ticks.call_once(ticks::start);
        let connection = ClientConnection::new(stream, self.patience, shutdown.clone());
        self.app.process_new(Box::new(connection), shutdown).await
    }

    /// Does not call Pingora's, which drops every connection whose request head is incomplete. `ClientConnection` closes
    /// the idle ones itself and leaves the others time for their request.
    async fn cleanup(&self) {}
}
