//! Analytics over HTTP: what they count, and for whom.

mod access;
mod bounds;
mod budgets;
mod erased;
mod held;
mod input;
mod metadata;
mod questions;
mod reference;
mod saved_filters;
mod several;
mod slow;
mod stale;
mod truth;
mod verify;

use harness::Client;
use serde_json::Value;

/// Every operation that counts calls.
pub const COUNTING: &[&str] = &[
    "/analytics/graphs/requests",
    "/analytics/graphs/cost",
    "/analytics/graphs/latency",
    "/analytics/graphs/tokens",
    "/analytics/graphs/users",
    "/analytics/graphs/users/requests",
    "/analytics/graphs/errors",
    "/analytics/graphs/errors/rate",
    "/analytics/graphs/errors/stacks",
    "/analytics/graphs/errors/status-codes",
    "/analytics/graphs/requests/rescued",
    "/analytics/graphs/cache/hit-rate",
    "/analytics/graphs/cache/latency",
    "/analytics/graphs/feedbacks",
    "/analytics/graphs/feedbacks/scores",
    "/analytics/graphs/feedbacks/weighted",
    "/analytics/graphs/feedbacks/ai-models",
    "/analytics/summary/cache",
    "/analytics/groups/users",
    "/analytics/groups/ai-models",
    "/analytics/groups/workspaces",
    "/analytics/groups/metadata/plan",
    "/analytics/groups/model",
    "/logs/groups/model",
];

/// A time that holds all of what tests store.
pub const ALL: &str = "time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2026-01-31T00:00:00Z";

pub async fn get(client: &Client, path: &str, query: &str) -> Value {
    let answer = client.get(&format!("{path}?{query}")).await;
    assert_eq!(answer.status, 200, "{path}?{query}: {}", answer.text());
    answer.json()
}
