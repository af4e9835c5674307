use super::*;
use async_trait::async_trait;
use lexical::Guard;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::VecDeque;
use uuid::Uuid;

/// Answers what it is told to, and hangs when it is told nothing.
struct Scripted(Mutex<VecDeque<Result<Vec<f32>, &'static str>>>);

#[async_trait]
impl Embedder for Scripted {
    async fn embed(&self, _: &str) -> Result<Embedded, NotEmbedded> {
        let next = self.0.lock().pop_front();
        match next {
            Some(Ok(values)) => Ok(Embedded { values, call: None }),
            Some(Err(reason)) => Err(NotEmbedded::new(reason)),
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

fn semantic(script: impl IntoIterator<Item = Result<Vec<f32>, &'static str>>, threshold: Option<f32>) -> Semantic {
    let embedder = Arc::new(Scripted(Mutex::new(script.into_iter().collect())));
    Semantic::new(embedder, Arc::new(MemoryIndex::new(1 << 20)), Duration::from_millis(20), threshold)
}

fn question(text: &str, similarity: Option<f32>) -> Question {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
    Question::read(AskedRoute::Chat, &body, &key(0), similarity).unwrap()
}

fn key(digest: u8) -> CacheKey {
    CacheKey { workspace: Uuid::from_u128(1), digest: [digest; 32] }
}

#[tokio::test]
async fn what_was_remembered_is_found_by_a_near_question() {
    let near = || Ok(vec![0.8, 0.6]);
    let semantic = semantic([Ok(vec![1.0, 0.0]), near(), near(), near()], None);
    let first = semantic.search(&question("a", None), 0, false).await;
    assert!(first.near.is_empty());
    semantic.remember(first, key(1), 100);
    assert!(semantic.search(&question("b", None), 0, false).await.near.is_empty(), "0.8 is below 0.9");
    let found = semantic.search(&question("b", Some(0.75)), 0, false).await;
    assert_eq!(found.near, [key(1)], "the request's own threshold counts");
    semantic.forget(&found, &[key(1)]);
    assert!(semantic.search(&question("b", Some(0.75)), 0, false).await.near.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_hangs_or_fails_is_a_miss_and_then_left_alone() {
    let semantic = semantic([Err("no"), Err("no"), Err("no"), Err("no")], None);
    for _ in 0..5 {
        let searched = semantic.search(&question("a", None), 0, false).await;
        assert!(searched.near.is_empty() && searched.asked.is_none());
        semantic.remember(searched, key(1), 100);
    }
    assert!(semantic.rest.is_resting(0), "four failures and one that hung");
    assert!(semantic.search(&question("a", None), 0, false).await.near.is_empty());
}
