//! The way to the admin service: which of its addresses is alive. The proxy relays and does not authenticate.

use super::admin_addresses::AdminAddresses;
use async_trait::async_trait;
use futures::FutureExt as _;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_load_balancing::health_check::{HealthObserve, TcpHealthCheck};
use pingora_load_balancing::selection::RoundRobin;
use pingora_load_balancing::{Backend, Backends, LoadBalancer};
use std::sync::Arc;
use std::time::Duration;

const CHECK_EVERY: Duration = Duration::from_secs(1);
const RESOLVE_EVERY: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(60);

pub struct ControlPlane {
    admins: Arc<LoadBalancer<RoundRobin>>,
}

impl ControlPlane {
    /// The addresses and what checks them.
    pub fn new(addresses: &[String]) -> anyhow::Result<(Self, Arc<LoadBalancer<RoundRobin>>)> {
        let addresses = AdminAddresses::new(addresses)?;
        let mut admins: LoadBalancer<RoundRobin> = LoadBalancer::from_backends(Backends::new(Box::new(addresses)));
        let mut check = TcpHealthCheck::new();
        check.health_changed_callback = Some(Box::new(HealthLogger));
        admins.set_health_check(check);
        admins.health_check_frequency = Some(CHECK_EVERY);
        admins.update_frequency = Some(RESOLVE_EVERY);
        // What was resolved at the start is known before the first request.
        let _ = admins.update().now_or_never();
        let admins = Arc::new(admins);
        Ok((Self { admins: admins.clone() }, admins))
    }

    /// One that is known to be alive, else any: right after the start nothing is known, and an admin that has just come
    /// back need not wait to be noticed. If it is not there, connecting fails at once.
    pub fn peer(&self) -> Option<HttpPeer> {
        let backend = self.admins.select(b"", 16).or_else(|| self.admins.select_with(b"", 16, |_, _| true))?;
        let mut peer = HttpPeer::new(backend.addr, false, String::new());
        peer.options.connection_timeout = Some(CONNECT);
        peer.options.read_timeout = Some(SILENCE);
        peer.options.write_timeout = Some(SILENCE);
        Some(peer)
    }
}

/// One line for each change; the library's own is a page of its peer's options.
struct HealthLogger;

#[async_trait]
impl HealthObserve for HealthLogger {
    async fn observe(&self, target: &Backend, healthy: bool) {
        let address = target.addr.to_string();
        match healthy {
            true => tracing::info!(address, "an admin answers again"),
            false => {
                tracing::warn!(address, "an admin does not answer: control-plane requests go to the others, if any")
            }
        }
    }
}
