//! What an operator gets wrong at night: each mistake is told at once, and none of them ends a service that works.

use bench::ports::Reservation;
use bench::process::{Signal, signal};
use harness::{Database, Process, Stack, chat, until};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// What the program says when it does not start with this in its environment.
async fn refusal(settings: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let usual = [
        ("DATABASE_URL", "postgres://gateway@127.0.0.1:1/gateway"),
        ("JOURNAL_DIR", "journal"),
        ("SNAPSHOT_DIR", "snapshot"),
        ("LOG_STORE_URL", "file://logs"),
        ("UPGRADE_SOCK", "upgrade.sock"),
    ];
    let all: Vec<(String, String)> =
        usual.iter().chain(settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut process = Process::start("gateway-proxy", &[], &all, folder.path());
    let status = process.ended_within(SOON).await;
    assert!(!status.success(), "{settings:?}: {}", process.log());
    process.log()
}

#[tokio::test]
async fn an_address_that_no_store_can_have_stops_the_start_by_name() {
    for (name, value, says) in [
        // These started, and refused or passed requests for want of a store.
        ("DATABASE_URL", "nonsense", "DATABASE_URL is not a Postgres URL"),
        ("DATABASE_LISTEN_URL", "db.example.com", "DATABASE_LISTEN_URL is not a Postgres URL"),
        ("REDIS_URL", "cache:hunter2@6379", "REDIS_URL is not a Redis URL"),
        ("REDIS_URL", "redis://127.0.0.1:6379,foo", "REDIS_URL is not a Redis URL"),
        ("ADMIN_ADDRESSES", "admin", "ADMIN_ADDRESSES: `admin` is not `host:port`"),
        // It started, and never logged a line.
        ("LOG_LEVEL", "verbos", "LOG_LEVEL: `verbos` is no level"),
    ] {
        let said = refusal(&[(name, value)]).await;
        assert!(said.contains(says) && !said.contains("hunter2"), "{name}={value}: {said}");
    }
}

#[tokio::test]
async fn a_variable_that_is_almost_a_setting_is_warned_of() {
    let stack = Stack::builder().proxy("PROXY_PROT", "1").admin("ACESS_LOG", "ON").start().await;
    let said = stack.proxy.log();
    assert!(said.contains("PROXY_PROT") && said.contains("\"meant\":\"PROXY_PORT\""), "{said}");
    let said = stack.admin.as_ref().unwrap().log();
    assert!(said.contains("ACESS_LOG") && said.contains("\"meant\":\"ACCESS_LOG\""), "{said}");
}

#[tokio::test]
async fn an_admin_whose_name_does_not_resolve_keeps_no_proxy_from_serving() {
    let stack = Stack::builder().without_admin().proxy("ADMIN_ADDRESSES", "no-such-host.invalid:8788").start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    assert_eq!(stack.administrator().get("/configs").await.status, 503);
}

#[tokio::test]
async fn a_hand_over_that_nobody_takes_ends_nothing() {
    let mut stack = Stack::builder().proxy("UPGRADE_TIMEOUT_S", "5").start().await;
    // It left five seconds later, with nobody in its place.
    stack.proxy.signal(Signal::QUIT);
    until("it says that nobody came", async || stack.proxy.log().contains("no new proxy waits")).await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    assert!(stack.proxy.has_ended().is_none());

    let mut successor = stack.start_another_proxy(&["--upgrade"]);
    let socket = stack.folder.path().join("upgrade.sock");
    until("the successor waits for the sockets", async || socket.exists()).await;
    stack.proxy.signal(Signal::QUIT);
    assert!(stack.proxy.ended_within(SOON).await.success(), "a later one works as ever");
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    assert!(successor.has_ended().is_none());
}

/// A proxy whose log goes into a pipe; killed when dropped.
struct Piped(Mutex<Child>);

impl Drop for Piped {
    fn drop(&mut self) {
        let mut child = self.0.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn with_piped_log(database: &Database, folder: &Path, port: u16, metrics: u16) -> Piped {
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("gateway-proxy");
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    for (name, value) in [
        ("DATABASE_URL", database.url()),
        ("PROXY_PORT", port.to_string()),
        ("METRICS_PORT", metrics.to_string()),
        ("PROXY_THREADS", "1".to_owned()),
        ("DRAIN_TIMEOUT_S", "600".to_owned()),
    ] {
        command.env(name, value);
    }
    for (name, value) in [
        ("JOURNAL_DIR", "journal"),
        ("SNAPSHOT_DIR", "snapshot"),
        ("LOG_STORE_URL", "file://logs"),
        ("UPGRADE_SOCK", "upgrade.sock"),
    ] {
        command.env(name, value);
    }
    Piped(Mutex::new(command.spawn().expect("the proxy is built")))
}

#[tokio::test]
async fn a_reader_of_the_log_that_dies_does_not_keep_the_proxy_from_leaving() {
    let database = Database::fresh().await;
    let folder = tempfile::tempdir().unwrap();
    let ports = [Reservation::any().unwrap(), Reservation::any().unwrap()];
    let proxy = with_piped_log(&database, folder.path(), ports[0].port(), ports[1].port());
    let mut first = String::new();
    let read = proxy.0.lock().unwrap().stderr.take().unwrap();
    BufReader::new(read).read_line(&mut first).unwrap();
    assert!(!first.is_empty(), "it says something, and then nobody listens any more");
    let ready = format!("http://127.0.0.1:{}/readyz", ports[1].port());
    until("it is ready", async || reqwest::get(&ready).await.is_ok_and(|answer| answer.status() == 200)).await;
    // It stayed for all of DRAIN_TIMEOUT_S: the line `left` had been a panic.
    signal(proxy.0.lock().unwrap().id(), Signal::TERM).unwrap();
    until("it has left", async || proxy.0.lock().unwrap().try_wait().unwrap().is_some_and(|end| end.success())).await;
}
