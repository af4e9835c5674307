//! When key sets are fetched, by a clock of the test's own; the fetches themselves are counted.

use super::*;
use crate::identity::jwt::testing::signer;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// What the address answers now: key ids, or an error.
type Served = Arc<Mutex<Result<Vec<&'static str>, &'static str>>>;

struct Site {
    ring: KeyRing,
    served: Served,
    fetches: Arc<AtomicUsize>,
    now: Instant,
    organisation: Uuid,
}

impl Site {
    fn serving(kids: &[&'static str]) -> Self {
        Self::gated(kids, None)
    }

    /// Fetches wait until the gate is opened.
    fn gated(kids: &[&'static str], gate: Option<Arc<Notify>>) -> Self {
        let served: Served = Arc::new(Mutex::new(Ok(kids.to_vec())));
        let fetches = Arc::new(AtomicUsize::new(0));
        let (answer, counted) = (served.clone(), fetches.clone());
        let fetch: KeySetFetch = Box::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let (answer, gate) = (answer.clone(), gate.clone());
            async move {
                if let Some(gate) = gate {
                    gate.notified().await;
                }
                let answer = answer.lock().clone();
                answer.map(|kids| set(&kids).to_string().into_bytes()).map_err(str::to_owned)
            }
            .boxed()
        });
        Self { ring: KeyRing::new(fetch), served, fetches, now: Instant::now(), organisation: Uuid::new_v4() }
    }

    async fn find_at(&self, after: Duration, kid: &str) -> Result<(), Rejection> {
        let source = KeySource::Url("https://keys.example".into());
        let current = self.ring.keys(self.organisation, &source, kid, self.now + after).await?;
        current.keys.find(kid, jsonwebtoken::Algorithm::RS256).map(|_| ())
    }

    async fn keys_at(&self, after: Duration, kid: &str) -> Current {
        let source = KeySource::Url("https://keys.example".into());
        self.ring.keys(self.organisation, &source, kid, self.now + after).await.unwrap()
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    async fn until_fetched(&self, count: usize) {
        while self.fetches() < count {
            tokio::task::yield_now().await;
        }
        // The task that fetched has its result to put away.
        tokio::task::yield_now().await;
    }
}

fn set(kids: &[&str]) -> Value {
    let key = |kid: &&str| {
        let mut jwk = signer().jwk();
        jwk["kid"] = json!(kid);
        jwk
    };
    json!({ "keys": kids.iter().map(key).collect::<Vec<_>>() })
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_set_is_fetched_once_and_then_again_before_a_day_is_over_without_making_anybody_wait() {
    let site = Site::serving(&["a"]);
    for after in [0, 1, 82_799] {
        site.find_at(SECOND * after, "a").await.unwrap();
    }
    assert_eq!(site.fetches(), 1);
    *site.served.lock() = Ok(vec!["b"]);
    site.find_at(SECOND * 82_800, "a").await.unwrap();
    site.until_fetched(2).await;
    assert!(site.find_at(SECOND * 82_801, "a").await.is_err(), "the old key is gone with the old set");
}

#[tokio::test]
async fn whoever_asks_may_want_a_younger_set_but_not_a_fetch_for_each_token() {
    let site = Site::serving(&["a"]);
    let source = KeySource::Url("https://keys.example".into());
    for (after, max_age, fetches) in [(0, 60, 1), (57, 60, 1), (60, 60, 2), (61, 0, 2), (89, 0, 2), (90, 0, 3)] {
        let now = site.now + SECOND * after;
        let current = site.ring.keys_within(site.organisation, &source, "a", now, SECOND * max_age).await.unwrap();
        assert_eq!(site.fetches(), fetches, "{after} {max_age}");
        assert!(current.fresh_for <= SECOND * max_age.max(30));
    }
    let longer = SECOND * 864_000;
    let current = site.ring.keys_within(site.organisation, &source, "a", site.now + SECOND * 90, longer).await;
    assert_eq!(current.unwrap().fresh_for, MAX_KEY_SET_AGE);
}

#[tokio::test]
async fn a_key_that_was_withdrawn_verifies_nothing_once_its_set_is_a_day_old() {
    let site = Site::serving(&["a", "b"]);
    site.find_at(Duration::ZERO, "a").await.unwrap();
    *site.served.lock() = Ok(vec!["b"]);
    assert_eq!(site.find_at(SECOND * 86_400, "a").await, Err(Rejection::UnknownKeyId("a".into())));
    site.find_at(SECOND * 86_401, "b").await.unwrap();
    assert_eq!(site.fetches(), 2);
}

#[tokio::test]
async fn what_a_set_verified_is_believed_while_the_set_is_fresh_and_was_not_replaced() {
    let site = Site::serving(&["a"]);
    let first = site.keys_at(Duration::ZERO, "a").await;
    assert_eq!(first.fresh_for, MAX_KEY_SET_AGE);
    let later = site.keys_at(SECOND * 82_000, "a").await;
    assert_eq!((later.fresh_for, Arc::ptr_eq(&later.keys, &first.keys)), (SECOND * 4_400, true));
    site.find_at(SECOND * 82_001, "unknown").await.unwrap_err();
    assert!(site.fetches() == 2 && !first.keys.is_withdrawn(), "the same set again changes nothing");
    *site.served.lock() = Ok(vec!["a", "b"]);
    site.find_at(SECOND * 82_100, "b").await.unwrap();
    assert!(first.keys.is_withdrawn(), "a key of it may be gone");
}

#[tokio::test]
async fn an_unknown_key_id_is_looked_for_once_in_30_seconds() {
    let site = Site::serving(&["a"]);
    site.find_at(SECOND, "a").await.unwrap();
    *site.served.lock() = Ok(vec!["a", "b"]);
    site.find_at(SECOND * 2, "b").await.unwrap();
    assert_eq!(site.fetches(), 2, "rotation is seen at once");
    for after in 3..32 {
        assert_eq!(site.find_at(SECOND * after, "c").await, Err(Rejection::UnknownKeyId("c".into())));
    }
    assert_eq!(site.fetches(), 2);
    *site.served.lock() = Ok(vec!["c"]);
    site.find_at(SECOND * 32, "c").await.unwrap();
    assert_eq!(site.fetches(), 3);
}

#[tokio::test]
async fn a_hundred_at_once_cause_one_fetch_and_it_survives_those_who_leave() {
    let gate = Arc::new(Notify::new());
    let site = Arc::new(Site::gated(&["a"], Some(gate.clone())));
    let ask = |site: Arc<Site>| tokio::spawn(async move { site.find_at(SECOND, "a").await });
    let leaver = ask(site.clone());
    site.until_fetched(1).await;
    leaver.abort();
    let waiting: Vec<_> = (0..100).map(|_| ask(site.clone())).collect();
    tokio::task::yield_now().await;
    gate.notify_one();
    for one in waiting {
        one.await.unwrap().unwrap();
    }
    assert_eq!(site.fetches(), 1);
}

#[tokio::test]
async fn keys_go_on_working_while_their_address_is_away() {
    let site = Site::serving(&["a"]);
    site.find_at(SECOND, "a").await.unwrap();
    *site.served.lock() = Err("connection refused");
    let day = SECOND * 90_000;
    site.find_at(day, "a").await.unwrap();
    site.until_fetched(2).await;
    site.find_at(day + SECOND, "a").await.unwrap();
    assert_eq!(site.fetches(), 2, "a failure is not repeated at once");
    let refused = site.find_at(day + SECOND * 31, "b").await.unwrap_err();
    assert_eq!(refused, Rejection::KeySetUnreachable("connection refused".into()));
    let known = site.ring.known(site.organisation).unwrap();
    assert!(known.contains("a") && !known.contains("b"), "whoever must decide can still refuse");
    *site.served.lock() = Ok(vec!["b"]);
    site.find_at(day + SECOND * 62, "b").await.unwrap();
}

#[tokio::test]
async fn an_address_that_never_answered_is_asked_again_after_five_seconds() {
    let site = Site::serving(&[]);
    *site.served.lock() = Err("connection refused");
    for after in [0, 1, 4] {
        let refused = site.find_at(SECOND * after, "a").await.unwrap_err();
        assert_eq!(refused.to_string(), "JWT rejected: JWKS could not be fetched: connection refused");
    }
    assert_eq!(site.fetches(), 1);
    *site.served.lock() = Ok(vec!["a"]);
    site.find_at(SECOND * 5, "a").await.unwrap();
}

#[tokio::test]
async fn keys_given_by_hand_are_never_fetched_and_change_with_the_setting() {
    let site = Site::serving(&["a"]);
    for (given, asked, found) in [("x", "x", true), ("x", "a", false), ("y", "x", false), ("y", "y", true)] {
        let source = KeySource::Inline(Arc::new(set(&[given])));
        let current = site.ring.keys(site.organisation, &source, asked, site.now).await.unwrap();
        assert_eq!(current.keys.contains(asked), found, "{given} {asked}");
    }
    assert_eq!(site.fetches(), 0);
    site.find_at(SECOND, "a").await.unwrap();
    assert_eq!(site.fetches(), 1, "a URL in place of them is asked");
}
