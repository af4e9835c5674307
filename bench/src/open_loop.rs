//! Load at a fixed rate, whatever the answers do: each call is due at its moment, and its time counts from there. A
//! client that waits for one answer before it sends the next would be slowed down by what it measures, and leave out
//! just the calls that would have waited longest.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A call that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct OpenLoop {
    pub address: SocketAddr,
    /// A whole request of HTTP/1.1.
    pub request: Bytes,
    /// Calls a second.
    pub rate: f64,
    pub length: Duration,
    /// Calls at the beginning that are made and not measured.
    pub warm_up: Duration,
    /// Enough that a call seldom waits for one.
    pub connections: usize,
}

/// What was met.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub calls: u64,
    /// From the moment a call was due to its whole answer, sorted.
    pub times: Vec<Duration>,
    /// By what was said.
    pub failed: BTreeMap<String, u64>,
}

impl Outcome {
    /// The smallest time that at least this share of the calls does not exceed.
    pub fn percentile(&self, share: f64) -> Duration {
        let rank = (self.times.len() as f64 * share).ceil() as usize;
        self.times.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.times.extend(other.times);
        self.times.sort_unstable();
        for (why, times) in other.failed {
            *self.failed.entry(why).or_default() += times;
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |share: f64| self.percentile(share).as_secs_f64() * 1000.0;
        let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(ms);
        write!(f, "{} calls, p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms, max {max:.1} ms", self.calls)
    }
}

/// The calls of one run, shared by its connections.
struct Schedule {
    start: Instant,
    apart: Duration,
    calls: u64,
    measured_from: u64,
    next: AtomicU64,
    due: Semaphore,
}

impl OpenLoop {
    /// Makes all calls and waits for their answers.
    pub async fn run(&self) -> anyhow::Result<Outcome> {
        let calls = |length: Duration| (length.as_secs_f64() * self.rate) as u64;
        let schedule = Arc::new(Schedule {
            // A moment for the connections.
            start: Instant::now() + Duration::from_millis(200),
            apart: Duration::from_secs_f64(1.0 / self.rate),
            calls: calls(self.warm_up + self.length),
            measured_from: calls(self.warm_up),
            next: AtomicU64::new(0),
            due: Semaphore::new(0),
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.connections {
            workers.spawn(work(self.clone(), schedule.clone()));
        }
        let (clock, connections) = (schedule.clone(), self.connections);
        // A thread of its own: the runtime's timers know milliseconds only.
        let clock = thread::Builder::new().name("load clock".into()).spawn(move || clock.tick(connections))?;
        let mut outcome = Outcome { calls: schedule.calls - schedule.measured_from, ..Outcome::default() };
        while let Some(part) = workers.join_next().await {
            outcome.add(part?);
        }
        if clock.join().is_err() {
            bail!("the clock of the load stopped");
        }
        Ok(outcome)
    }
}

impl Schedule {
    fn due_at(&self, call: u64) -> Instant {
        self.start + self.apart.mul_f64(call as f64)
    }

    /// Lets each call go when it is due, and everybody at the end.
    fn tick(&self, connections: usize) {
        for call in 0..self.calls {
            let wait = self.due_at(call).saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                thread::sleep(wait);
            }
            self.due.add_permits(1);
        }
        self.due.add_permits(connections);
    }
}

async fn work(load: OpenLoop, schedule: Arc<Schedule>) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut connection, mut buffer) = (None, Vec::with_capacity(16 << 10));
    loop {
        match schedule.due.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return outcome,
        }
        let call = schedule.next.fetch_add(1, Relaxed);
        if call >= schedule.calls {
            return outcome;
        }
        if schedule.due_at(call).elapsed() > PATIENCE {
            // All connections are held up; the run must end nevertheless.
            *outcome.failed.entry(format!("not sent within {PATIENCE:?}")).or_default() += 1;
            continue;
        }
        let exchanged = tokio::time::timeout(PATIENCE, exchange(&load, &mut connection, &mut buffer)).await;
        let exchanged = exchanged.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {PATIENCE:?}")));
        let took = schedule.due_at(call).elapsed();
        if let Err(error) = exchanged {
            connection = None;
            *outcome.failed.entry(format!("{error:#}")).or_default() += 1;
        } else if call >= schedule.measured_from {
            outcome.times.push(took);
        }
    }
}

/// One request and its whole answer, on the connection that is there or a new one.
async fn exchange(load: &OpenLoop, reused: &mut Option<TcpStream>, seen: &mut Vec<u8>) -> anyhow::Result<()> {
    let tcp = match reused {
        Some(tcp) => tcp,
        None => {
            let tcp = TcpStream::connect(load.address).await.context("connecting")?;
            tcp.set_nodelay(true)?;
            reused.insert(tcp)
        }
    };
    tcp.write_all(&load.request).await.context("sending")?;
    seen.clear();
    loop {
        if tcp.read_buf(seen).await.context("reading")? == 0 {
            bail!("the connection ended inside an answer");
        }
        if let Some(length) = answer_length(seen)? {
            match seen.len().cmp(&length) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(()),
                std::cmp::Ordering::Greater => bail!("more bytes came than the answer announced"),
            }
        }
    }
}

/// Length of head and body, once the head is there. Only status 200 with a length will do.
pub fn answer_length(seen: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&seen[..end]).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        bail!("{}: {}", head.lines().next().unwrap_or_default(), String::from_utf8_lossy(&seen[end..]));
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("the answer has no length")?.trim().parse()?;
    Ok(Some(end + 4 + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    #[test]
    fn an_answer_is_whole_when_its_length_is_there() {
        assert_eq!(answer_length(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n").unwrap(), None);
        assert_eq!(answer_length(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe").unwrap(), Some(43));
        assert!(answer_length(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").is_err());
    }

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times = (1..=1000).map(Duration::from_millis).collect();
        let outcome = Outcome { calls: 1000, times, ..Outcome::default() };
        let found = [0.5, 0.99, 0.999, 1.0].map(|share| outcome.percentile(share).as_millis());
        assert_eq!(found, [500, 990, 999, 1000]);
        assert_eq!(Outcome::default().percentile(0.99), Duration::ZERO);
    }

    /// A server that answers each of `connections` after a while, so that calls fall due meanwhile.
    #[tokio::test]
    async fn a_slow_answer_makes_the_calls_that_waited_for_it_slow_too() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let (mut request, mut is_first) = ([0; 1], true);
            while tcp.read_exact(&mut request).await.is_ok() {
                if std::mem::take(&mut is_first) {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                tcp.write_all(ANSWER).await.unwrap();
            }
        });
        let (rate, length) = (100.0, Duration::from_millis(300));
        let request = Bytes::from_static(b"?");
        let load = OpenLoop { address, request, rate, length, warm_up: Duration::ZERO, connections: 1 };
        let outcome = load.run().await.unwrap();
        assert_eq!((outcome.calls, outcome.times.len(), outcome.failures()), (30, 30, 0));
        // All thirty were due before the first answer came.
        assert!(outcome.times[0] >= Duration::from_millis(200), "{outcome}");
        server.abort();
    }
}
