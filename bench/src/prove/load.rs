//! Steady load while something else happens: clients that keep their connection, clients that open one for each
//! request, and streams. Everything that a user would notice is counted.

use super::client::{Caller, Connection};
use anyhow::ensure;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Between two requests of one client: the load is to be steady, not heavy.
const PAUSE: Duration = Duration::from_millis(10);
const EVENTS: usize = 20;

/// What clients met.
#[derive(Debug, Default)]
pub struct Tally {
    pub answered: u64,
    pub streams: u64,
    /// A kept connection was closed between two requests; the next one went out on a new connection.
    pub reconnected: u64,
    pub refused: u64,
    /// Everything else, by what was said.
    pub failed: BTreeMap<String, u64>,
}

impl Tally {
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    fn fail(&mut self, why: impl Display) {
        *self.failed.entry(why.to_string()).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.streams += other.streams;
        self.reconnected += other.reconnected;
        self.refused += other.refused;
        for (why, times) in other.failed {
            *self.failed.entry(why).or_default() += times;
        }
    }
}

pub struct Load {
    stop: watch::Sender<bool>,
    workers: JoinSet<Tally>,
}

impl Load {
    pub fn start(caller: &Caller) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut workers = JoinSet::new();
        for _ in 0..6 {
            workers.spawn(keeping(caller.clone(), stopped.clone()));
        }
        for _ in 0..4 {
            workers.spawn(opening(caller.clone(), stopped.clone()));
        }
        for _ in 0..10 {
            workers.spawn(streaming(caller.clone(), stopped.clone()));
        }
        Self { stop, workers }
    }

    /// Lets every client finish what it has begun, and adds up.
    pub async fn stop(mut self) -> anyhow::Result<Tally> {
        self.stop.send_replace(true);
        let mut all = Tally::default();
        while let Some(tally) = self.workers.join_next().await {
            all.add(tally?);
        }
        Ok(all)
    }
}

/// As SDKs do: one connection for many requests, and a new one when the server has closed it.
async fn keeping(caller: Caller, stopped: watch::Receiver<bool>) -> Tally {
    let mut tally = Tally::default();
    let mut reused: Option<Connection> = None;
    while !*stopped.borrow() {
        let held = reused.take().filter(Connection::is_open);
        let was_held = held.is_some();
        let mut connection = match held {
            Some(connection) => connection,
            None => match connect(&caller, &mut tally).await {
                Some(connection) => connection,
                None => continue,
            },
        };
        match exchange(&caller, &mut connection).await {
            Ok(StatusCode::OK) => {
                tally.answered += 1;
                reused = Some(connection);
            }
            Ok(status) => tally.fail(status),
            // Closed between two requests: every client must expect this, and sends again.
            Err(_) if was_held => tally.reconnected += 1,
            Err(error) => tally.fail(error),
        }
        tokio::time::sleep(PAUSE).await;
    }
    tally
}

async fn opening(caller: Caller, stopped: watch::Receiver<bool>) -> Tally {
    let mut tally = Tally::default();
    while !*stopped.borrow() {
        if let Some(mut connection) = connect(&caller, &mut tally).await {
            match exchange(&caller, &mut connection).await {
                Ok(StatusCode::OK) => tally.answered += 1,
                Ok(status) => tally.fail(status),
                Err(error) => tally.fail(error),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    tally
}

async fn streaming(caller: Caller, stopped: watch::Receiver<bool>) -> Tally {
    let mut tally = Tally::default();
    while !*stopped.borrow() {
        if let Some(connection) = connect(&caller, &mut tally).await {
            match stream(&caller, connection, EVENTS, Duration::from_millis(100)).await {
                Ok(()) => tally.streams += 1,
                Err(error) => tally.fail(format!("a stream: {error:#}")),
            }
        }
    }
    tally
}

async fn connect(caller: &Caller, tally: &mut Tally) -> Option<Connection> {
    match caller.connect().await {
        Ok(connection) => Some(connection),
        Err(error) => {
            match error.kind() {
                ErrorKind::ConnectionRefused => tally.refused += 1,
                _ => tally.fail(format!("connecting: {error}")),
            }
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

async fn exchange(caller: &Caller, connection: &mut Connection) -> hyper::Result<StatusCode> {
    let answer = connection.send(caller.chat(&json!({}), false)).await?;
    let status = answer.status();
    answer.into_body().collect().await?;
    Ok(status)
}

/// One stream, read to its proper end.
pub async fn stream(caller: &Caller, mut connection: Connection, events: usize, pause: Duration) -> anyhow::Result<()> {
    let fault = json!({ "chunks": events, "chunk_delay_ms": pause.as_millis() as u64 });
    let answer = connection.send(caller.chat(&fault, true)).await?;
    ensure!(answer.status() == 200, "status {}", answer.status());
    let text = answer.into_body().collect().await?.to_bytes();
    ensure!(text.ends_with(b"data: [DONE]\n\n"), "it was cut");
    Ok(())
}
