//! A stand-in for OpenAI (also at Azure), Anthropic, Gemini (also at Vertex), Bedrock and Cohere, used by `make run`, the tests and the bench. It answers deterministically,
//! counts its own tokens (a quarter of the characters of each text, rounded up; or words of one token each), remembers what it received, and fails
//! exactly as a request asks it to (see `fault`). It runs on a thread of its own, so that a test that blocks its
//! runtime does not block its provider.

mod answer;
mod anthropic;
mod ask;
pub mod authority;
mod batches;
mod bedrock;
mod bill;
mod body;
mod buckets;
mod cohere;
mod control;
pub mod counts;
mod event_stream;
pub mod fault;
mod fields;
mod gemini;
mod mcp;
mod objects;
mod openai;
pub mod pattern;
mod question;
mod receive;
mod record;
mod reply;
mod responses;
mod route;
mod sample;
mod server;
mod shape;
mod small_wires;
mod state;
mod tools;
mod top_level;
mod vendor_table;
mod vendors;
mod websocket;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::oneshot;

pub use authority::{Authority, Identity};
pub use bill::{BillKey, Billed};
pub use counts::Counts;
pub use fault::Fault;
pub use record::Recorded;
pub use reply::words_of;
use state::State;
pub use state::now_ns;

#[derive(Debug, Clone)]
pub struct Options {
    pub host: IpAddr,
    /// 0 picks a free port.
    pub port: u16,
    pub tls: Option<Tls>,
    /// How many requests are remembered; 0 saves the copying.
    pub remember: usize,
    /// Whether it keeps a bill (see `bill`).
    pub bills: bool,
}

/// A second port that speaks TLS.
#[derive(Debug, Clone)]
pub struct Tls {
    pub port: u16,
    pub identity: Identity,
    /// Whether ALPN offers h2 beside http/1.1.
    pub h2: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0, tls: None, remember: 100, bills: false }
    }
}

/// A running mock provider. Dropping it closes its ports and every connection.
pub struct Mock {
    state: Arc<State>,
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Mock {
    /// As `try_start`, for tests.
    pub fn start(options: Options) -> Self {
        Self::try_start(options).expect("the mock provider's ports must be free and its certificate valid")
    }

    pub fn try_start(options: Options) -> io::Result<Self> {
        let plain = listen(options.host, options.port)?;
        let address = plain.local_addr()?;
        let tls = match &options.tls {
            Some(tls) => Some((listen(options.host, tls.port)?, server::acceptor(&tls.identity, tls.h2)?)),
            None => None,
        };
        let tls_address = tls.as_ref().map(|(listener, _)| listener.local_addr()).transpose()?;
        let state = Arc::new(State::new(options.remember, options.bills));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = state.clone();
        let thread = std::thread::Builder::new().name("mock-provider".into()).spawn(move || {
            // The answer does not matter: a dropped sender stops the server as well.
            let _ = runtime.block_on(async {
                tokio::select! {
                    ended = server::run(plain, tls, serving) => ended,
                    _ = stopped => Ok(()),
                }
            });
        })?;
        Ok(Self { state, address, tls_address, stop: Some(stop), thread: Some(thread) })
    }

    /// What a client would configure as base URL or custom host: ends in `/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls_address
    }

    /// Base URL of the TLS port, by the name its certificate is expected to carry.
    pub fn tls_url(&self) -> Option<String> {
        self.tls_address.map(|address| format!("https://localhost:{}/v1", address.port()))
    }

    pub fn counts(&self) -> Counts {
        self.state.counts()
    }

    /// Waits until the counts satisfy `condition`. The caller decides how long that may take.
    pub async fn until(&self, condition: impl Fn(&Counts) -> bool) -> Counts {
        loop {
            let changed = self.state.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let counts = self.counts();
            if condition(&counts) {
                return counts;
            }
            changed.await;
        }
    }

    /// What it would bill, where it keeps a bill.
    pub fn bill(&self) -> BTreeMap<BillKey, Billed> {
        self.state.bill.as_ref().map(bill::Bill::read).unwrap_or_default()
    }

    /// How many words of an answer left, by the tag of its request (see `fault`); only of answers that are over.
    pub fn spoken(&self) -> BTreeMap<String, u64> {
        self.state.spoken()
    }

    /// The last requests, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.requests()
    }

    /// Queues faults for the next requests: a JSON array of faults as in the `fault` module.
    pub fn script(&self, faults: Value) -> Result<(), serde_json::Error> {
        self.state.script(serde_json::from_value(faults)?);
        Ok(())
    }

    /// Forgets counts, requests, queued faults, files and batches.
    pub fn reset(&self) {
        self.state.reset();
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server thread already failed the requests that met it.
            let _ = thread.join();
        }
    }
}

fn listen(host: IpAddr, port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((host, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
