//! The only code that opens outbound sockets. Whoever wants to reach a provider asks for an `Origin`, which the guard has
//! judged by name, and then for a connection, whose address the guard judges again; there is no other way out.
//! Redirects are answers like any other here: nothing follows them.

pub(crate) mod chunked;
mod cork;
mod error;
mod framing;
pub(crate) mod h1;
#[cfg(test)]
mod http2_tests;
pub mod internal_call;
#[cfg(test)]
pub(crate) mod lab;
mod pool;
mod repeat;
#[cfg(test)]
mod repeat_tests;
mod request;
mod resolve;
mod transport;
mod upstream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pingora_core::connectors::http::v2::{ConnectionRef, H2HandshakeSettings, handshake};
use pingora_core::protocols::ALPN;
use pingora_core::upstreams::peer::HttpPeer;
use shared::outbound::{Guard, check_address, check_host, path_of};
use shared::settings;
use tokio::time::{Instant, timeout_at};

use cork::Cork;
pub use error::{Class, DialError, UpstreamError};
use pool::ConnectionPool;
pub use pool::PoolCounts;
pub use repeat::is_unprocessed;
pub use request::UpstreamRequest;
use resolve::NameResolver;
pub use shared::outbound::{BadHost, Host, Origin, Scheme};
use transport::{Transport, Trust};
pub use upstream::{PieceSource, Upstream};

/// What one slow reader may keep an HTTP/2 connection from delivering to the others.
const STREAM_WINDOW: u32 = 256 * 1024;
const H2_PING: Duration = Duration::from_secs(20);
/// Several addresses share the connect timeout; each gets at least this.
const MIN_PER_ADDRESS: Duration = Duration::from_millis(250);

/// One per process; the connections it pools belong to the thread that opened them.
pub struct Dialer {
    guard: Guard,
    resolver: NameResolver,
    trust: Trust,
    pool: Arc<ConnectionPool>,
    connect_timeout: Duration,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    pool_idle: Duration,
    max_streams: usize,
}

impl Dialer {
    pub fn new(settings: &settings::Upstream) -> anyhow::Result<Self> {
        let resolver = NameResolver::new(Duration::from_millis(settings.dns_ttl_ms));
        Self::with_resolver(settings, resolver)
    }

    fn with_resolver(settings: &settings::Upstream, resolver: NameResolver) -> anyhow::Result<Self> {
        let pool_idle = Duration::from_millis(settings.upstream_pool_idle_ms);
        Ok(Self {
            guard: Guard::new(&settings.outbound.trusted_custom_hosts, &settings.outbound.own_hostnames)?
                .allowing_plain(settings.outbound.plain_custom_hosts),
            resolver,
            trust: Trust::new(settings.outbound.upstream_ca_file.as_deref())?,
            pool: Arc::new(ConnectionPool::new(settings.upstream_pool_max_idle, pool_idle)),
            connect_timeout: Duration::from_millis(settings.upstream_connect_timeout_ms),
            first_byte_timeout: Duration::from_millis(settings.upstream_first_byte_timeout_ms),
            idle_timeout: Duration::from_millis(settings.upstream_stream_idle_timeout_ms),
            pool_idle,
            max_streams: settings.upstream_max_h2_streams.max(1),
        })
    }

    /// A host named by a caller: every rule holds, private ones only for hosts the operator lists.
    pub fn custom_host(&self, url: &str) -> Result<Arc<Origin>, BadHost> {
        self.guard.custom_host(url).map(Arc::new)
    }

    /// The same for a whole URL: the origin and the path to ask it for. Without TLS only where the operator says so.
    pub fn custom_url(&self, url: &str) -> Result<(Arc<Origin>, http::uri::PathAndQuery), BadHost> {
        let (origin, path) = self.guard.custom_url(url)?;
        Ok((Arc::new(origin), path))
    }

    /// A host named by the operator, such as one of the provider table: it may be private, but not a metadata service.
    pub fn known_host(&self, url: &str) -> Result<Arc<Origin>, BadHost> {
        let mut origin = Origin::parse(url)?;
        check_host(origin.host(), true)?;
        origin.set_trusted(true);
        Ok(Arc::new(origin))
    }

    /// Whether a host has an address at all.
    pub async fn resolves(&self, origin: &Origin) -> bool {
        match origin.host() {
            Host::Address(_) => true,
            Host::Name(name) => self.resolver.resolve(name, std::time::Instant::now()).await.is_ok(),
        }
    }

    /// A connection of its own to the machine's identity service, which the operator's environment names and no
    /// customer can: the one address for which the rules do not hold. It is never pooled.
    pub async fn own_identity(&self, url: &str) -> Result<(Upstream, http::uri::PathAndQuery), DialError> {
        let origin = Arc::new(Origin::parse(url.split_once('?').map_or(url, |(before, _)| before))?);
        let path = path_of(url)?;
        let addresses = match origin.host() {
            Host::Address(address) => Arc::from([*address]),
            Host::Name(name) => self.resolver.resolve(name, std::time::Instant::now()).await?,
        };
        let tcp = self.reach(&origin, &addresses, Instant::now() + self.connect_timeout).await?;
        let transport = match origin.scheme() {
            Scheme::Http => Transport::Plain(tcp),
            Scheme::Https => self.trust.handshake(tcp, origin.host_name()).await?,
        };
        if transport.is_h2() {
            return Err(DialError::new(Class::Protocol, "an identity service speaks HTTP/1.1"));
        }
        let cork = Box::new(Cork::new(transport));
        Ok((self.equip(Upstream::h1(origin, self.pool.clone(), cork, false)), path))
    }

    /// A pooled connection, or a new one; when `fresh`, one that was not open before. Waits no longer than the connect
    /// timeout.
    pub async fn connect(&self, origin: &Arc<Origin>, fresh: bool) -> Result<Upstream, DialError> {
        let since = fresh.then(std::time::Instant::now);
        if let Some(upstream) = self.pooled(origin, since).await {
            return Ok(upstream);
        }
        let limit = Instant::now() + self.connect_timeout;
        // Boxed, as all that is rare: its state would be part of every request's.
        match timeout_at(limit, Box::pin(self.open_in_turn(origin, since, limit))).await {
            Ok(opened) => opened,
            Err(_) => Err(DialError::new(Class::ConnectTimeout, "connecting to the provider took too long")),
        }
    }

    async fn pooled(&self, origin: &Arc<Origin>, since: Option<std::time::Instant>) -> Option<Upstream> {
        let now = std::time::Instant::now();
        if since.is_none()
            && let Some(cork) = self.pool.take(origin.pool_key(), now)
        {
            return Some(self.equip(Upstream::h1(origin.clone(), self.pool.clone(), cork, true)));
        }
        let shared = self.pool.share(origin.pool_key(), since, now)?;
        let stream = shared.spawn_stream().await.ok().flatten()?;
        Some(self.equip(Upstream::h2(origin.clone(), self.pool.clone(), stream, true)))
    }

    /// When an HTTP/2 connection dies, all its requests want a new one at once: the first opens it, the others share it.
    async fn open_in_turn(
        &self,
        origin: &Arc<Origin>,
        since: Option<std::time::Instant>,
        limit: Instant,
    ) -> Result<Upstream, DialError> {
        let turn = match self.pool.gate(origin.pool_key()) {
            Some(gate) => Some(gate.lock_owned().await),
            None => None,
        };
        if turn.is_some()
            && let Some(upstream) = self.pooled(origin, since).await
        {
            return Ok(upstream);
        }
        self.open(origin, limit).await
    }

    async fn open(&self, origin: &Arc<Origin>, limit: Instant) -> Result<Upstream, DialError> {
        let addresses = self.addresses(origin).await?;
        let tcp = self.reach(origin, &addresses, limit).await?;
        let transport = match origin.scheme() {
            Scheme::Http => Transport::Plain(tcp),
            Scheme::Https => self.trust.handshake(tcp, origin.host_name()).await?,
        };
        self.pool.count_opened();
        let is_h2 = transport.is_h2();
        let cork = Box::new(Cork::new(transport));
        if !is_h2 {
            return Ok(self.equip(Upstream::h1(origin.clone(), self.pool.clone(), cork, false)));
        }
        let shared = self.multiplex(cork).await?;
        let stream = shared.spawn_stream().await.ok().flatten().ok_or_else(no_streams)?;
        self.pool.put_shared(origin.pool_key(), shared, std::time::Instant::now());
        Ok(self.equip(Upstream::h2(origin.clone(), self.pool.clone(), stream, false)))
    }

    /// Each address in turn; one that swallows packets must not use up the time of the next.
    async fn reach(
        &self,
        origin: &Origin,
        addresses: &[IpAddr],
        limit: Instant,
    ) -> Result<tokio::net::TcpStream, DialError> {
        let mut failed = DialError::new(Class::Dns, "the provider's host name has no address");
        for (index, address) in addresses.iter().enumerate() {
            let left = limit.saturating_duration_since(Instant::now());
            let others = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
            let share = (left / others).max(MIN_PER_ADDRESS);
            let socket = SocketAddr::new(*address, origin.port());
            match tokio::time::timeout(share, Transport::connect(socket)).await {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(e)) => failed = e,
                Err(_) => failed = DialError::new(Class::ConnectTimeout, "connecting to the provider took too long"),
            }
            self.resolver.demote(origin.host_name(), *address);
        }
        Err(failed)
    }

    /// Resolved and judged. One forbidden address refuses them all: a name that mixes public and private addresses is
    /// what DNS rebinding looks like.
    async fn addresses(&self, origin: &Origin) -> Result<Arc<[IpAddr]>, DialError> {
        let addresses = match origin.host() {
            Host::Address(address) => Arc::from([*address]),
            Host::Name(name) => self.resolver.resolve(name, std::time::Instant::now()).await?,
        };
        for address in addresses.iter() {
            check_address(*address, origin.is_trusted())?;
        }
        Ok(addresses)
    }

    async fn multiplex(&self, cork: Box<Cork>) -> Result<ConnectionRef, DialError> {
        let mut settings = H2HandshakeSettings::new();
        settings.max_streams = self.max_streams;
        settings.ping_interval = Some(H2_PING);
        settings.stream_window_size = Some(STREAM_WINDOW);
        settings.connection_window_size = Some(self.connection_window());
        handshake(cork, settings)
            .await
            .map_err(|_| DialError::new(Class::Protocol, "the provider's HTTP/2 handshake failed"))
    }

    /// Room for every stream's window, so that clients who stopped reading cannot starve the others.
    fn connection_window(&self) -> u32 {
        let streams = u32::try_from(self.max_streams).unwrap_or(u32::MAX);
        STREAM_WINDOW.saturating_mul(streams).min(i32::MAX as u32)
    }

    fn equip(&self, mut upstream: Upstream) -> Upstream {
        upstream.set_timeouts(self.first_byte_timeout, self.idle_timeout);
        upstream
    }

    /// For the relay lane, where Pingora opens the socket: the address is resolved, judged and pinned here.
    /// The host is the SNI even for plain HTTP, because Pingora does not verify a peer without one. It checks names
    /// only, so a relayed `https://` address is refused by its handshake unless the certificate names it as a host.
    ///
    /// An upgrade needs HTTP/1; `first_byte` is the longest silence, before the answer and inside it.
    /// Addresses that were `tried` are left out, as long as there are others.
    pub async fn peer(
        &self,
        origin: &Origin,
        tried: &[IpAddr],
        is_upgrade: bool,
        first_byte: Duration,
    ) -> Result<HttpPeer, DialError> {
        let addresses = self.addresses(origin).await?;
        let left: Vec<IpAddr> = addresses.iter().copied().filter(|address| !tried.contains(address)).collect();
        let address = left.first().or(addresses.first());
        let address = address.ok_or_else(|| DialError::new(Class::Dns, "the provider's host name has no address"))?;
        let others = u32::try_from(left.len().max(1)).unwrap_or(u32::MAX);
        // One that swallows packets must not use up the time of the next.
        let connect_timeout = (self.connect_timeout / others).max(MIN_PER_ADDRESS);
        let mut peer =
            HttpPeer::new(SocketAddr::new(*address, origin.port()), origin.is_tls(), origin.host_name().to_owned());
        // Pingora's pool does not look at authorities or trust; the group keeps connections of unequal trust apart.
        peer.group_key = u64::from(origin.is_trusted());
        let options = &mut peer.options;
        options.connection_timeout = Some(connect_timeout);
        options.total_connection_timeout = Some(self.connect_timeout);
        options.read_timeout = Some(first_byte);
        options.write_timeout = Some(self.idle_timeout);
        options.idle_timeout = Some(self.pool_idle);
        options.alpn = if origin.is_tls() && !is_upgrade { ALPN::H2H1 } else { ALPN::H1 };
        options.max_h2_streams = self.max_streams;
        options.h2_ping_interval = Some(H2_PING);
        options.h2_stream_window_size = Some(STREAM_WINDOW);
        options.h2_connection_window_size = Some(self.connection_window());
        options.ca = self.trust.authorities();
        Ok(peer)
    }

    /// The relay lane could not connect: this address is tried last from now on. Adds it to those that were `tried`, and
    /// tells whether the origin has others.
    pub fn demote(&self, origin: &Origin, peer: &HttpPeer, tried: &mut Vec<IpAddr>) -> bool {
        let Some(address) = peer._address.as_inet().map(|address| address.ip()) else { return false };
        self.resolver.demote(origin.host_name(), address);
        tried.push(address);
        self.resolver.known(origin.host_name()).iter().any(|known| !tried.contains(known))
    }

    /// HTTP/1 connections waiting for a request, on all threads.
    pub fn idle_connections(&self) -> usize {
        usize::try_from(self.pool.counts().idle).unwrap_or(0)
    }

    pub fn pool_counts(&self) -> PoolCounts {
        self.pool.counts()
    }
}

fn no_streams() -> DialError {
    DialError::new(Class::Protocol, "the provider's HTTP/2 connection takes no streams")
}

#[cfg(test)]
mod tests;
