//! The way to the admin service: which of its addresses is alive. The proxy relays and does not authenticate.

use pingora_core::services::background::{GenBackgroundService, background_service};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_load_balancing::LoadBalancer;
use pingora_load_balancing::health_check::TcpHealthCheck;
use pingora_load_balancing::selection::RoundRobin;
use std::sync::Arc;
use std::time::Duration;

const CHECK_EVERY: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(60);

pub struct ControlPlane {
    admins: Arc<LoadBalancer<RoundRobin>>,
}

impl ControlPlane {
    /// The addresses and the service that checks them.
    pub fn new(addresses: &[String]) -> anyhow::Result<(Self, GenBackgroundService<LoadBalancer<RoundRobin>>)> {
        let mut admins: LoadBalancer<RoundRobin> = LoadBalancer::try_from_iter(addresses)
            .map_err(|error| anyhow::anyhow!("ADMIN_ADDRESSES: {}: {error}", addresses.join(",")))?;
        admins.set_health_check(TcpHealthCheck::new());
        admins.health_check_frequency = Some(CHECK_EVERY);
        let service = background_service("admin health checks", admins);
        Ok((Self { admins: service.task() }, service))
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
