//! How the proxy leaves: drained on SIGTERM, replaced without a gap by a hand-over.

use crate::raw::{Wire, credentials, post};
use bench::process::Signal;
use futures::StreamExt as _;
use harness::{Client, Database, Stack, until};
use http::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

const PATIENCE: Duration = Duration::from_secs(30);

fn stream_of(chunks: u32, delay_ms: u32) -> Value {
    let script = json!({ "mock": { "chunks": chunks, "chunk_delay_ms": delay_ms } }).to_string();
    json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": script }] })
}

/// A stream whose first bytes have arrived; the rest is read by the task.
async fn begin(client: &Client, body: &Value) -> JoinHandle<Result<String, reqwest::Error>> {
    let request = client.request(Method::POST, "/chat/completions").json(body);
    let mut bytes = request.send().await.expect("the stream begins").bytes_stream();
    let first = bytes.next().await.expect("a first piece comes").expect("and is whole");
    tokio::spawn(async move {
        let mut text = String::from_utf8_lossy(&first).into_owned();
        while let Some(piece) = bytes.next().await {
            text.push_str(&String::from_utf8_lossy(&piece?));
        }
        Ok(text)
    })
}

#[tokio::test]
async fn sigterm_turns_readiness_off_at_once_finishes_streams_and_exits_when_idle() {
    let mut stack = Stack::start().await;
    let stream = begin(&stack.client(), &stream_of(40, 50)).await;
    stack.proxy.signal(Signal::TERM);
    let ready = format!("{}/readyz", stack.metrics_url);
    until("readiness is off", async || reqwest::get(&ready).await.is_ok_and(|answer| answer.status() == 503)).await;
    let address = format!("127.0.0.1:{}", stack.proxy_port);
    until("no new connection is taken", async || TcpStream::connect(&address).await.is_err()).await;
    assert!(stack.proxy.has_ended().is_none(), "a stream still runs");
    let text = stream.await.expect("the reader lives").expect("the stream is whole");
    assert!(text.trim_end().ends_with("data: [DONE]"), "the stream was cut: {text}");
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
}

/// Connections to this port that a process has accepted: before that they have no inode.
fn accepted(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the system has sockets");
    let local = format!(":{port:04X}");
    let is_accepted = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        matches!(fields[..], [_, at, _, ESTABLISHED, _, _, _, _, _, inode, ..] if at.ends_with(&local) && inode != "0")
    };
    table.lines().filter(is_accepted).count()
}

#[tokio::test]
async fn whoever_was_let_in_is_answered_though_they_take_a_moment_to_ask() {
    let mut stack = Stack::start().await;
    let mut wires = Vec::new();
    for _ in 0..20 {
        wires.push(Wire::open(stack.proxy_port).await);
    }
    until("the connections are accepted", async || accepted(stack.proxy_port) >= 20).await;
    stack.proxy.signal(Signal::TERM);
    let address = format!("127.0.0.1:{}", stack.proxy_port);
    until("no new connection is taken", async || TcpStream::connect(&address).await.is_err()).await;
    // The moment itself, longer than an idle process stays.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    for wire in &mut wires {
        wire.send(post("/v1/chat/completions", &credentials(&stack), &body)).await;
    }
    for wire in &mut wires {
        assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200));
    }
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
}

#[tokio::test]
async fn a_stream_longer_than_the_drain_timeout_does_not_keep_the_process() {
    let mut stack = Stack::builder().proxy("DRAIN_TIMEOUT_S", "1").start().await;
    let stream = begin(&stack.client(), &stream_of(2000, 50)).await;
    stack.proxy.signal(Signal::TERM);
    stack.proxy.ended_within(PATIENCE).await;
    assert!(stream.await.expect("the reader lives").is_err(), "the client sees that the stream was cut");
}

/// Applications that call all the time, each call over a connection of its own: a kept one may be closed between two
/// requests, and clients know that.
struct Callers {
    answered: Arc<AtomicU64>,
    failed: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Callers {
    async fn start(stack: &Stack) -> Self {
        let mut callers =
            Self { answered: Arc::default(), failed: Arc::default(), over: Arc::default(), tasks: Vec::new() };
        for _ in 0..4 {
            let calling =
                call_until_over(stack.client(), callers.answered.clone(), callers.failed.clone(), callers.over.clone());
            callers.tasks.push(tokio::spawn(calling));
        }
        callers.until_more_are_answered("calls are answered").await;
        callers
    }

    async fn until_more_are_answered(&self, what: &str) {
        let before = self.answered.load(Ordering::Relaxed);
        until(what, async || self.answered.load(Ordering::Relaxed) > before + 20).await;
    }

    async fn all_were_answered(self) {
        self.over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("the caller lives");
        }
        let failed = self.failed.lock().unwrap();
        assert!(failed.is_empty(), "beside {} answered calls: {failed:?}", self.answered.load(Ordering::Relaxed));
    }
}

async fn call_until_over(
    client: Client,
    answered: Arc<AtomicU64>,
    failed: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
) {
    while !over.load(Ordering::Relaxed) {
        match call(&client).await {
            Ok(()) => _ = answered.fetch_add(1, Ordering::Relaxed),
            Err(why) => failed.lock().unwrap().push(why),
        }
    }
}

async fn call(client: &Client) -> Result<(), String> {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let request = client.request(Method::POST, "/chat/completions").header("connection", "close").json(&body);
    let answer = request.send().await.map_err(|error| format!("not answered: {error:?}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| format!("{status}, then {error:?}"))?;
    if status == 200 { Ok(()) } else { Err(format!("{status}: {text}")) }
}

#[tokio::test]
async fn a_hand_over_refuses_no_connection_and_cuts_no_stream() {
    let mut stack = Stack::start().await;
    let stream = begin(&stack.client(), &stream_of(80, 50)).await;
    let callers = Callers::start(&stack).await;

    let mut successor = stack.start_another_proxy(&["--upgrade"]);
    let socket = stack.folder.path().join("upgrade.sock");
    until("the successor waits for the sockets", async || socket.exists()).await;
    stack.proxy.signal(Signal::QUIT);
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
    callers.until_more_are_answered("the successor answers alone").await;
    callers.all_were_answered().await;
    let text = stream.await.expect("the reader lives").expect("the stream is whole");
    assert!(text.trim_end().ends_with("data: [DONE]"), "the stream was cut: {text}");
    assert!(successor.has_ended().is_none());
}

/// Postgres behind a gate: whoever comes waits there until it is opened.
struct Gate {
    url: String,
    came: watch::Receiver<bool>,
    open: watch::Sender<bool>,
}

impl Gate {
    async fn closed(database: &Database) -> Self {
        let mut url = Url::parse(&database.url()).expect("the database has an address");
        let there = (url.host_str().expect("it has a host").to_owned(), url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        url.set_host(Some("127.0.0.1")).expect("a host can change");
        url.set_port(Some(port)).expect("a port can change");
        let (come, came) = watch::channel(false);
        let (open, opened) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                come.send_replace(true);
                let (there, mut opened) = (there.clone(), opened.clone());
                tokio::spawn(async move {
                    let _ = opened.wait_for(|is_open| *is_open).await;
                    if let Ok(mut there) = TcpStream::connect(there).await {
                        let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        });
        Self { url: url.into(), came, open }
    }
}

#[tokio::test]
async fn the_old_process_serves_until_the_new_one_could() {
    let mut stack = Stack::start().await;
    let callers = Callers::start(&stack).await;
    let socket = stack.folder.path().join("upgrade.sock");

    let gate = Gate::closed(&stack.database).await;
    // No copy on disk, either.
    let slow = [("DATABASE_URL", gate.url.as_str()), ("SNAPSHOT_DIR", "snapshot-of-the-new-one")];
    let mut successor = stack.start_changed_proxy(&["--upgrade"], &slow);
    until("the new one asks for something", async || *gate.came.borrow() || socket.exists()).await;
    assert!(!socket.exists(), "it asked for the sockets before it had anything to answer from");
    stack.proxy.signal(Signal::QUIT);
    callers.until_more_are_answered("the old one goes on").await;
    assert!(stack.proxy.has_ended().is_none() && successor.has_ended().is_none() && !socket.exists());

    gate.open.send_replace(true);
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
    callers.until_more_are_answered("the new one answers alone").await;
    callers.all_were_answered().await;
    assert!(successor.has_ended().is_none());
}

#[tokio::test]
async fn a_new_process_that_never_has_data_takes_nothing() {
    let mut stack = Stack::builder().proxy("UPGRADE_TIMEOUT_S", "1").start().await;
    let gate = Gate::closed(&stack.database).await;
    let blind = [("DATABASE_URL", gate.url.as_str()), ("SNAPSHOT_DIR", "snapshot-of-the-new-one")];
    let mut successor = stack.start_changed_proxy(&["--upgrade"], &blind);
    assert!(!successor.ended_within(PATIENCE).await.success());
    assert!(successor.log().contains("no data to answer from"), "{}", successor.log());
    assert!(stack.proxy.has_ended().is_none());
    assert_eq!(stack.client().post("/chat/completions", &harness::chat("Hello")).await.status, 200);
}

/// It asks for nothing, and must not be answered by a process that is about to end.
#[tokio::test]
async fn a_connection_that_waits_is_closed_when_the_process_begins_to_leave() {
    let mut stack = Stack::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    let asked = post("/v1/chat/completions", &credentials(&stack), &harness::chat("hello").to_string());
    wire.send(&asked).await;
    assert_eq!(wire.answer().await.expect("an answer").status, 200);
    let stream = begin(&stack.client(), &stream_of(40, 50)).await;
    stack.proxy.signal(Signal::TERM);
    assert!(wire.is_closed().await, "it was told");
    assert!(stack.proxy.has_ended().is_none(), "a stream still runs");
    let text = stream.await.expect("the reader lives").expect("the stream is whole");
    assert!(text.trim_end().ends_with("data: [DONE]"), "the stream was cut: {text}");
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
}
