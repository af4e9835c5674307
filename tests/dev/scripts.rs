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
    assert!(install.ends_with("build-essential cmake curl libssl-dev pkg-config python3 python3-venv"), "{install}");
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

/// A tree with four crates, changed by one file.
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
    write("admin/cli/Cargo.toml", "[dependencies]\nclap.workspace = true\n");
    write("proxy/src/gateway.rs", "use pingora_proxy::Session;\n");
    write("proxy/src/limits.rs", "// A Session of pingora_proxy::Session is none of our business.\n");
    write("proxy/src/refusal.rs", "use crate::limits::Hit;\n#[cfg(test)]\nmod tests { use crate::engine::Engine; }\n");
    write("proxy/src/engine/call.rs", "use crate::{limits::{Counter, self}, refusal::Refusal};\n");
    for name in ["directions", "module_graph.py", "rust_source.py", "words.py"] {
        write(&format!(".ci/{name}"), &fs::read_to_string(script(name)).unwrap());
    }
    write(path, content);
    tree
}

#[test]
fn each_wrong_direction_is_found_and_a_right_tree_passes() {
    for (path, content, complaint) in [
        ("proxy/src/gateway/serve/health.rs", "use pingora_proxy::Session;\n", ""),
        ("shared/Cargo.toml", "[dependencies]\nadmin.workspace = true\n", "shared depends on admin"),
        ("proxy/Cargo.toml", "[dependencies]\nadmin = { path = \"../admin\" }\n", "proxy depends on admin"),
        ("admin/Cargo.toml", "[build-dependencies]\nproxy.workspace = true\n", "admin depends on proxy"),
        ("proxy/src/limits/windows.rs", "use pingora_http::ResponseHeader;\n", "limits/windows.rs"),
        ("proxy/src/routing.rs", "use crate::engine::prepare;\n", "routing.rs"),
        ("proxy/src/engine/prepare.rs", "fn f(_: &mut Session) {}\n", "engine/prepare.rs"),
        ("admin/cli/Cargo.toml", "[dependencies]\nshared.workspace = true\n", "admin/cli depends on shared"),
        ("proxy/src/limits/windows.rs", "use super::super::refusal::Refusal;\n", "limits → refusal → limits"),
        ("shared/src/db.rs", "mod inner { fn f() { crate::a::b(); } }\n", ""),
        ("proxy/src/limits/lease.rs", "fn f() -> crate::net::Dial { crate::net::dial() }\n", ""),
        ("proxy/src/limits/lease.rs", "// crate::refusal\nconst A: &str = \"crate::refusal\";\n", ""),
        ("proxy/src/refusal/dialect.rs", "fn f() { crate::engine::g() }\n", "engine → refusal → engine"),
        ("proxy/src/engine/call/ask.rs", "fn was_told() {}\n", "`was_told`: name it by the word of the trade"),
        (
            "proxy/src/engine/call/ask.rs",
            "const LONGEST_LINE: usize = 1;\n",
            "`LONGEST_LINE`: name it by the word of the trade",
        ),
        ("proxy/src/engine/call/ask.rs", "// told\nconst A: &str = \"told\";\n#[cfg(test)]\nfn told() {}\n", ""),
        (
            "tests/proxy/away.rs",
            "fn f() { TcpListener::bind(\"127.0.0.1:0\").unwrap().local_addr() }\n",
            "tests/proxy/away.rs",
        ),
        ("tests/proxy/near.rs", "fn f() { let here = TcpListener::bind(\"127.0.0.1:0\").unwrap(); }\n", ""),
    ] {
        assert_directions(&tree_with(path, content), complaint);
    }
}

fn assert_directions(tree: &TempDir, complaint: &str) {
    let output = Command::new("/bin/bash").arg(tree.path().join(".ci/directions")).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), complaint.is_empty(), "{complaint}: {printed}");
    assert!(printed.contains(complaint), "{complaint}: {printed}");
}

#[test]
fn circles_below_the_top_and_behind_methods_are_found_and_what_is_known_may_only_become_less() {
    let write = |tree: &TempDir, files: &[(&str, String)]| {
        for (path, content) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    };
    let of = |path: &'static str, content: &str| (path, content.to_owned());
    // Beside each other in one folder, by a name that the module above hands on.
    let handed_on = [
        of("proxy/src/limits.rs", "mod a;\nmod b;\npub use b::B;\n"),
        of("proxy/src/limits/a.rs", "use super::B;\n"),
        of("proxy/src/limits/b.rs", "use super::a::A;\n"),
    ];
    // Nothing is imported, and yet each needs the other.
    let by_methods = [
        of("proxy/src/limits.rs", "mod a;\nmod b;\npub struct Walk;\n"),
        of("proxy/src/limits/a.rs", "impl super::Walk { fn one(&self) { self.two() } }\n"),
        of("proxy/src/limits/b.rs", "impl<'a> super::Walk { fn two(&self) { self.one() } }\n"),
    ];
    for files in [&handed_on, &by_methods] {
        let tree = tree_with("proxy/src/limits/c.rs", "");
        write(&tree, files);
        assert_directions(&tree, "a circle in proxy/limits: a → b → a");
        let known = r#"{"circles": {"proxy/limits": [["a", "b"]]}, "spread": {}}"#;
        write(&tree, &[of(".ci/known_tangles.json", known)]);
        assert_directions(&tree, "");
        write(&tree, &[of("proxy/src/limits/b.rs", "pub struct B;\n")]);
        assert_directions(&tree, "less is tangled than was");
    }

    let tree = tree_with("proxy/src/limits/home.rs", "pub struct Widely;\n");
    let names = ["a", "b", "c", "d", "e"];
    let files =
        names.map(|name| (format!("proxy/src/engine/{name}.rs"), "impl crate::limits::home::Widely {}\n".to_owned()));
    for (path, content) in &files[..4] {
        write(&tree, &[(path, content.clone())]);
    }
    assert_directions(&tree, "");
    write(&tree, &[(&files[4].0, files[4].1.clone())]);
    assert_directions(&tree, "proxy: Widely has an impl in 5 files, 5 of them outside of its folder");
}

/// A tree whose suites are scripts: what they print and how they end is given.
fn tree_of_suites(rust: &str, clients: &str, openapi: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let nextest = format!(
        "if [ \"$1\" = deny ]; then exit \"${{DENY_ENDS_WITH:-0}}\"; fi\nif [ \"$2\" = --version ]; then exit 0; fi\n{rust}"
    );
    for (path, text) in [
        ("bin/cargo", format!("if [ \"$1\" = build ]; then exit \"${{BUILD_ENDS_WITH:-0}}\"; fi\n{nextest}")),
        ("target/debug/gateway-dev", "shift 2\nexec \"$@\"".to_owned()),
        ("tests/clients/run", format!("[ \"$1\" != install ] || exit 0\n{clients}")),
        ("tests/openapi/run", format!("[ \"$1\" != install ] || exit 0\n{openapi}")),
        ("tests/console/run", "[ \"$1\" != install ] || exit 0\nprintf 'ℹ pass 7\\nℹ fail 0\\n'".to_owned()),
        ("tests/deploy/run", "echo 'deploy: all well'".to_owned()),
        (".ci/dependencies", "exit 1".to_owned()),
    ] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["suites", "dependencies"] {
        fs::copy(script(name), tree.path().join(".ci").join(name)).unwrap();
    }
    tree
}

fn run_suites(tree: &TempDir, build_ends_with: &str) -> (bool, String) {
    run_suites_with(tree, build_ends_with, "0")
}

fn run_suites_with(tree: &TempDir, build_ends_with: &str, deny_ends_with: &str) -> (bool, String) {
    let path = format!("{}:{}", tree.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("python3");
    command.arg(tree.path().join(".ci/suites")).env("PATH", path).env_remove("CARGO_TARGET_DIR");
    command.env("BUILD_ENDS_WITH", build_ends_with).env("DENY_ENDS_WITH", deny_ends_with);
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

const NEXTEST_PASSES: &str = "echo '     Summary [  12.278s] 30 tests run: 30 passed, 2 skipped'";
const CLIENTS_PASS: &str = "echo 'suite python begins'; echo '189 passed, 1 skipped in 3.01s'; \
    echo 'suite python ended with 0 after 4 s'; echo 'suite node begins'; printf 'ℹ pass 66\\nℹ fail 0\\n'; \
    echo 'suite node ended with 0 after 5 s'";
const OPENAPI_PASSES: &str = "echo '  2813 generated'";

#[test]
fn the_summary_counts_what_every_runner_says() {
    let tree = tree_of_suites(NEXTEST_PASSES, CLIENTS_PASS, OPENAPI_PASSES);
    let (is_well, output) = run_suites(&tree, "0");
    assert!(is_well, "{output}");
    assert!(output.ends_with("\ntotal: 3110 passed, 0 failed, 1 skipped\n"), "{output}");
    for name in ["rust ", "clients/python ", "clients/node ", "openapi ", "console ", "deploy ", "dependencies "] {
        assert!(output.lines().any(|line| line.starts_with(name)), "{name}: {output}");
    }
}

#[test]
fn one_run_shows_the_failures_of_every_suite() {
    let rust = "echo '     Summary [  12.278s] 30 tests run: 27 passed, 2 failed, 1 timed out, 2 skipped'; exit 100";
    let clients = "echo 'suite python begins'; echo '1 failed, 188 passed in 3.01s'; \
        echo 'suite python ended with 1 after 4 s'; echo 'suite node begins'; exit 7";
    let tree = tree_of_suites(rust, clients, "exit 3");
    let (is_well, output) = run_suites(&tree, "0");
    assert!(!is_well, "{output}");
    assert!(output.ends_with("\ntotal: 227 passed, 6 failed, 0 skipped\n"), "{output}");
}

#[test]
fn a_suite_that_could_not_run_has_failed() {
    let tree = tree_of_suites(NEXTEST_PASSES, CLIENTS_PASS, OPENAPI_PASSES);
    let (is_well, output) = run_suites(&tree, "101");
    assert!(!is_well && output.contains("the build failed"), "{output}");
    assert!(output.ends_with("\ntotal: 5 passed, 4 failed, 0 skipped\n"), "{output}");
    let (is_well, output) = run_suites(&tree_of_suites("exit 0", CLIENTS_PASS, OPENAPI_PASSES), "0");
    assert!(!is_well && output.contains("it ended well and ran no test"), "{output}");
}

#[test]
fn what_is_skipped_for_want_of_a_tool_is_the_last_that_is_said() {
    let clients = "echo 'suite python begins'; echo 'SKIPPED [3] test_saml.py:40: pysaml2 signs by xmlsec1'; \
        echo '186 passed, 3 skipped in 3.01s'; echo 'suite python ended with 0 after 4 s'";
    let tree = tree_of_suites(NEXTEST_PASSES, clients, OPENAPI_PASSES);
    let (is_well, output) = run_suites_with(&tree, "0", "101");
    assert!(is_well, "{output}");
    let (_, end) =
        output.split_once("\nSKIPPED clients/python: test_saml.py:40: pysaml2 signs by xmlsec1\n").expect(&output);
    let lines: Vec<&str> = end.lines().collect();
    assert!(lines[0].starts_with("SKIPPED dependencies: ") && lines[0].contains("cargo-deny"), "{end}");
    assert_eq!(lines[1..], ["total: 3037 passed, 0 failed, 4 skipped"], "{output}");
}

/// The first column of a table in `.ci/changed`, and the words of the second.
fn changed_table(name: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(script("changed")).unwrap();
    let (_, table) = text.split_once(&format!("\n{name} = [\n")).unwrap();
    let (table, _) = table.split_once("\n]").unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split('"').collect();
        (words[1].to_owned(), words[3].to_owned())
    };
    table.lines().map(row).collect()
}

#[test]
fn every_room_of_the_proxy_has_tests_that_a_change_in_it_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = changed_table("PROXY");
    for entry in fs::read_dir(root.join("proxy/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let room = name.trim_end_matches(".rs");
        if !["lib", "main"].contains(&room) {
            assert!(table.iter().any(|(known, _)| known == room), "{room} is not in `.ci/changed`");
        }
    }
    for (binary, table) in [("proxy", table), ("admin", changed_table("ADMIN"))] {
        for module in table.iter().flat_map(|(_, modules)| modules.split(' ')) {
            let path = root.join("tests").join(binary).join(format!("{module}.rs"));
            assert!(path.exists(), "`.ci/changed` names {}", path.display());
        }
    }
}
