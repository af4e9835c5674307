//! `gateway-admin` as a process: what it prints, what it logs, how it leaves.

use bench::ports::Reservation;
use bench::process::Signal;
use harness::{Client, Database, Process, until};
use serde_json::Value;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(30);

struct Machine {
    database: Database,
    folder: TempDir,
    port: Reservation,
}

impl Machine {
    async fn with(database: Database) -> Self {
        Self { database, folder: tempfile::tempdir().unwrap(), port: Reservation::any().unwrap() }
    }

    fn start(&self, arguments: &[&str], more: &[(&str, &str)]) -> Process {
        let port = self.port.port().to_string();
        let url = self.database.url();
        let environment =
            [("DATABASE_URL", url.as_str()), ("ADMIN_PORT", &port)].into_iter().chain(more.iter().copied());
        let environment: Vec<_> = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Process::start("gateway-admin", arguments, &environment, self.folder.path())
    }

    fn client(&self) -> Client {
        Client::new(&format!("http://127.0.0.1:{}/v1", self.port.port()))
    }

    async fn until_ready(&self) {
        let root = Client::new(&format!("http://127.0.0.1:{}", self.port.port()));
        let ask =
            async || root.request(http::Method::GET, "/readyz").send().await.is_ok_and(|answer| answer.status() == 200);
        until("admin is ready", ask).await;
    }
}

fn printed<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    log.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

#[tokio::test]
async fn the_first_start_on_an_empty_database_prints_a_working_key_once() {
    let machine = Machine::with(Database::blank().await).await;
    let mut first = machine.start(&[], &[]);
    machine.until_ready().await;
    let log = first.log();
    let key = printed(&log, "GATEWAY_ADMIN_KEY").expect("the key is printed");
    assert_eq!(machine.client().with_key(key).get("/api-keys/self").await.status, 200);
    assert_eq!(first.log().matches(key).count(), 1, "shown once, and in no log line");
    first.signal(Signal::TERM);
    assert!(first.ended_within(SOON).await.success());

    let second = machine.start(&[], &[]);
    machine.until_ready().await;
    assert_eq!(printed(&second.log(), "GATEWAY_ADMIN_KEY"), None);
    assert_eq!(machine.client().with_key(key).get("/api-keys/self").await.status, 200);
}

#[tokio::test]
async fn a_key_that_the_operator_gave_works_and_is_not_repeated() {
    let machine = Machine::with(Database::fresh().await).await;
    let key = shared::identity::api_key::generate("pk_");
    let process = machine.start(&[], &[("BOOTSTRAP_ADMIN_KEY", &key)]);
    machine.until_ready().await;
    assert_eq!(machine.client().with_key(&key).get("/api-keys/self").await.status, 200);
    assert!(!process.log().contains(&key));
}

#[tokio::test]
async fn a_further_organisation_gets_a_key_of_its_own() {
    let machine = Machine::with(Database::fresh().await).await;
    let mut keys = Vec::new();
    for name in ["One", "Two"] {
        let mut made = machine.start(&["create-organisation", "--name", name, "--owner-email", "o@x.test"], &[]);
        assert!(made.ended_within(SOON).await.success(), "{}", made.log());
        keys.push(printed(&made.log(), "GATEWAY_ADMIN_KEY").expect("the key is printed").to_owned());
    }
    let _serving = machine.start(&[], &[]);
    machine.until_ready().await;
    let mut organisations = Vec::new();
    for key in &keys {
        organisations
            .push(machine.client().with_key(key).get("/api-keys/self").await.json()["organisation_id"].clone());
    }
    assert_ne!(organisations[0], organisations[1]);
}

#[tokio::test]
async fn migrating_makes_the_tables_and_no_organisation() {
    let machine = Machine::with(Database::blank().await).await;
    let mut process = machine.start(&["migrate"], &[]);
    assert!(process.ended_within(SOON).await.success(), "{}", process.log());
    let row = machine.database.client().await.query_one("SELECT count(*) FROM organisations", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn an_unreachable_database_stops_the_start_with_a_sentence() {
    let machine = Machine::with(Database::blank().await).await;
    let nobody = Reservation::any().unwrap();
    let url = format!("postgres://u:hunter2@127.0.0.1:{}/x", nobody.port());
    let mut process = machine.start(&[], &[("DATABASE_URL", &url)]);
    assert!(!process.ended_within(SOON).await.success());
    let log = process.log();
    assert!(log.contains("cannot connect to Postgres at 127.0.0.1") && !log.contains("hunter2"), "{log}");
}

#[tokio::test]
async fn each_request_leaves_one_log_line_with_the_clients_address_and_no_secret() {
    let machine = Machine::with(Database::fresh().await).await;
    let process = machine.start(&[], &[]);
    machine.until_ready().await;
    let client =
        machine.client().with_key("pk_guess-of-a-key").with("x-forwarded-for", "6.6.6.6, 203.0.113.7, 127.0.0.9");
    let answer = client.get("/configs/pc-1?token=in-the-query").await;
    let id = answer.header("x-gateway-request-id").to_owned();
    let of_request = |line: &Value| line["request_id"] == id.as_str();
    let lines = || process.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>();
    until("the request is logged", async || lines().iter().any(of_request)).await;
    let lines: Vec<Value> = lines().into_iter().filter(of_request).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!(line["service"], "admin");
    assert_eq!(line["client_ip"], "203.0.113.7");
    assert_eq!((&line["method"], &line["path"]), (&"GET".into(), &"/v1/configs/pc-1".into()));
    assert_eq!((&line["status"], &line["error_code"]), (&401.into(), &"AB05".into()));
    assert_eq!(line["operation"], "/configs/{slug}");
    assert!(line["duration_ms"].is_number());
    let log = process.log();
    assert!(!log.contains("guess-of-a-key") && !log.contains("in-the-query"), "{log}");
}

#[tokio::test]
async fn a_request_that_has_begun_is_answered_before_the_process_leaves() {
    let machine = Machine::with(Database::fresh().await).await;
    let key = shared::identity::api_key::generate("pk_");
    let mut process = machine.start(&[], &[("BOOTSTRAP_ADMIN_KEY", &key)]);
    machine.until_ready().await;
    let mut slow = TcpStream::connect(("127.0.0.1", machine.port.port())).await.unwrap();
    let head =
        format!("POST /v1/configs HTTP/1.1\r\nhost: x\r\nx-gateway-api-key: {key}\r\ncontent-length: 4\r\n\r\n{{ ");
    slow.write_all(head.as_bytes()).await.unwrap();
    let root = Client::new(&format!("http://127.0.0.1:{}", machine.port.port()));
    // Two in flight: the slow one and the scrape itself.
    until("the request has begun", async || root.get("/metrics").await.text().contains("in_flight_requests 2")).await;
    process.signal(Signal::TERM);
    until("it was told to stop", async || process.log().contains("asked to stop")).await;
    assert!(process.has_ended().is_none(), "it waits for the slow request");
    slow.write_all(b" }").await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(process.ended_within(SOON).await.success(), "{}", process.log());
}
