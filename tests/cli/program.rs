//! Runs the program to its end, with nothing of the developer's environment.

use harness::Stack;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Somebody with a home folder, a gateway and a key.
pub struct User {
    pub home: TempDir,
    environment: Vec<(String, String)>,
}

pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl User {
    pub fn new(url: &str, key: &str) -> Self {
        Self::without_gateway().with("PORTCULLIS_URL", url).with("PORTCULLIS_API_KEY", key)
    }

    pub fn administrator(stack: &Stack) -> Self {
        Self::new(&stack.base_url, &stack.home.admin_key)
    }

    pub fn without_gateway() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let environment = vec![("HOME".to_owned(), home.path().display().to_string()), ("PATH".to_owned(), path)];
        Self { home, environment }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().current_dir(self.home.path()).kill_on_drop(true);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Ended {
        Ended::new(self.command(arguments).output().await.unwrap())
    }

    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that refuses its arguments reads nothing.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        Ended::new(child.wait_with_output().await.unwrap())
    }

    /// Runs what must succeed and returns its stdout.
    pub async fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments).await;
        assert_eq!(ended.code, 0, "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    pub async fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["-o", "json"]].concat()).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

impl Ended {
    fn new(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        Self { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Tests run in `target/<profile>/deps`.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("portcullis");
    assert!(path.exists(), "{} is not built: cargo build --workspace --bins", path.display());
    path
}

/// Everything that is written in a folder, by path.
pub fn contents(folder: &Path) -> std::collections::BTreeMap<String, String> {
    let mut found = std::collections::BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            found.insert(name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
        }
    }
    found
}
