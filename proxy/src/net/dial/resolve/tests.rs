//! The cache and the single flight, with a lookup that counts.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

const TTL: Duration = Duration::from_secs(30);

struct Dns {
    resolver: Arc<NameResolver>,
    asked: Arc<AtomicUsize>,
    release: Arc<Notify>,
}

/// Answers 192.0.2.n for the n-th question; names starting with `slow` wait for `release`, `bad` ones fail.
fn dns() -> Dns {
    let asked = Arc::new(AtomicUsize::new(0));
    let release = Arc::new(Notify::new());
    let (count, gate) = (asked.clone(), release.clone());
    let lookup: Lookup = Box::new(move |name| {
        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
        let gate = gate.clone();
        async move {
            if name.starts_with("slow") {
                gate.notified().await;
            }
            match name.as_str() {
                "bad.example" => Err(io::ErrorKind::NotFound.into()),
                "none.example" => Ok(Vec::new()),
                "many.example" => Ok(vec![ip(1), ip(2), ip(3)]),
                _ => Ok(vec![ip(n as u8)]),
            }
        }
        .boxed()
    });
    Dns { resolver: Arc::new(NameResolver::with_lookup(TTL, lookup)), asked, release }
}

fn ip(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

#[tokio::test]
async fn an_answer_is_used_until_its_time_is_up() {
    let dns = dns();
    let now = Instant::now();
    assert_eq!(*dns.resolver.resolve("a.example", now).await.unwrap(), [ip(1)]);
    assert_eq!(*dns.resolver.resolve("a.example", now + TTL - Duration::from_millis(1)).await.unwrap(), [ip(1)]);
    assert_eq!(*dns.resolver.resolve("a.example", now + TTL).await.unwrap(), [ip(2)]);
    assert_eq!(dns.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn many_requests_for_one_name_ask_once() {
    let dns = dns();
    let now = Instant::now();
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let resolver = dns.resolver.clone();
            tokio::spawn(async move { resolver.resolve("slow.example", now).await.unwrap()[0] })
        })
        .collect();
    while dns.asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    dns.release.notify_waiters();
    for task in waiting {
        assert_eq!(task.await.unwrap(), ip(1));
    }
    assert_eq!(dns.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_cancelled_question_is_finished_by_the_next_caller() {
    let dns = dns();
    let now = Instant::now();
    let first = {
        let resolver = dns.resolver.clone();
        tokio::spawn(async move { resolver.resolve("slow.example", now).await.map(|found| found[0]) })
    };
    while dns.asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    dns.release.notify_one();
    assert_eq!(*dns.resolver.resolve("slow.example", now).await.unwrap(), [ip(1)]);
    assert_eq!(dns.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failure_is_remembered_for_a_second_only() {
    let dns = dns();
    let now = Instant::now();
    for name in ["bad.example", "none.example"] {
        let before = dns.asked.load(Ordering::SeqCst);
        assert_eq!(dns.resolver.resolve(name, now).await.unwrap_err().class(), Class::Dns);
        assert_eq!(dns.resolver.resolve(name, now + FAILURE_TTL / 2).await.unwrap_err().class(), Class::Dns);
        assert_eq!(dns.asked.load(Ordering::SeqCst), before + 1);
        let _ = dns.resolver.resolve(name, now + FAILURE_TTL).await;
        assert_eq!(dns.asked.load(Ordering::SeqCst), before + 2);
    }
}

#[tokio::test]
async fn a_failed_address_is_tried_last() {
    let dns = dns();
    let now = Instant::now();
    assert_eq!(*dns.resolver.resolve("many.example", now).await.unwrap(), [ip(1), ip(2), ip(3)]);
    dns.resolver.demote("many.example", ip(1));
    assert_eq!(*dns.resolver.resolve("many.example", now).await.unwrap(), [ip(2), ip(3), ip(1)]);
    dns.resolver.demote("many.example", ip(9));
    dns.resolver.demote("unknown.example", ip(1));
    assert_eq!(*dns.resolver.resolve("many.example", now).await.unwrap(), [ip(2), ip(3), ip(1)]);
}

#[tokio::test]
async fn the_cache_does_not_grow_without_end() {
    let dns = dns();
    let now = Instant::now();
    for n in 0..MAX_NAMES * 2 {
        let _ = dns.resolver.resolve(&format!("{n}.example"), now).await;
    }
    assert!(dns.resolver.names.lock().len() <= MAX_NAMES);
}

#[tokio::test]
async fn the_system_resolves_localhost() {
    let resolver = NameResolver::new(TTL);
    let found = resolver.resolve("localhost", Instant::now()).await.unwrap();
    assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
}
