//! Questions in other words are found, and an embedder that fails is a miss.

use super::*;
use crate::runtime::tenant_share::Tenant;
use async_trait::async_trait;
use lexical::Guard;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::VecDeque;

type ProviderReply = Result<Vec<f32>, NotEmbedded>;

/// Answers what it is told to, and hangs when it is told nothing.
struct Scripted(Mutex<VecDeque<ProviderReply>>);

#[async_trait]
impl Embedder for Scripted {
    async fn embed(&self, _: &str) -> Result<Embedded, NotEmbedded> {
        let next = self.0.lock().pop_front();
        match next {
            Some(Ok(values)) => Ok(Embedded { values, call: None }),
            Some(Err(not)) => Err(not),
            None => std::future::pending().await,
        }
    }

    fn threshold(&self) -> f32 {
        0.9
    }

    fn guard(&self) -> Guard {
        Guard::Marks
    }

    fn identity(&self) -> String {
        "scripted".into()
    }

    fn billed_as(&self) -> Option<(&str, &str)> {
        None
    }
}

fn semantic(script: impl IntoIterator<Item = ProviderReply>, threshold: Option<f32>) -> Semantic {
    let embedder = Arc::new(Scripted(Mutex::new(script.into_iter().collect())));
    Semantic::new(embedder, Arc::new(MemoryIndex::new(1 << 20)), Duration::from_secs(20), threshold)
}

fn question(text: &str, similarity: Option<f32>) -> Question {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
    Question::read(AskedRoute::Chat, &body, &key(0), similarity).unwrap()
}

fn key(digest: u8) -> CacheKey {
    CacheKey { tenant: Tenant::test(1, 1), digest: [digest; 32] }
}

#[tokio::test]
async fn what_was_remembered_is_found_by_a_near_question() {
    let near = || Ok(vec![0.8, 0.6]);
    let semantic = semantic([Ok(vec![1.0, 0.0]), near(), near(), near()], None);
    let first = semantic.search(&question("a", None), 0, false, &PaidCall::default()).await;
    assert!(first.near.is_empty());
    semantic.remember(first, key(1), 100);
    assert!(
        semantic.search(&question("b", None), 0, false, &PaidCall::default()).await.near.is_empty(),
        "0.8 is below 0.9"
    );
    let found = semantic.search(&question("b", Some(0.75)), 0, false, &PaidCall::default()).await;
    assert_eq!(found.near, [key(1)], "the request's own threshold counts");
    semantic.forget(&found, &[key(1)]);
    assert!(semantic.search(&question("b", Some(0.75)), 0, false, &PaidCall::default()).await.near.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_hangs_or_fails_is_a_miss_and_then_left_alone() {
    let semantic = semantic((0..4).map(|_| Err(NotEmbedded::new("no"))), None);
    for _ in 0..5 {
        let searched = semantic.search(&question("a", None), 0, false, &PaidCall::default()).await;
        assert!(searched.near.is_empty() && searched.asked.is_none());
        semantic.remember(searched, key(1), 100);
    }
    assert!(semantic.rest.is_resting(0), "four failures and one that hung");
    assert!(semantic.search(&question("a", None), 0, false, &PaidCall::default()).await.near.is_empty());
}

#[tokio::test]
async fn a_text_that_cannot_be_embedded_is_no_failure_of_the_embedder() {
    let semantic = semantic((0..9).map(|_| Err(NotEmbedded::of_text("too long"))), None);
    for _ in 0..9 {
        assert!(semantic.search(&question("a", None), 0, false, &PaidCall::default()).await.asked.is_none());
    }
    assert!(!semantic.rest.is_resting(0));
}

#[tokio::test]
async fn a_refresh_replaces_nothing_that_is_far_whatever_the_request_calls_near() {
    let semantic = semantic([Ok(vec![1.0, 0.0]), Ok(vec![0.8, 0.6]), Ok(vec![0.99, 0.1])], None);
    let first = semantic.search(&question("a", None), 0, false, &PaidCall::default()).await;
    semantic.remember(first, key(1), 100);
    assert!(
        semantic.search(&question("b", Some(0.0)), 0, true, &PaidCall::default()).await.near.is_empty(),
        "0.8 is below 0.9"
    );
    assert_eq!(semantic.search(&question("b", Some(0.0)), 0, true, &PaidCall::default()).await.near, [key(1)]);
}

#[tokio::test]
async fn a_long_text_is_searched_as_a_short_one_is() {
    let semantic = semantic([Ok(vec![1.0, 0.0]), Ok(vec![1.0, 0.0])], None);
    let long = "word ".repeat(SHORT_TEXT);
    let first = semantic.search(&question(&long, None), 0, false, &PaidCall::default()).await;
    semantic.remember(first, key(1), 100);
    assert_eq!(semantic.search(&question(&long, None), 0, false, &PaidCall::default()).await.near, [key(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_is_known_and_one_that_was_not_made_is_none() {
    let semantic = semantic([Ok(vec![1.0, 0.0])], None);
    let paid = PaidCall::default();
    semantic.search(&question("a", None), 0, false, &paid).await;
    assert_eq!(paid.into_call(), None, "nobody was asked");
    let paid = PaidCall::default();
    let searched = semantic.search(&question("a", None), 0, false, &paid).await;
    assert!(searched.asked.is_none(), "it was cut");
    assert_eq!(paid.into_call().map(|call| call.status), Some(499));
    // Dropped as the search of a client is that leaves.
    let paid = PaidCall::default();
    let asked = question("a", None);
    assert!(futures::poll!(Box::pin(semantic.search(&asked, 0, false, &paid))).is_pending());
    assert!(paid.into_call().is_some_and(|call| call.needs_estimate()));
}
