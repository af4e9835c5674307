//! A Redis of a test's own, that can be frozen, stopped and started again, and looked into.

use bench::ports::Reservation;
use bench::process::{self, Signal};
use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

pub struct RedisServer {
    child: Option<Child>,
    is_cluster: bool,
    folder: TempDir,
    ports: [Reservation; 2],
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl RedisServer {
    pub fn start(is_cluster: bool) -> Self {
        let (folder, ports) = (TempDir::new().unwrap(), [(); 2].map(|()| Reservation::any().unwrap()));
        let mut server = Self { child: None, is_cluster, folder, ports };
        server.resume();
        server
    }

    pub fn url(&self) -> String {
        let comma = if self.is_cluster { "," } else { "" };
        format!("redis://127.0.0.1:{}{comma}", self.ports[0].port())
    }

    /// Starts it where it was, empty.
    pub fn resume(&mut self) {
        let [port, bus] = [0, 1].map(|at: usize| self.ports[at].port().to_string());
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(self.folder.path());
        if self.is_cluster {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus]);
        }
        self.child = Some(command.stdout(Stdio::null()).spawn().expect("redis-server is installed (make setup-test)"));
        let address = ("127.0.0.1", self.ports[0].port());
        assert!(process::wait_until(PATIENCE, || TcpStream::connect(address).is_ok()), "redis-server does not listen");
        if self.is_cluster {
            self.say(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"], b"");
            let is_whole = || text(&self.say(&["CLUSTER", "INFO"], b"")).contains("cluster_state:ok");
            assert!(process::wait_until(PATIENCE, is_whole), "the cluster is not complete");
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        process::signal(self.child.as_ref().unwrap().id(), signal).unwrap();
    }

    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = text(&self.say(&["KEYS", "*"], b"")).lines().map(str::to_owned).collect();
        keys.sort_unstable();
        keys
    }

    pub fn value(&self, key: &str) -> Vec<u8> {
        let mut value = self.say(&["GET", key], b"");
        // The client ends every answer with a line break.
        assert_eq!(value.pop(), Some(b'\n'), "{key}");
        value
    }

    /// Seconds until it is gone.
    pub fn ttl(&self, key: &str) -> u64 {
        text(&self.say(&["TTL", key], b"")).trim().parse().expect("it has a time to live")
    }

    pub fn set(&self, key: &str, value: &[u8]) {
        assert_eq!(text(&self.say(&["-x", "SET", key], value)).trim(), "OK");
    }

    /// Says something by `redis-cli`; what its standard input holds is the last argument of a command after `-x`.
    fn say(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let port = self.ports[0].port().to_string();
        let mut command = Command::new("redis-cli");
        command.args(["--raw", "-p", &port]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().stdout
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
