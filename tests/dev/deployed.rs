//! What conf/deploy starts, started: our programs with the arguments, environment and folders of the units, of compose and of
//! the chart, on an empty database, until they answer the questions about health that stand there too.
//!
//! No systemd, Docker or cluster is needed, and what those add (users, rights, networks) is not met here: `tests/deploy` reads that.

use super::*;
use harness::{Database, python};
use serde::Deserialize;
use shared::secrets::seal::Keyring;

const PATIENCE: Duration = Duration::from_secs(180);
/// As Docker waits for one.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// One program as a file of conf/deploy starts it; see `tests/deploy/launches.py`.
#[derive(Debug, Deserialize)]
struct Launch {
    name: String,
    command: Vec<String>,
    environment: HashMap<String, String>,
    /// By the path at which the program finds it, which of the volumes it is.
    folders: HashMap<String, String>,
    probes: Vec<Probe>,
    /// A command that asks about health.
    check: Option<Vec<String>>,
    /// Whether it does something and ends.
    ends: bool,
}

#[derive(Debug, Deserialize)]
struct Probe {
    port: u16,
    path: String,
}

fn launches(way: &str) -> Vec<Launch> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let requirements = std::fs::read_to_string(folder.join("requirements.txt")).unwrap();
    let said = Command::new(python::with(&requirements)).arg(folder.join("launches.py")).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let mut all: HashMap<String, Vec<Launch>> = serde_json::from_slice(&said.stdout).unwrap();
    all.remove(way).unwrap()
}

/// Where it is all started: ports, folders and a database that are this test's own, instead of those that the files name.
struct Machine {
    database: Database,
    folder: TempDir,
    proxy: Reservation,
    admin: Reservation,
    metrics: Reservation,
    redis: Reservation,
}

impl Machine {
    async fn new() -> Self {
        let port = || Reservation::any().unwrap();
        let (proxy, admin, metrics, redis) = (port(), port(), port(), port());
        Self { database: Database::blank().await, folder: tempfile::tempdir().unwrap(), proxy, admin, metrics, redis }
    }

    /// The port instead of the one that stands in a file.
    fn port(&self, named: u16) -> u16 {
        match named {
            8787 => self.proxy.port(),
            8788 => self.admin.port(),
            9090 => self.metrics.port(),
            other => panic!("nobody listens at {other}"),
        }
    }

    /// A path or an address of a file with the volume that is mounted there.
    fn place(&self, launch: &Launch, value: &str) -> String {
        let mounted = launch.folders.iter().filter(|(path, _)| value.contains(path.as_str()));
        let Some((path, volume)) = mounted.max_by_key(|(path, _)| path.len()) else { return value.to_owned() };
        value.replacen(path, self.folder.path().join(volume).to_str().unwrap(), 1)
    }

    fn environment(&self, launch: &Launch) -> Vec<(String, String)> {
        // A default is a path of the file system, too.
        let mut named = default_paths();
        named.extend(launch.environment.clone());
        let mut environment: HashMap<String, String> =
            named.into_iter().map(|(name, value)| (name, self.place(launch, &value))).collect();
        for (name, value) in [
            ("DATABASE_URL", self.database.url()),
            ("PROXY_PORT", self.proxy.port().to_string()),
            ("ADMIN_PORT", self.admin.port().to_string()),
            ("METRICS_PORT", self.metrics.port().to_string()),
            ("ADMIN_ADDRESSES", format!("127.0.0.1:{}", self.admin.port())),
        ] {
            environment.insert(name.to_owned(), value);
        }
        if let Some(url) = environment.get_mut("REDIS_URL") {
            *url = format!("redis://127.0.0.1:{}", self.redis.port());
        }
        environment.into_iter().collect()
    }

    fn start(&self, launch: &Launch) -> Process {
        for volume in launch.folders.values() {
            std::fs::create_dir_all(self.folder.path().join(volume)).unwrap();
        }
        let environment = self.environment(launch);
        let setting = |name: &str| environment.iter().find(|(one, _)| one == name).map(|(_, value)| value);
        let keyring = Path::new(setting("GATEWAY_MASTER_KEY_FILE").unwrap());
        assert!(keyring.starts_with(self.folder.path()), "no volume with the keys: {}", keyring.display());
        if !keyring.exists() {
            std::fs::write(keyring, Keyring::generate("first").unwrap()).unwrap();
        }
        let program = Path::new(&launch.command[0]).file_name().unwrap().to_str().unwrap();
        let arguments: Vec<&str> = launch.command[1..].iter().map(String::as_str).collect();
        Process::start(program, &arguments, &environment, self.folder.path())
    }

    fn start_redis(&self, launch: &Launch) -> python::Server {
        let mut command = Command::new(&launch.command[0]);
        command.args(&launch.command[1..]).args(["--bind", "127.0.0.1", "--port", &self.redis.port().to_string()]);
        python::Server::start(command.current_dir(self.folder.path()))
    }

    /// Waits until all that asks about the health of the program is content.
    async fn until_healthy(&self, launch: &Launch) {
        for Probe { port, path } in &launch.probes {
            let address = format!("http://127.0.0.1:{}{path}", self.port(*port));
            let is_well = async || reqwest::get(&address).await.is_ok_and(|answer| answer.status() == 200);
            until(&format!("{} is well by {path}", launch.name), is_well).await;
        }
        if let Some([program, arguments @ ..]) = launch.check.as_deref() {
            let environment = self.environment(launch);
            let is_well = async || {
                let mut check = tokio::process::Command::new(program);
                check.args(arguments).envs(environment.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
                let ended = tokio::time::timeout(CHECK_TIMEOUT, check.output()).await;
                ended.is_ok_and(|output| output.unwrap().status.success())
            };
            until(&format!("{} is well by its check", launch.name), is_well).await;
        }
    }

    /// Whoever deployed it has the key that the first start of admin prints, and calls the proxy with it.
    async fn until_used(&self, admin: &Process) {
        let printed =
            |log: &str| log.lines().find_map(|line| line.strip_prefix("GATEWAY_ADMIN_KEY=").map(str::to_owned));
        until("the key is printed", async || printed(&admin.log()).is_some()).await;
        let key = printed(&admin.log()).unwrap();
        let client = Client::new(&format!("http://127.0.0.1:{}/v1", self.proxy.port())).with_key(&key);
        let is_listed = async || {
            // A container is healthy before its proxy listens.
            let Ok(answer) = client.request(reqwest::Method::GET, "/workspaces").send().await else { return false };
            answer.status() == 200 && answer.json::<serde_json::Value>().await.is_ok_and(|list| list["total"] == 1)
        };
        until("the owner sees the first workspace through the proxy", is_listed).await;
    }
}

/// Settings whose default is a path below the folder of the programs' state.
fn default_paths() -> HashMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf/gateway.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let settings = text.lines().filter_map(|line| line.strip_prefix('#')?.split_once(" = "));
    let paths = settings.filter(|(_, value)| value.contains("/var/lib/portcullis"));
    paths.map(|(name, value)| (name.to_uppercase(), value.trim_matches('"').to_owned())).collect()
}

#[tokio::test]
async fn the_units_start_and_one_proxy_takes_over_from_the_other() {
    let machine = Machine::new().await;
    let [admin, proxy, successor] = &launches("systemd")[..] else { panic!("other units") };
    let admin = machine.start(admin);
    let mut first = machine.start(proxy);
    machine.until_healthy(proxy).await;
    machine.until_used(&admin).await;

    let _second = machine.start(successor);
    let socket = machine.folder.path().join("state/upgrade.sock");
    until("the successor waits for the sockets", async || socket.exists()).await;
    first.signal(Signal::QUIT);
    assert!(first.ended_within(PATIENCE).await.success(), "{}", first.log());
    machine.until_healthy(successor).await;
    machine.until_used(&admin).await;
}

#[tokio::test]
async fn the_containers_of_compose_start_and_are_healthy() {
    let machine = Machine::new().await;
    let [redis, admin, proxy] = &launches("compose")[..] else { panic!("other services") };
    let _redis = machine.start_redis(redis);
    let control_plane = machine.start(admin);
    machine.until_healthy(admin).await;
    let _data_plane = machine.start(proxy);
    machine.until_healthy(proxy).await;
    machine.until_used(&control_plane).await;
}

#[tokio::test]
async fn the_pods_of_the_chart_start_behind_the_migrations_and_their_probes_answer() {
    let machine = Machine::new().await;
    let [migrations, admin, proxy] = &launches("chart")[..] else { panic!("other pods") };
    assert!(migrations.ends && !admin.ends && !proxy.ends);
    assert!(machine.start(migrations).ended_within(PATIENCE).await.success());
    assert!(!admin.probes.is_empty() && !proxy.probes.is_empty());
    let control_plane = machine.start(admin);
    machine.until_healthy(admin).await;
    let _data_plane = machine.start(proxy);
    machine.until_healthy(proxy).await;
    machine.until_used(&control_plane).await;
}
