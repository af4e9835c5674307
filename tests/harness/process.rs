//! A program of ours under test: the real binary, with nothing of the developer's environment, its log in a file
//! that is shown when the test fails.

use bench::dev::test::{AUTHORITIES, PUBLIC_AUTHORITIES};
use bench::process::{self, Signal};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

/// Most of a log that a failing test shows.
const SHOWN_LINES: usize = 200;

/// A running program; killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `target/<profile>/<binary>` in `folder`, which also takes its log.
    pub fn start(binary: &str, arguments: &[&str], environment: &[(String, String)], folder: &Path) -> Self {
        let executable = built(binary);
        let log = unused(folder, binary);
        let output = File::create(&log).expect("the log can be created");
        let mut command = Command::new(&executable);
        command.args(arguments).env_clear().current_dir(folder).stdin(Stdio::null());
        for name in ["PATH", "HOME", "TMPDIR", "RUST_BACKTRACE", "LLVM_PROFILE_FILE", "SSL_CERT_FILE"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdout(output.try_clone().expect("a file handle can be cloned")).stderr(output);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", executable.display()));
        Self { name: binary.to_owned(), child, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal).expect("our own child can be signalled");
    }

    /// Kills it without a chance to tidy up.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How it ended, if it did.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child can be asked")
    }

    /// Waits for its end without blocking the runtime; panics when the time is over.
    pub async fn ended_within(&mut self, limit: Duration) -> ExitStatus {
        let end = tokio::time::Instant::now() + limit;
        loop {
            if let Some(status) = self.has_ended() {
                return status;
            }
            assert!(tokio::time::Instant::now() < end, "{} still runs after {limit:?}", self.name);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Everything it wrote so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Memory it holds now, in bytes (Linux).
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let skipped = log.lines().count().saturating_sub(SHOWN_LINES);
            let shown: Vec<_> = log.lines().skip(skipped).collect();
            eprintln!("--- last lines of {} ---\n{}", self.name, shown.join("\n"));
        }
    }
}

/// For commands that install packages: they meet public hosts, and so need the system's authorities.
pub(crate) fn with_public_authorities(command: &mut Command) -> &mut Command {
    match std::env::var_os(PUBLIC_AUTHORITIES) {
        Some(file) if file.is_empty() => command.env_remove(AUTHORITIES),
        Some(file) => command.env(AUTHORITIES, file),
        None => command,
    }
}

/// The folder of the programs: tests run in `target/<profile>/deps`.
fn built(binary: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let path = test.ancestors().nth(2).expect("tests lie two folders deep").join(binary);
    let made = fs::metadata(&path).and_then(|found| found.modified());
    let Ok(made) = made else {
        panic!("{} is not built: use `make test`, or `cargo build --workspace --bins` first", path.display())
    };
    // Cargo does not rebuild other crates' programs for a test, so the code under test may be yesterday's.
    if let Some(source) = newer_source(made) {
        eprintln!("note: {binary} is older than {}: `cargo build --workspace --bins`", source.display());
    }
    path
}

fn newer_source(made: SystemTime) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pending: Vec<PathBuf> =
        ["shared/src", "proxy/src", "admin/src"].iter().map(|name| root.join(name)).collect();
    while let Some(path) = pending.pop() {
        if let Ok(entries) = fs::read_dir(&path) {
            pending.extend(entries.flatten().map(|entry| entry.path()));
        } else if fs::metadata(&path).and_then(|found| found.modified()).is_ok_and(|changed| changed > made) {
            return Some(path);
        }
    }
    None
}

/// A second process of the same kind gets a log of its own.
fn unused(folder: &Path, binary: &str) -> PathBuf {
    let names = (1..).map(|number| folder.join(format!("{binary}-{number}.log")));
    names.into_iter().find(|path| !path.exists()).expect("numbers do not end")
}
