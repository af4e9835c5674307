//! The scripts in `.ci`: setting up a machine, and the direction of dependencies.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci").join(name)
}

/// A machine with nothing but Rust, the shell and apt; what apt is asked for stands in `asked`.
fn bare_machine(user: &str) -> TempDir {
    let machine = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("apt-get", format!("echo \"$@\" >> '{}'", machine.path().join("asked").display())),
        ("id", format!("echo {user}")),
        ("sudo", "exit 1".to_owned()),
        ("cargo", "exit 0".to_owned()),
        ("env", "shift; exec \"$@\"".to_owned()),
    ] {
        let path = machine.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("/usr/bin/sort", machine.path().join("sort")).unwrap();
    machine
}

fn set_up(machine: &TempDir) -> Output {
    let mut command = Command::new("/bin/bash");
    command.arg(script("setup")).arg("run").env_clear().env("PATH", machine.path());
    command.env("DATABASE_URL", "postgres://somewhere").output().unwrap()
}

#[test]
fn root_gets_missing_packages_installed_without_a_question() {
    let machine = bare_machine("0");
    let output = set_up(&machine);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let asked = fs::read_to_string(machine.path().join("asked")).unwrap();
    let install = asked.lines().find(|line| line.starts_with("install -y")).unwrap();
    assert!(install.ends_with("build-essential cmake curl libssl-dev pkg-config"), "{install}");
}

#[test]
fn who_may_not_install_is_told_the_exact_line() {
    let machine = bare_machine("1000");
    let output = set_up(&machine);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("sudo apt-get install -y build-essential cmake curl libssl-dev pkg-config"), "{said}");
    assert!(!machine.path().join("asked").exists());
}

/// A tree with three crates, changed by one file.
fn tree_with(path: &str, content: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write("shared/Cargo.toml", "[dependencies]\nserde.workspace = true\n");
    write("proxy/Cargo.toml", "[dependencies]\nshared.workspace = true\n[dev-dependencies]\nbench.workspace = true\n");
    write("admin/Cargo.toml", "[dependencies]\nshared.workspace = true\n");
    write("proxy/src/gateway.rs", "use pingora_proxy::Session;\n");
    write("proxy/src/limits.rs", "// A Session of pingora_proxy::Session is none of our business.\n");
    write("proxy/src/refusal.rs", "use crate::limits::Hit;\n#[cfg(test)]\nmod tests { use crate::walk::Engine; }\n");
    write("proxy/src/walk/call.rs", "use crate::{limits::{Counter, self}, refusal::Refusal};\n");
    for name in ["directions", "module_graph.py"] {
        write(&format!(".ci/{name}"), &fs::read_to_string(script(name)).unwrap());
    }
    write(path, content);
    tree
}

#[test]
fn each_wrong_direction_is_found_and_a_right_tree_passes() {
    for (path, content, complaint) in [
        ("proxy/src/walk/relay.rs", "use pingora_proxy::Session;\n", ""),
        ("shared/Cargo.toml", "[dependencies]\nadmin.workspace = true\n", "shared depends on admin"),
        ("proxy/Cargo.toml", "[dependencies]\nadmin = { path = \"../admin\" }\n", "proxy depends on admin"),
        ("admin/Cargo.toml", "[build-dependencies]\nproxy.workspace = true\n", "admin depends on proxy"),
        ("proxy/src/limits/windows.rs", "use pingora_http::ResponseHeader;\n", "limits/windows.rs"),
        ("proxy/src/routing.rs", "use crate::walk::prepare;\n", "routing.rs"),
        ("proxy/src/walk/prepare.rs", "fn f(_: &mut Session) {}\n", "walk/prepare.rs"),
        ("proxy/src/limits/windows.rs", "use super::super::refusal::Refusal;\n", "limits → refusal → limits"),
        ("shared/src/db.rs", "mod inner { fn f() { crate::a::b(); } }\n", ""),
        ("proxy/src/limits/lease.rs", "fn f() -> crate::net::Dial { crate::net::dial() }\n", ""),
        ("proxy/src/limits/lease.rs", "// crate::refusal\nconst A: &str = \"crate::refusal\";\n", ""),
        ("proxy/src/refusal/dialect.rs", "fn f() { crate::walk::g() }\n", "refusal → walk → refusal"),
    ] {
        let tree = tree_with(path, content);
        let output = Command::new("/bin/bash").arg(tree.path().join(".ci/directions")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), complaint.is_empty(), "{path}: {said}");
        assert!(said.contains(complaint), "{path}: {said}");
    }
}
