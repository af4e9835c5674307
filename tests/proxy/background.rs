//! That what runs behind (logs, bodies, the snapshot) takes few threads, and gives way to those that serve.

use futures::future::join_all;
use harness::{Stack, chat};
use std::collections::BTreeMap;
use std::fs;

const CLIENTS: usize = 16;
const CALLS: usize = 25;

/// Threads by their name, with the niceness of each.
fn threads(pid: u32) -> BTreeMap<String, Vec<i32>> {
    let mut threads = BTreeMap::<String, Vec<i32>>::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        // One that ended meanwhile.
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(')').unwrap();
        let niceness = rest.split_ascii_whitespace().nth(16).unwrap().parse().unwrap();
        threads.entry(name.to_owned()).or_default().push(niceness);
    }
    threads
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bodies_and_logs_are_stored_by_few_threads_that_give_way() {
    // With many calls in a file there is much to store at once.
    let stack = Stack::builder().proxy("JOURNAL_SHIP_MS", "500").start().await;
    let pid = stack.proxy.pid();
    let ordinary = threads(pid)["proxy 0"][0];
    let (stack, done) = (&stack, std::cell::Cell::new(0));
    let stored = async || stack.metric("gateway_log_bodies_stored_total").await.unwrap_or(0.0);
    let clients = join_all((0..CLIENTS).map(|_| async {
        for _ in 0..CALLS {
            let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        done.set(done.get() + 1);
    }));
    let watch = async {
        let (mut most, mut most_behind) = (0, 0);
        while done.get() < CLIENTS || stored().await < (CLIENTS * CALLS) as f64 {
            let threads = threads(pid);
            let count = |name: &str| threads.get(name).map_or(0, Vec::len);
            most = most.max(threads.values().map(Vec::len).sum());
            most_behind = most_behind.max(count("background"));
            for (name, niceness) in &threads {
                let gives_way = niceness.iter().all(|nice| *nice > ordinary);
                let is_ordinary = niceness.iter().all(|nice| *nice == ordinary);
                assert!(if name == "background" { gives_way } else { is_ordinary }, "{name}: {niceness:?}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        (most, most_behind)
    };
    let watched = async { tokio::time::timeout(std::time::Duration::from_secs(60), watch).await };
    let (_, watched) = tokio::join!(clients, watched);
    let (most, most_behind) = watched.expect("all bodies are stored within a minute");
    assert!((1..=4).contains(&most_behind), "{most_behind} threads behind: {:?}", threads(pid));
    assert!(most <= 20, "{most} threads: {:?}", threads(pid));
}
