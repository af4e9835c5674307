//! The rule that every long-lived task is started by the supervisor, over all sources: whoever spawns by hand is in a short
//! list here, with the reason why that task needs no supervision.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What ends by itself, or ends the process, or cannot panic. By file, with how often it spawns.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("shared/src/supervisor.rs", 2, "the supervisor itself"),
    ("shared/src/db.rs", 1, "drives one connection, whose user notices its end"),
    ("shared/src/identity/jwt/key_ring.rs", 1, "one fetch of keys"),
    ("shared/src/log_store.rs", 1, "stores one object"),
    ("shared/src/cost/prices/sources.rs", 2, "one fetch of prices"),
    ("shared/src/secrets/store.rs", 1, "one fetch of a secret"),
    ("proxy/src/batches/runner.rs", 1, "one step of one batch, leased for a time"),
    ("proxy/src/batches/runner/group.rs", 2, "one group of rows, and one row, leased for a time"),
    ("proxy/src/batches/runner/notice.rs", 1, "one notice"),
    ("proxy/src/cache/semantic/index/pgvector.rs", 1, "one search"),
    ("proxy/src/gateway/ticks.rs", 1, "a timer that does nothing"),
    ("proxy/src/runtime/background.rs", 1, "runs what the supervisor keeps on another runtime"),
    ("proxy/src/gateway/serve.rs", 2, "services of the snapshot and of credentials, whose tasks the supervisor keeps"),
    ("proxy/src/gateway/serve/health.rs", 1, "one connection of the metrics port"),
    ("proxy/src/gateway/serve/supervised.rs", 2, "supervised tasks as services of Pingora"),
    ("proxy/src/catalog/signing/token_cache.rs", 1, "one renewal of a token"),
    ("proxy/src/snapshot/follower.rs", 1, "drives one connection, whose follower notices its end"),
    ("proxy/src/engine/guards/model_calls.rs", 1, "one call"),
    ("proxy/src/mcp/gateway/bridged.rs", 1, "one session"),
    ("admin/src/http/body.rs", 1, "reads the rest of one body"),
    ("admin/src/mail.rs", 1, "sends one letter"),
    ("admin/src/mcp_oauth/store_refreshed.rs", 1, "stores the tokens of one refresh"),
    ("admin/src/outbound.rs", 3, "drives one connection"),
    ("admin/src/outbound/mcp.rs", 1, "drives one connection"),
    ("admin/src/outbound/oauth.rs", 1, "drives one connection"),
    ("admin/src/resources/auth/link.rs", 1, "one request"),
    ("admin/src/server/connections.rs", 1, "one connection"),
    ("admin/src/server/gate.rs", 1, "one request"),
    ("admin/src/server/gate/replay.rs", 1, "one request"),
    ("admin/src/server/serve.rs", 1, "the accepting loop, whose end ends the process"),
];

#[test]
fn long_lived_tasks_are_started_by_the_supervisor_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for folder in ["proxy/src", "admin/src", "shared/src"] {
        scan(&root, Path::new(folder), &mut found);
    }
    let known: BTreeMap<String, usize> =
        EXCEPTIONS.iter().map(|(file, count, _)| ((*file).to_owned(), *count)).collect();
    for (file, count) in &found {
        assert_eq!(
            known.get(file),
            Some(count),
            "{file} spawns {count} times: let the supervisor start what lives long"
        );
    }
    for file in known.keys() {
        assert!(found.contains_key(file), "{file} spawns nothing any more: take it from the list");
    }
}

fn scan(root: &Path, folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = folder.join(&name);
        if entry.file_type().unwrap().is_dir() {
            scan(root, &path, found);
        } else if name.ends_with(".rs") && !is_of_tests(&path) {
            let text = fs::read_to_string(entry.path()).unwrap();
            let count = spawns(&text);
            if count > 0 {
                found.insert(path.to_string_lossy().into_owned(), count);
            }
        }
    }
}

/// Modules that only tests compile.
fn is_of_tests(path: &Path) -> bool {
    let has = |word: &str| path.components().any(|part| part.as_os_str().to_string_lossy().contains(word));
    has("tests") || path.ends_with("lab.rs")
}

/// Of the part of a file that is no test. A line that hands its future to the supervisor is none.
fn spawns(text: &str) -> usize {
    const WAYS: [&str; 6] =
        ["tokio::spawn(", ".spawn(", "thread::spawn(", "thread::Builder", "spawn_local(", "background_service("];
    let program = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("use ");
    let spawns = |line: &&str| WAYS.iter().any(|way| line.contains(way)) && !line.contains("supervisor");
    program.lines().filter(is_code).filter(spawns).count()
}

#[test]
fn spawning_is_seen_wherever_it_stands() {
    for (text, count) in [
        ("    tokio::spawn(async {});\n", 1),
        ("    handle.spawn(work);\n    std::thread::Builder::new().spawn(f);\n", 2),
        ("    // tokio::spawn(x)\nuse tokio::spawn(;\n", 0),
        ("    jobs.spawn(supervisor.clone().keep(task, work));\n", 0),
        ("    let done = tokio::task::spawn_blocking(work).await;\n", 0),
        ("fn f() {}\n#[cfg(test)]\nmod tests {\n    tokio::spawn(async {});\n", 0),
    ] {
        assert_eq!(spawns(text), count, "{text}");
    }
}
