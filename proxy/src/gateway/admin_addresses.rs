//! Where the admin processes are, by `ADMIN_ADDRESSES`. Names are resolved again while the proxy runs: in a container
//! network an admin that was made anew has another address, and one that is away has none at all. Neither may keep a
//! proxy from starting, nor send it to an address where nobody is any more.

use async_trait::async_trait;
use parking_lot::Mutex;
use pingora_core::Result;
use pingora_load_balancing::Backend;
use pingora_load_balancing::discovery::ServiceDiscovery;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};

pub struct AdminAddresses {
    names: Vec<String>,
    /// What each name last resolved to; kept when a name server does not answer.
    known: Mutex<BTreeMap<String, Vec<SocketAddr>>>,
    /// Nobody has asked yet: what was resolved at the start is answered at once.
    is_fresh: AtomicBool,
}

impl AdminAddresses {
    pub fn new(names: &[String]) -> anyhow::Result<Self> {
        let mut known = BTreeMap::new();
        for name in names {
            anyhow::ensure!(has_port(name), "ADMIN_ADDRESSES: `{name}` is not `host:port`, as 127.0.0.1:8788");
            match name.to_socket_addrs() {
                Ok(found) => drop(known.insert(name.clone(), found.collect())),
                Err(error) => tracing::warn!(name, %error, "an address of ADMIN_ADDRESSES does not resolve yet"),
            }
        }
        Ok(Self { names: names.to_vec(), known: Mutex::new(known), is_fresh: AtomicBool::new(true) })
    }

    /// As far as they are known, without asking anybody.
    fn known(&self) -> BTreeSet<Backend> {
        let known = self.known.lock();
        known.values().flatten().filter_map(|address| Backend::new(&address.to_string()).ok()).collect()
    }
}

#[async_trait]
impl ServiceDiscovery for AdminAddresses {
    async fn discover(&self) -> Result<(BTreeSet<Backend>, HashMap<u64, bool>)> {
        if self.is_fresh.swap(false, Ordering::Relaxed) {
            return Ok((self.known(), HashMap::new()));
        }
        for name in self.names.iter().filter(|name| name.parse::<SocketAddr>().is_err()) {
            match tokio::net::lookup_host(name).await {
                Ok(found) => drop(self.known.lock().insert(name.clone(), found.collect())),
                Err(error) => tracing::debug!(name, %error, "an address of ADMIN_ADDRESSES does not resolve"),
            }
        }
        Ok((self.known(), HashMap::new()))
    }
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(names: &[&str]) -> anyhow::Result<AdminAddresses> {
        AdminAddresses::new(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn an_address_needs_a_port_and_says_so() {
        for (name, is_fine) in
            [("127.0.0.1:8788", true), ("[::1]:8788", true), ("admin", false), ("admin:http", false), (":8788", false)]
        {
            let made = addresses(&[name]);
            assert_eq!(made.is_ok(), is_fine, "{name}");
            if let Err(error) = made {
                assert!(error.to_string().starts_with(&format!("ADMIN_ADDRESSES: `{name}` is not `host:port`")));
            }
        }
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_keeps_nobody_from_starting() {
        let made = addresses(&["127.0.0.1:8788", "no-such-host.invalid:8788"]).unwrap();
        let expected: BTreeSet<Backend> = [Backend::new("127.0.0.1:8788").unwrap()].into();
        assert_eq!(made.known(), expected);
        assert_eq!(made.discover().await.unwrap().0, expected, "before anybody was asked");
        assert_eq!(made.discover().await.unwrap().0, expected, "and after");
    }
}
