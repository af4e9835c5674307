//! Free ports that stay ours between choosing and binding. Asking the kernel for port 0 and closing the socket hands
//! out numbers that any outgoing connection may take a moment later; so numbers come from below the usual ephemeral
//! range, and a lock file keeps other programs of ours, also other test processes, away from them.

use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port on loopback that nobody else of ours will choose while this value lives.
#[derive(Debug)]
pub struct Reservation {
    port: u16,
    _lock: File,
}

impl Reservation {
    pub fn any() -> anyhow::Result<Self> {
        let offset = rand_offset();
        let candidates = (0..COUNT).map(|step| FIRST + (offset + step) % COUNT);
        candidates.into_iter().find_map(Self::take).context("no free port on 127.0.0.1")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn take(port: u16) -> Option<Self> {
        let lock = OpenOptions::new().create(true).append(true).open(lock_folder()?.join(port.to_string())).ok()?;
        lock.try_lock().ok()?;
        is_free(port).then_some(Self { port, _lock: lock })
    }
}

/// Whether nobody listens on this port of 127.0.0.1.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Lock files of one user; another user's folder is not ours to write in.
fn lock_folder() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("portcullis-ports-{user}"));
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

/// Where to begin looking, so that processes started together do not all try the same numbers in the same order.
fn rand_offset() -> u16 {
    u16::try_from(uuid::Uuid::new_v4().as_u128() % u128::from(COUNT)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_free_and_is_not_handed_out_twice() {
        let held: Vec<_> = (0..50).map(|_| Reservation::any().unwrap()).collect();
        let mut ports: Vec<_> = held.iter().map(Reservation::port).collect();
        assert!(ports.iter().all(|port| is_free(*port)), "{ports:?}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
        assert!(Reservation::take(ports[0]).is_none());
    }

    #[test]
    fn a_port_with_a_listener_is_not_reserved() {
        let reserved = Reservation::any().unwrap();
        let port = reserved.port();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        drop(reserved);
        assert!(Reservation::take(port).is_none());
    }
}
