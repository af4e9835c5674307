//! The new process of a hand-over: asks the old one for its listening sockets, once it could serve with them.
//!
//! Pingora would ask first and start afterwards, while the old process leaves a few seconds after it was asked: clients
//! of a slow start would meet a process without data, and those of a failed one nobody. Here asking is the last step,
//! and the old process serves until then. What is sent is Pingora's: the addresses as text, the sockets beside it.

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use pingora_core::server::{Fds, ListenFds, ShutdownWatch};
use pingora_core::services::{ServiceReadyNotifier, ServiceWithDependents};
use proxy::snapshot::Snapshot;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::collections::HashSet;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};

/// Pingora's sender cuts the text off here.
const MAX_TEXT: usize = 2048;
/// The kernel passes no more in one message.
const MAX_SOCKETS: usize = 253;

/// Starts when its dependencies are ready, and is ready itself when it has the sockets.
pub struct TakeOver {
    /// Where the old process finds us.
    pub socket: PathBuf,
    pub patience: Duration,
    pub snapshot: Arc<Snapshot>,
    /// What our listeners will look for.
    pub addresses: HashSet<String>,
}

#[async_trait]
impl ServiceWithDependents for TakeOver {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        _shutdown: ShutdownWatch,
        _listeners_per_fd: usize,
        ready: ServiceReadyNotifier,
    ) {
        match self.take().await {
            Ok(taken) => {
                if let Some(table) = fds {
                    *table.lock() = taken;
                }
                tracing::info!("the listening sockets were taken over");
                ready.notify_ready();
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "nothing was taken over; the old proxy goes on");
                std::process::exit(1);
            }
        }
    }

    fn name(&self) -> &str {
        "take over"
    }

    fn threads(&self) -> Option<usize> {
        Some(1)
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }
}

impl TakeOver {
    async fn take(&self) -> anyhow::Result<Fds> {
        ensure!(self.snapshot.is_loaded(), "there is no data to answer from after {:?}", self.patience);
        let path = &self.socket;
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("UPGRADE_SOCK: {}", path.display()));
            }
            _ => {}
        }
        let listener = UnixListener::bind(path).with_context(|| format!("UPGRADE_SOCK: {}", path.display()))?;
        tracing::info!("ready to take the listening sockets over: SIGQUIT makes the old proxy send them");
        let received = tokio::time::timeout(self.patience, receive(&listener)).await;
        let _ = std::fs::remove_file(path);
        let (text, sockets) = received.with_context(|| format!("nobody sent sockets in {:?}", self.patience))??;
        self.table(&text, sockets)
    }

    /// A socket that none of our listeners serves is closed: the kernel would send connections to it as before.
    fn table(&self, text: &str, sockets: Vec<OwnedFd>) -> anyhow::Result<Fds> {
        let names: Vec<&str> = text.split_ascii_whitespace().collect();
        ensure!(!sockets.is_empty(), "no sockets came");
        ensure!(names.len() == sockets.len(), "{} sockets came with {} addresses", sockets.len(), names.len());
        let mut table = Fds::new();
        for (name, socket) in names.into_iter().zip(sockets) {
            if self.addresses.contains(name) {
                table.add(name.to_owned(), socket.into_raw_fd());
            } else {
                tracing::warn!(address = name, "a socket of the old proxy that nobody here serves is closed");
            }
        }
        Ok(table)
    }
}

/// Whether Pingora can send so many sockets. It would cut their addresses off, and leave all the same.
pub fn can_be_sent(addresses: &HashSet<String>) -> bool {
    let text: usize = addresses.iter().map(|address| address.len() + 1).sum();
    text <= MAX_TEXT && addresses.len() <= MAX_SOCKETS
}

async fn receive(listener: &UnixListener) -> io::Result<(String, Vec<OwnedFd>)> {
    let (stream, _) = listener.accept().await?;
    stream.async_io(Interest::READABLE, || message(&stream)).await
}

fn message(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut text = [0; MAX_TEXT];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let came = recvmsg(stream, &mut [IoSliceMut::new(&mut text)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = part {
            sockets.extend(some);
        }
    }
    if came.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other("more sockets came than can be taken"));
    }
    let text = text.get(..came.bytes).and_then(|text| str::from_utf8(text).ok());
    let text = text.ok_or_else(|| io::Error::other("what came is no list of addresses"))?;
    Ok((text.to_owned(), sockets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use tempfile::TempDir;

    fn taking(folder: &TempDir, addresses: &[String]) -> TakeOver {
        TakeOver {
            socket: folder.path().join("upgrade.sock"),
            patience: Duration::from_secs(60),
            snapshot: Arc::new(Snapshot::empty()),
            addresses: addresses.iter().cloned().collect(),
        }
    }

    /// The kernel's name of a socket, by which two descriptors are told to be one.
    fn inode(fd: i32) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{fd}")).expect("the descriptor is open")
    }

    #[tokio::test]
    async fn every_socket_that_pingora_sends_arrives_under_its_address() {
        let folder = tempfile::tempdir().unwrap();
        // More than Pingora itself would take.
        let addresses: Vec<String> = (0..40).map(|index| format!("127.0.0.1:{index}")).collect();
        let mut sent = Fds::new();
        for address in addresses.iter().chain([&"nobody:1".to_owned()]) {
            sent.add(address.clone(), TcpListener::bind("127.0.0.1:0").unwrap().into_raw_fd());
        }
        let inodes: Vec<PathBuf> = addresses.iter().map(|address| inode(*sent.get(address).unwrap())).collect();
        let taking = taking(&folder, &addresses);
        let listener = UnixListener::bind(&taking.socket).unwrap();
        let path = taking.socket.to_string_lossy().into_owned();
        let sending = tokio::task::spawn_blocking(move || sent.send_to_sock(path.as_str()).unwrap());
        let (text, sockets) = receive(&listener).await.unwrap();
        sending.await.unwrap();
        let table = taking.table(&text, sockets).unwrap();
        for (address, expected) in addresses.iter().zip(inodes) {
            assert_eq!(inode(*table.get(address).unwrap()), expected, "{address}");
        }
        assert!(table.get("nobody:1").is_none());
    }

    #[tokio::test]
    async fn nothing_is_asked_for_without_data() {
        let folder = tempfile::tempdir().unwrap();
        let taking = taking(&folder, &[]);
        let refused = taking.take().await.err().expect("there is no data");
        assert!(refused.to_string().contains("no data") && !taking.socket.exists(), "{refused}");
    }

    #[test]
    fn more_addresses_than_fit_are_not_sent() {
        let addresses = |threads: usize| (0..threads).map(|index| format!("0.0.0.0:{}8787", "0".repeat(index)));
        for (threads, fits) in [(1, true), (32, true), (50, true), (64, false)] {
            assert_eq!(can_be_sent(&addresses(threads).collect()), fits, "{threads}");
        }
    }
}
