//! Questions to the control plane that read or write much.

use super::{Attacker, status};
use crate::prove::client::empty;
use http::Method;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

pub async fn costly_query(by: Arc<Attacker>, number: usize) -> String {
    let queries = [
        "/v1/logs?ai_model=none&workspace_slug=*",
        "/v1/logs?ai_model=none&page_size=100",
        "/v1/logs?metadata=%7B%22_user%22%3A%22nobody%22%7D",
        "/v1/logs?ai_model=none&workspace_slug=*&current_page=1000",
    ];
    let request = by.administrator.request(Method::GET, queries[number % queries.len()], empty());
    status(&by.administrator, request).await
}

pub async fn costly_figures(by: Arc<Attacker>, number: usize) -> String {
    const YEARS: &str = "time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2036-01-01T00:00:00Z";
    let graphs = [
        "graphs/users?group_by=model",
        "groups/users?page_size=100",
        "groups/metadata/_user?page_size=100",
        "graphs/cost?group_by=model",
    ];
    let path = format!("/v1/analytics/{}&workspace_slug=*&{YEARS}", graphs[number % graphs.len()]);
    let request = by.administrator.request(Method::GET, &path, empty());
    status(&by.administrator, request).await
}

/// On calls that never were.
pub async fn opinions(by: Arc<Attacker>) -> String {
    let many: Vec<_> = (0..500).map(|_| json!({ "trace_id": Uuid::new_v4(), "value": 1 })).collect();
    status(&by.by_config, by.by_config.post_json("/v1/feedback", &many.into())).await
}
