//! The product as a user meets it: the real admin and proxy processes on free ports, a fresh database, and a mock
//! provider inside the test.

use crate::client::Client;
use crate::{Database, Process};
use bench::mock::{self, Mock};
use bench::ports::Reservation;
use http::StatusCode;
use serde_json::{Value, json};
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::secrets::seal::Keyring;
use shared::{bootstrap, settings};
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

const READY_WITHIN: Duration = Duration::from_secs(180);
const KEY_PREFIX: &str = "pk_";

/// A running product. Everything ends with it.
pub struct Stack {
    /// Where clients go; ends in `/v1`.
    pub base_url: String,
    /// The admin service itself; ends in `/v1`.
    pub admin_url: String,
    /// Metrics, `/healthz` and `/readyz` of the proxy, without a path.
    pub metrics_url: String,
    pub proxy_port: u16,
    pub mock: Mock,
    pub database: Database,
    pub proxy: Process,
    pub admin: Option<Process>,
    /// The tenant that exists from the start.
    pub home: Organisation,
    /// Working folder of the processes, with their logs.
    pub folder: TempDir,
    http: Client,
    plan: Builder,
    ports: Vec<Reservation>,
}

/// A tenant with its two keys. Its short forms speak for the admin key.
#[derive(Debug, Clone)]
pub struct Organisation {
    pub id: Uuid,
    pub workspace_id: Uuid,
    pub admin_key: String,
    /// All scopes that a workspace key can have.
    pub workspace_key: String,
    client: Client,
}

/// What differs from the usual stack.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    proxy_environment: Vec<(String, String)>,
    admin_environment: Vec<(String, String)>,
    mock: mock::Options,
    has_no_admin: bool,
    is_unawaited: bool,
}

impl Builder {
    /// A setting of the proxy.
    pub fn proxy(mut self, name: &str, value: impl Into<String>) -> Self {
        self.proxy_environment.push((name.to_owned(), value.into()));
        self
    }

    /// A setting of the admin service.
    pub fn admin(mut self, name: &str, value: impl Into<String>) -> Self {
        self.admin_environment.push((name.to_owned(), value.into()));
        self
    }

    pub fn mock(mut self, options: mock::Options) -> Self {
        self.mock = options;
        self
    }

    pub fn without_admin(mut self) -> Self {
        self.has_no_admin = true;
        self
    }

    /// Returns before the processes are ready, for tests of starting itself.
    pub fn without_waiting(mut self) -> Self {
        self.is_unawaited = true;
        self
    }

    pub async fn start(self) -> Stack {
        Stack::start_with(self).await
    }
}

impl Stack {
    pub async fn start() -> Self {
        Builder::default().start().await
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    async fn start_with(plan: Builder) -> Self {
        let database = Database::with_log_days().await;
        let mock = Mock::start(plan.mock.clone());
        let ports: Vec<_> = (0..3).map(|_| Reservation::any().expect("ports are free")).collect();
        let [proxy_port, admin_port, metrics_port] = [ports[0].port(), ports[1].port(), ports[2].port()];
        let base_url = format!("http://127.0.0.1:{proxy_port}/v1");
        let http = Client::new(&base_url);
        let home = first_organisation(&database, &http).await;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let keyring = Keyring::generate("test").expect("keys can be made");
        std::fs::write(folder.path().join("keyring"), keyring).expect("the folder can be written");
        let environment = usual_environment(&database, [proxy_port, admin_port, metrics_port]);
        let start = |binary: &str, more: &[(String, String)]| {
            Process::start(binary, &[], &[&environment[..], more].concat(), folder.path())
        };
        let admin = (!plan.has_no_admin).then(|| start("gateway-admin", &plan.admin_environment));
        let proxy = start("gateway-proxy", &plan.proxy_environment);
        let mut stack = Self {
            base_url,
            admin_url: format!("http://127.0.0.1:{admin_port}/v1"),
            metrics_url: format!("http://127.0.0.1:{metrics_port}"),
            proxy_port,
            mock,
            database,
            proxy,
            admin,
            home,
            folder,
            http,
            plan,
            ports,
        };
        if !stack.plan.is_unawaited {
            stack.until_ready().await;
        }
        stack
    }

    /// Waits until both processes say that they are ready; a process that dies fails the test.
    pub async fn until_ready(&mut self) {
        if let Some(admin) = &mut self.admin {
            until_ready(&format!("{}/readyz", self.admin_url.trim_end_matches("/v1")), admin).await;
        }
        until_ready(&format!("{}/readyz", self.metrics_url), &mut self.proxy).await;
        until_ready(self.base_url.trim_end_matches("v1"), &mut self.proxy).await;
    }

    /// A proxy with the same settings, ports and folder beside the present one, for instance with `--upgrade`.
    pub fn start_another_proxy(&self, arguments: &[&str]) -> Process {
        self.start_changed_proxy(arguments, &[])
    }

    /// The same with some settings of its own.
    pub fn start_changed_proxy(&self, arguments: &[&str], changed: &[(&str, &str)]) -> Process {
        let ports = [self.ports[0].port(), self.ports[1].port(), self.ports[2].port()];
        let changed = changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let usual = usual_environment(&self.database, ports);
        let environment = [usual, self.plan.proxy_environment.clone(), changed].concat();
        Process::start("gateway-proxy", arguments, &environment, self.folder.path())
    }

    /// One more proxy with the same settings on the same database, with ports and state of its own.
    pub async fn replica(&self) -> Replica {
        let ports = [(); 2].map(|()| Reservation::any().expect("ports are free"));
        let [proxy, metrics] = [0, 1].map(|at: usize| ports[at].port());
        let own = |name: &str, value: String| (name.to_owned(), value);
        let state = [
            own("SNAPSHOT_DIR", format!("snapshot-{proxy}")),
            own("JOURNAL_DIR", format!("journal-{proxy}")),
            own("UPGRADE_SOCK", format!("upgrade-{proxy}.sock")),
        ];
        let usual = usual_environment(&self.database, [proxy, self.ports[1].port(), metrics]);
        let environment = [&usual[..], &state, &self.plan.proxy_environment].concat();
        let mut process = Process::start("gateway-proxy", &[], &environment, self.folder.path());
        let metrics_url = format!("http://127.0.0.1:{metrics}");
        until_ready(&format!("{metrics_url}/readyz"), &mut process).await;
        Replica { base_url: format!("http://127.0.0.1:{proxy}/v1"), metrics_url, process, _ports: ports }
    }

    /// Starts admin where it was before, or would have been, and waits until it is ready.
    pub async fn start_admin(&mut self) {
        let ports = [self.ports[0].port(), self.ports[1].port(), self.ports[2].port()];
        let environment = [usual_environment(&self.database, ports), self.plan.admin_environment.clone()].concat();
        self.admin = Some(Process::start("gateway-admin", &[], &environment, self.folder.path()));
        self.until_ready().await;
    }

    /// A client without credentials.
    pub fn anonymous(&self) -> Client {
        self.http.clone()
    }

    /// An application: the workspace key, and the mock as its OpenAI.
    pub fn client(&self) -> Client {
        self.as_application(&self.home.workspace_key)
    }

    /// The same with another key.
    pub fn as_application(&self, key: &str) -> Client {
        let client = self.http.with_key(key).with("x-gateway-provider", "openai");
        client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", self.mock.url())
    }

    /// An administrator of the first tenant.
    pub fn administrator(&self) -> Client {
        self.home.client.clone()
    }

    /// One more tenant.
    pub async fn organisation(&self) -> Organisation {
        let mut client = self.database.client().await;
        let name = format!("Tenant {}", Uuid::new_v4().simple());
        let made = bootstrap::create_organisation(&mut client, &name, "owner@tenant.test", KEY_PREFIX).await;
        let made = made.expect("an organisation can be made");
        let workspace_key = new_key(&self.database, made.workspace_id, &all_scopes()).await;
        self.until_known(&workspace_key).await;
        let client = self.http.with_key(&made.admin_key.key);
        Organisation {
            id: made.organisation_id,
            workspace_id: made.workspace_id,
            admin_key: made.admin_key.key,
            workspace_key,
            client,
        }
    }

    /// A key of the first tenant's workspace with just these scopes, known to the proxy.
    pub async fn key(&self, scopes: &[&str]) -> String {
        let key = new_key(&self.database, self.home.workspace_id, scopes).await;
        self.until_known(&key).await;
        key
    }

    /// Waits until the proxy no longer refuses the key as unknown.
    pub async fn until_known(&self, key: &str) {
        let client = self.http.with_key(key);
        self.until("the proxy knows the key", async || client.get("/models").await.status != StatusCode::UNAUTHORIZED)
            .await;
    }

    /// Polls a condition; fails the test when it does not come true.
    pub async fn until(&self, what: &str, is_true: impl AsyncFn() -> bool) {
        until(what, is_true).await;
    }

    /// One value from the proxy's metrics, by the line's whole beginning (name and labels).
    pub async fn metric(&self, line: &str) -> Option<f64> {
        metric(&self.metrics_url, line).await
    }

    /// The same, awaited: what is counted when a call is over may be counted after its client has the answer.
    pub async fn until_metric(&self, line: &str, value: f64) {
        self.until(&format!("{line} is {value}"), async || self.metric(line).await == Some(value)).await;
    }
}

/// One more proxy beside that of a stack.
pub struct Replica {
    /// Ends in `/v1`.
    pub base_url: String,
    pub metrics_url: String,
    pub process: Process,
    _ports: [Reservation; 2],
}

impl Replica {
    pub async fn metric(&self, line: &str) -> Option<f64> {
        metric(&self.metrics_url, line).await
    }
}

async fn metric(url: &str, line: &str) -> Option<f64> {
    let text = Client::new(url).get("/metrics").await.text();
    text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' ')?.parse().ok())
}

impl Organisation {
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub async fn get(&self, path: &str) -> crate::client::Answer {
        self.client.get(path).await
    }

    /// Creates something and returns it as it was answered.
    pub async fn create(&self, path: &str, body: Value) -> Value {
        let answer = self.client.post(path, &body).await;
        assert!(answer.status.is_success(), "POST {path}: {} {}", answer.status, answer.text());
        answer.json()
    }
}

/// A chat request for the mock.
pub fn chat(content: &str) -> Value {
    json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": content }] })
}

/// Polls a condition until it is true, at most as long as a start may take.
pub async fn until(what: &str, is_true: impl AsyncFn() -> bool) {
    let end = tokio::time::Instant::now() + READY_WITHIN;
    while !is_true().await {
        assert!(tokio::time::Instant::now() < end, "waited {READY_WITHIN:?} in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn until_ready(address: &str, process: &mut Process) {
    let http = Client::new(address);
    let end = tokio::time::Instant::now() + READY_WITHIN;
    loop {
        let answer = http.request(http::Method::GET, "").send().await;
        if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
            return;
        }
        if let Some(status) = process.has_ended() {
            panic!("the process behind {address} ended with {status}");
        }
        assert!(tokio::time::Instant::now() < end, "{address} is not ready after {READY_WITHIN:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn usual_environment(database: &Database, [proxy, admin, metrics]: [u16; 3]) -> Vec<(String, String)> {
    let settings = [
        ("DATABASE_URL", database.url()),
        ("DATABASE_POOL_SIZE", "4".to_owned()),
        ("PROXY_HOST", "127.0.0.1".to_owned()),
        ("PROXY_PORT", proxy.to_string()),
        ("PROXY_THREADS", "2".to_owned()),
        ("ADMIN_PORT", admin.to_string()),
        ("ADMIN_ADDRESSES", format!("127.0.0.1:{admin}")),
        ("METRICS_PORT", metrics.to_string()),
        ("SNAPSHOT_DIR", "snapshot".to_owned()),
        ("JOURNAL_DIR", "journal".to_owned()),
        ("JOURNAL_SHIP_MS", "50".to_owned()),
        ("LOG_PACK_SECONDS", "0".to_owned()),
        ("LOG_STORE_URL", "file://logs".to_owned()),
        ("GATEWAY_MASTER_KEY_FILE", "keyring".to_owned()),
        ("UPGRADE_SOCK", "upgrade.sock".to_owned()),
        ("TRUSTED_CUSTOM_HOSTS", "localhost,127.0.0.1,::1".to_owned()),
        ("DRAIN_TIMEOUT_S", "10".to_owned()),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

async fn first_organisation(database: &Database, http: &Client) -> Organisation {
    let settings = settings::Bootstrap {
        bootstrap_organisation: "Default".into(),
        bootstrap_owner_email: "owner@localhost".into(),
        bootstrap_admin_key: None,
    };
    let mut client = database.client().await;
    let made = bootstrap::run(&mut client, &settings, KEY_PREFIX).await.expect("bootstrapping works");
    let made = made.expect("a fresh database has no organisation");
    Organisation {
        id: made.organisation_id,
        workspace_id: made.workspace_id,
        workspace_key: new_key(database, made.workspace_id, &all_scopes()).await,
        client: http.with_key(&made.admin_key.key),
        admin_key: made.admin_key.key,
    }
}

async fn new_key(database: &Database, workspace: Uuid, scopes: &[&str]) -> String {
    let client = database.client().await;
    let made = bootstrap::create_workspace_key(&client, workspace, "Test key", scopes, KEY_PREFIX).await;
    made.expect("a key can be made").key
}

fn all_scopes() -> Vec<&'static str> {
    scopes::all_for(KeyKind::WorkspaceService)
}
