//! What coding agents send when they are given a base URL and a key, and nothing else.

mod betas;
mod compressed_bodies;
mod model_pages;
mod own_sign_in;
mod plain_names;
mod sessions;
mod token_counts;
mod tools;
mod wires;

use crate::families::{application, integrate};
use harness::Stack;

/// Waits until so many logs are such.
async fn until_logged(stack: &Stack, condition: &str, count: i64) {
    let client = stack.database.client().await;
    let counting = format!("SELECT count(*) FROM request_logs WHERE {condition}");
    stack.until(condition, async || client.query_one(&counting, &[]).await.unwrap().get::<_, i64>(0) == count).await;
}

/// A provider of the workspace, once its models are listed.
async fn offer(stack: &Stack, slug: &str, provider: &str) {
    integrate(stack, slug, provider).await;
    let (client, list) = (application(stack), format!("/models?provider={slug}&limit=1"));
    stack.until(slug, async || client.get(&list).await.json()["total"].as_u64() > Some(0)).await;
}
