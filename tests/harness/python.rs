//! Servers that are written in Python and come from PyPI: installed once for a list of packages, into the build's
//! folder.

use crate::process::with_public_authorities;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The interpreter of an environment that has these packages, one requirement a line.
pub fn with(requirements: &str) -> PathBuf {
    let name: String = Sha256::digest(requirements).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    // Beside the test's own binary.
    let test = std::env::current_exe().expect("this process has a binary");
    let base = test.parent().expect("it lies in a folder").join("python");
    let folder = base.join(&name);
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    fs::create_dir_all(&base).expect("the build's folder can be written");
    // Tests are processes of their own: one installs, the others wait.
    let lock = File::create(folder.with_extension("lock")).expect("a lock file can be made");
    lock.lock().expect("a file can be locked");
    if !done.exists() {
        let list = folder.with_extension("txt");
        fs::write(&list, requirements).expect("the list can be written");
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&list));
        File::create(&done).expect("the mark can be made");
    }
    python
}

fn run(command: &mut Command) {
    let status = with_public_authorities(command).status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// A server that ends with its test.
pub struct Server(Child);

impl Server {
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
