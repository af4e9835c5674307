//! A provider whose answer has no end: a beginning, then the same bytes again and again, until nobody reads them.

use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub struct Endless {
    port: u16,
    progress: watch::Receiver<Progress>,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    sent: u64,
    has_left: bool,
}

impl Endless {
    /// Serves one request.
    pub async fn start(content_type: &str, start: &str, unit: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n{start}");
        let unit: Arc<[u8]> = unit.as_bytes().into();
        let (told, progress) = watch::channel(Progress::default());
        tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.expect("somebody comes");
            let mut request = vec![0; 64 << 10];
            let mut held = 0;
            // The bodies of these tests are short and come with their heads or right after.
            while !request[..held].ends_with(b"}") {
                held += tcp.read(&mut request[held..]).await.expect("a request comes");
            }
            let mut sent = 0;
            let mut next = head.as_bytes();
            while tcp.write_all(next).await.is_ok() {
                sent += next.len() as u64;
                next = &unit;
                told.send_replace(Progress { sent, has_left: false });
            }
            told.send_replace(Progress { sent, has_left: true });
        });
        Self { port, progress }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub async fn until_sent(&self, least: u64) {
        let mut progress = self.progress.clone();
        progress.wait_for(|progress| progress.sent >= least).await.expect("it goes on");
    }

    /// How much it sent until its reader had left.
    pub async fn until_left(&self) -> u64 {
        let mut progress = self.progress.clone();
        progress.wait_for(|progress| progress.has_left).await.expect("it goes on").sent
    }
}
