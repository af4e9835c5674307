//! Rates in a real Redis, alone and as a Cluster: exactly as many calls pass as may.

use super::replica::{PATIENCE, Replica, TOKENS, ask, limit, settings};
use super::{limited, requests};
use bench::ports::Reservation;
use bench::process::{self, Signal};
use harness::{Database, Stack, chat};
use proxy::limits::{LimitKind, Spent, Unit, Why, Window};
use serde_json::json;
use shared::settings;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// A server of the test's own.
pub struct Server {
    child: Child,
    pub url: String,
    _folder: TempDir,
    _ports: [Reservation; 2],
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub async fn start(is_cluster: bool) -> Self {
        let (folder, ports) = (TempDir::new().unwrap(), [(); 2].map(|()| Reservation::any().unwrap()));
        let [port, bus] = [0, 1].map(|at: usize| ports[at].port().to_string());
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder.path());
        if is_cluster {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus]);
        }
        let child = command.stdout(Stdio::null()).spawn().expect("redis-server is installed (make setup-test)");
        let comma = if is_cluster { "," } else { "" };
        let server = Self { child, url: format!("redis://127.0.0.1:{port}{comma}"), _folder: folder, _ports: ports };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_err() {
            assert!(Instant::now() < end, "redis-server does not listen");
            sleep(Duration::from_millis(20)).await;
        }
        if is_cluster {
            let said = |arguments: &[&str]| {
                let answer = Command::new("redis-cli").args(["-p", &port]).args(arguments).output().unwrap();
                String::from_utf8_lossy(&answer.stdout).into_owned()
            };
            said(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
            while !said(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
                assert!(Instant::now() < end, "the cluster is not complete");
                sleep(Duration::from_millis(20)).await;
            }
        }
        server
    }

    fn replica(&self, folder: &TempDir, name: &str, database: &Database) -> Arc<Replica> {
        let limits =
            settings::LimitSettings { redis_url: Some(self.url.clone()), limits_wait_ms: 5000, ..settings().limits };
        Arc::new(Replica::start_with(&folder.path().join(name), database.settings(), limits))
    }
}

#[tokio::test]
async fn a_window_in_redis_admits_exactly_its_cap_alone_and_in_a_cluster() {
    const CAP: u64 = 100;
    let database = Database::fresh().await;
    for is_cluster in [false, true] {
        let (server, folder) = (Server::start(is_cluster).await, TempDir::new().unwrap());
        let replicas = ["a", "b"].map(|name| server.replica(&folder, name, &database));
        let home = Uuid::new_v4();
        let day = LimitKind::Rate(Window::Day);
        let (rate, wide) = (limit(home, Unit::Requests, day, CAP), limit(home, Unit::Tokens, day, 1_000_000));
        for replica in &replicas {
            reached(replica).await;
        }
        let clients: Vec<_> = (0..40)
            .map(|client| {
                let (replica, rate, wide) = (replicas[client % 2].clone(), rate.clone(), wide.clone());
                tokio::spawn(async move {
                    let asks = [ask(&wide, TOKENS), ask(&rate, 1)];
                    let mut passed = 0;
                    for _ in 0..10 {
                        match replica.call(&asks).await {
                            Ok(()) => passed += 1,
                            Err(refusal) => assert_eq!((refusal.index, refusal.why), (1, Why::Rate)),
                        }
                    }
                    passed
                })
            })
            .collect();
        let mut passed = 0;
        for client in clients {
            passed += client.await.unwrap();
        }
        assert_eq!(passed, CAP, "in a cluster: {is_cluster}");
        given_back(&replicas[0], home).await;
    }
}

/// What a call does not use can be used by others, and what another limit refuses takes nothing.
async fn given_back(replica: &Replica, home: Uuid) {
    let rate = limit(home, Unit::Tokens, LimitKind::Rate(Window::Hour), 1000);
    let spent = LimitKind::Budget { strict: true, since: 1 };
    let none = limit(home, Unit::Tokens, spent, 0);
    assert_eq!(replica.reserve(&[ask(&rate, 900), ask(&none, 1)]).await.err().unwrap().why, Why::Budget);
    let taken = replica.reserve(&[ask(&rate, 900)]).await.unwrap();
    assert_eq!(taken.standings().next().unwrap().remaining, 100);
    assert_eq!(replica.reserve(&[ask(&rate, 900)]).await.err().unwrap().remaining, 100);
    taken.settle(Spent { requests: 1, tokens: 100, nano_cents: 0 });
    let end = Instant::now() + PATIENCE;
    while let Err(refusal) = replica.reserve(&[ask(&rate, 900)]).await {
        assert!(Instant::now() < end, "{refusal:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

async fn reached(replica: &Replica) {
    let probe = limit(Uuid::new_v4(), Unit::Requests, LimitKind::Rate(Window::Day), 1);
    let end = Instant::now() + PATIENCE;
    while let Err(refusal) = replica.reserve(&[ask(&probe, 1)]).await {
        assert!(refusal.why == Why::StoreAway && Instant::now() < end, "{refusal:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn rates_are_refused_while_redis_is_away_and_budgets_go_on() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let server = Server::start(false).await;
    let replica = server.replica(&folder, "a", &database);
    reached(&replica).await;
    drop(server);
    let home = Uuid::new_v4();
    let rate = limit(home, Unit::Requests, LimitKind::Rate(Window::Day), 100);
    let refusal = replica.reserve(&[ask(&rate, 1)]).await.err().unwrap();
    assert_eq!(refusal.why, Why::StoreAway);
    let budget = limit(home, Unit::Requests, LimitKind::Budget { strict: true, since: 1 }, 100);
    let end = Instant::now() + PATIENCE;
    while let Err(refusal) = replica.reserve(&[ask(&budget, 1)]).await {
        assert!(Instant::now() < end, "{refusal:?}");
    }
}

#[tokio::test]
async fn a_frozen_redis_holds_nobody_up_and_calls_go_by_the_setting() {
    for (setting, status, metric) in
        [("closed", 503, "gateway_limits_store_away_refused_total"), ("open", 200, "gateway_limits_unleased_total")]
    {
        const CALLS: usize = 20;
        const CAP: u64 = 1000;
        const SAID: &str = "Redis does not answer";
        let server = Server::start(false).await;
        let settings = Stack::builder().proxy("REDIS_URL", &server.url).proxy("LIMITS_WAIT_MS", "500");
        let stack = settings.proxy("LIMITS_STORE_AWAY", setting).start().await;
        let client = limited(&stack, json!({ "rate_limits": requests("rpd", CAP) })).await;
        let ask = async || client.post("/chat/completions", &chat("Hello")).await;
        let is_counted = async || {
            let left = ask().await.header("x-ratelimit-remaining-requests").parse::<u64>();
            left.is_ok_and(|left| left < CAP)
        };
        stack.until("Redis counts", &is_counted).await;
        let said = stack.proxy.log().matches(SAID).count();
        let counted = stack.metric(metric).await.unwrap();
        let failures = async || stack.metric("gateway_limits_store_failures_total").await.unwrap_or(0.0);
        let before = failures().await;
        process::signal(server.child.id(), Signal::STOP).unwrap();
        // A call that waited until the connection is given up, and tried anew, would take longer than all of these.
        let all = async {
            for _ in 0..CALLS {
                assert_eq!(ask().await.status, status, "{setting}");
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("they wait no longer than they may");
        stack.until_metric(metric, counted + CALLS as f64).await;
        let asked = failures().await - before;
        assert!(
            (1.0..CALLS as f64).contains(&asked),
            "{asked} asked it; once it is known to be away, most do not wait"
        );
        assert_eq!(stack.proxy.log().matches(SAID).count(), said + 1, "it is said once");
        process::signal(server.child.id(), Signal::CONT).unwrap();
        stack.until("Redis counts again", &is_counted).await;
    }
}

#[tokio::test]
async fn a_rate_of_zero_lets_nothing_pass_in_redis_nor_without_it() {
    let server = Server::start(false).await;
    let settings = Stack::builder().proxy("REDIS_URL", &server.url).proxy("LIMITS_STORE_AWAY", "open");
    let stack = settings.start().await;
    for kind in ["requests", "tokens"] {
        let limits = json!({ "rate_limits": [{ "type": kind, "unit": "rpd", "value": 0 }] });
        let client = limited(&stack, limits).await;
        let answer = client.post("/chat/completions", &chat("Hello")).await;
        assert_eq!(answer.status, 429, "{kind}: {}", answer.text());
    }
    let client = limited(&stack, json!({ "rate_limits": requests("rpd", 0) })).await;
    drop(server);
    assert_eq!(client.post("/chat/completions", &chat("Hello")).await.status, 429, "whoever is away");
}
