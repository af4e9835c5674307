//! When a value is fresh, stale or gone, and that many who ask at once ask once.

use super::*;
use crate::secrets::cloud::{Http, Request, Response, Sending};
use crate::secrets::{Endpoints, ManagerKind, OwnIdentity};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

fn said(look: &SecretLookup) -> &'static str {
    match look {
        SecretLookup::Fresh(_) => "fresh",
        SecretLookup::Stale(_, true) => "due",
        SecretLookup::Stale(_, false) => "stale",
        SecretLookup::Refused(_) => "refused",
        SecretLookup::Absent => "absent",
    }
}

#[test]
fn a_value_is_fresh_for_its_time_kept_while_the_manager_is_away_and_dropped_when_denied() {
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    let value = || Ok(Arc::new(FetchedSecret { text: "v".to_owned().into(), is_always_map: false }));
    let away = || Err(FetchError::Away("x".into()));
    let mut state = SecretState::default();
    assert_eq!(said(&state.look(TTL, start)), "absent");
    state.settle(value(), TTL, start);
    for (seconds, expected) in [(0, "fresh"), (299, "fresh"), (300, "due"), (24 * 3600, "absent")] {
        assert_eq!(said(&state.look(TTL, at(seconds))), expected, "{seconds}");
    }
    state.settle(away(), TTL, at(300));
    for (seconds, expected) in [(301, "stale"), (305, "due"), (24 * 3600 - 1, "due")] {
        assert_eq!(said(&state.look(TTL, at(seconds))), expected, "{seconds} after a failure");
    }
    state.settle(away(), TTL, at(305));
    assert_eq!(said(&state.look(TTL, at(314))), "stale", "the pause doubles");
    state.settle(Err(FetchError::Denied("x".into())), TTL, at(400));
    for (seconds, expected) in [(401, "refused"), (419, "refused"), (420, "absent")] {
        assert_eq!(said(&state.look(TTL, at(seconds))), expected, "{seconds} after a denial");
    }
    state.settle(value(), TTL, at(500));
    assert_eq!(said(&state.look(TTL, at(501))), "fresh");
}

/// Answers from a list, and counts.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Result<(u16, &'static str), &'static str>>>,
    calls: AtomicUsize,
}

impl Http for Script {
    fn send(&self, _: Request) -> Sending {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Err("the script is over"));
        let answer = answer.map(|(status, body)| Response { status, body: body.as_bytes().to_vec() });
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer.map_err(str::to_owned)
        })
    }
}

fn store(ttl: Duration, answers: &[Result<(u16, &'static str), &'static str>]) -> (Arc<Script>, Arc<Store>) {
    let script = Arc::new(Script { answers: Mutex::new(answers.iter().copied().collect()), ..Script::default() });
    let fetcher = Fetcher::new(Arc::clone(&script), OwnIdentity::none(), Endpoints::default());
    (script, Arc::new(Store::with_ttl(fetcher, ttl)))
}

fn reference(path: &str) -> Reference {
    let config = json!({ "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": "t" });
    let config = config.as_object().unwrap();
    Reference::new(Uuid::nil(), ManagerKind::Vault, config, path.into(), Some("k".into())).unwrap()
}

const V1: Result<(u16, &str), &str> = Ok((200, r#"{"data":{"k":"one","other":"x"}}"#));
const V2: Result<(u16, &str), &str> = Ok((200, r#"{"data":{"k":"two"}}"#));

async fn text(store: &Arc<Store>, reference: &Reference) -> Result<String, FetchError> {
    store.value(reference, None).await.map(|secret| secret.expose_text().unwrap().to_owned())
}

#[tokio::test]
async fn many_who_come_first_ask_once_and_later_ones_not_at_all() {
    let (script, store) = store(TTL, &[V1]);
    let reference = reference("a/b");
    let all = futures_of(20, || text(&store, &reference)).await;
    assert!(all.iter().all(|one| one.as_deref() == Ok("one")), "{all:?}");
    assert_eq!(text(&store, &reference).await.as_deref(), Ok("one"));
    assert_eq!(store.value(&reference, Some("other")).await.unwrap().expose_text(), Some("x"), "another entry of it");
    assert_eq!(store.value(&reference, Some("none")).await.unwrap_err(), FetchError::NoEntry("none".into()));
    assert_eq!(script.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_old_value_is_given_at_once_and_renewed_behind_it() {
    let (script, store) = store(Duration::ZERO, &[V1, Err("away"), V2]);
    let reference = reference("a/b");
    assert_eq!(text(&store, &reference).await.as_deref(), Ok("one"));
    assert_eq!(text(&store, &reference).await.as_deref(), Ok("one"), "at once, and the renewal fails");
    let entry = store.entry(&reference);
    until(|| entry.state().failures == 1).await;
    assert_eq!(script.calls.load(Ordering::SeqCst), 2);
    assert_eq!(text(&store, &reference).await.as_deref(), Ok("one"), "kept while the manager is away");
    entry.state().retry_at = None;
    assert_eq!(text(&store, &reference).await.as_deref(), Ok("one"));
    until(|| matches!(&entry.state().value, Some((value, _)) if value.text.expose_text() == Some(r#"{"k":"two"}"#)))
        .await;
    assert_eq!(text(&store, &reference).await.as_deref(), Ok("two"));
}

#[tokio::test]
async fn a_denial_is_told_at_once_and_a_changed_reference_is_asked_for_anew() {
    let denied = Ok((403, r#"{"errors":["permission denied"]}"#));
    let (script, store) = store(TTL, &[denied, V1]);
    let one = reference("a/b");
    let all = futures_of(5, || text(&store, &one)).await;
    assert!(all.iter().all(|one| matches!(one, Err(FetchError::Denied(_)))), "{all:?}");
    assert_eq!(script.calls.load(Ordering::SeqCst), 1, "a refusal is not asked for again at once");
    assert_eq!(text(&store, &reference("a/c")).await.as_deref(), Ok("one"));
}

#[tokio::test]
async fn what_is_used_is_renewed_before_it_is_old_and_what_is_not_used_is_dropped() {
    let (_, store) = store(TTL, &[V1, V1]);
    let (used, unused) = (reference("a/b"), reference("a/c"));
    for one in [&used, &unused] {
        text(&store, one).await.unwrap();
    }
    let (now, after) = (Instant::now(), Duration::from_secs);
    assert!(store.aging(now).is_empty(), "both are young");
    assert_eq!(store.aging(now + after(250)).len(), 2, "before they are old");
    store.entry(&used).state().used_at = Some(now + after(3000));
    assert_eq!(store.aging(now + after(3700)).len(), 1);
    assert_eq!(store.entries.lock().unwrap().len(), 1);
}

async fn futures_of<T, F: Future<Output = T>>(n: usize, make: impl Fn() -> F) -> Vec<T> {
    let mut waiting: Vec<_> = (0..n).map(|_| Box::pin(make())).collect();
    let mut done: Vec<Option<T>> = (0..n).map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (slot, future) in done.iter_mut().zip(&mut waiting).filter(|(slot, _)| slot.is_none()) {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(context) {
                *slot = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}
