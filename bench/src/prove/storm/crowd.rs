//! Three hundred applications that want more than they may have, most of them at the first proxy and few at the last.
//! Whose proxy is gone goes to the next one, as a balancer would send it.

use crate::prove::client::{Caller, Connection, chat};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub const CLIENTS: usize = 300;
/// Of ten clients, so many begin at each proxy.
const WEIGHTS: [usize; 3] = [6, 3, 1];
/// Between two rounds of a client: all of them together want several times what there is, and take some seconds to use it.
const PAUSE: Duration = Duration::from_secs(3);
/// An answer that has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(15);
/// What each call says, and how long its provider thinks about it.
const WORDS: u64 = 90;
const THINKS_MS: u64 = 50;

/// What clients met, of one limit.
#[derive(Debug, Default)]
pub struct Met {
    pub passed: AtomicU64,
    pub refused: AtomicU64,
    /// 503: nobody could say how much is left.
    pub unknown: AtomicU64,
    /// Sent, and no answer came.
    pub cut: AtomicU64,
    /// Answered in any other way.
    pub odd: AtomicU64,
}

/// Who calls on account of one limit: at each proxy.
pub struct Party {
    pub callers: Vec<Caller>,
    pub met: Arc<Met>,
}

pub struct Crowd {
    stop: watch::Sender<bool>,
    clients: JoinSet<()>,
}

impl Crowd {
    /// Every client calls on account of each limit in turn.
    pub fn start(parties: Vec<Party>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let parties = Arc::new(parties);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(client(number, parties.clone(), stopped.clone()));
        }
        Self { stop, clients }
    }

    /// Lets every client finish what it has begun.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        while let Some(client) = self.clients.join_next().await {
            client?;
        }
        Ok(())
    }
}

/// At which proxy a client begins.
fn home(number: usize) -> usize {
    let place = number % WEIGHTS.iter().sum::<usize>();
    let mut end = 0;
    let is_here = |weight: &usize| {
        end += weight;
        place < end
    };
    WEIGHTS.iter().position(is_here).unwrap_or(0)
}

async fn client(number: usize, parties: Arc<Vec<Party>>, mut stopped: watch::Receiver<bool>) {
    let body = call();
    let (mut at, mut reused) = (home(number), None);
    let mut pause = PAUSE * number as u32 / CLIENTS as u32;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        for party in parties.iter() {
            let exchanged = tokio::time::timeout(PATIENCE, exchange(party, &body, &mut at, &mut reused)).await;
            let count = match exchanged {
                Ok(Some(StatusCode::OK)) => &party.met.passed,
                Ok(Some(StatusCode::TOO_MANY_REQUESTS | StatusCode::PRECONDITION_FAILED)) => &party.met.refused,
                Ok(Some(StatusCode::SERVICE_UNAVAILABLE)) => &party.met.unknown,
                Ok(Some(_)) => &party.met.odd,
                Ok(None) | Err(_) => {
                    reused = None;
                    &party.met.cut
                }
            };
            count.fetch_add(1, Relaxed);
        }
        pause = PAUSE;
    }
}

/// The status of one call; none when no answer came.
async fn exchange(party: &Party, body: &Value, at: &mut usize, reused: &mut Option<Connection>) -> Option<StatusCode> {
    let mut connection = match reused.take().filter(Connection::is_open) {
        Some(connection) => connection,
        None => connect(party, at).await?,
    };
    let answer = connection.send(party.callers[*at].post_json("/v1/chat/completions", body)).await.ok()?;
    let status = answer.status();
    answer.into_body().collect().await.ok()?;
    *reused = Some(connection);
    Some(status)
}

async fn connect(party: &Party, at: &mut usize) -> Option<Connection> {
    for _ in 0..party.callers.len() {
        match party.callers[*at].connect().await {
            Ok(connection) => return Some(connection),
            Err(_) => *at = (*at + 1) % party.callers.len(),
        }
    }
    None
}

/// A call of a known price whose length is bounded, as strict budgets want it.
fn call() -> Value {
    let mut body = chat(&json!({ "words": WORDS, "latency_ms": THINKS_MS }), false);
    body["model"] = json!("gpt-4o");
    body["max_tokens"] = json!(WORDS);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_clients_begin_at_the_first_proxy_and_few_at_the_last() {
        let mut homes = [0; 3];
        (0..CLIENTS).for_each(|number| homes[home(number)] += 1);
        assert_eq!(homes, [180, 90, 30]);
    }
}
