//! The circuit breakers of this replica, for its operator: a page of the metrics port. Each replica has its own, and
//! names of tenants have no place among labels of metrics.

use crate::engine::Services;
use crate::routing::inline_configs::InlineConfigs;
use crate::routing::plan::{Leaf, Plan, ProviderSource};
use crate::snapshot::Snapshot;
use serde_json::{Value, json};
use shared::model::id::WorkspaceId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Most circuits on one page.
const MAX_PAGE: usize = 1000;

/// Every circuit that has counted anything, the open ones first.
pub fn page(snapshot: &Snapshot, inline: &InlineConfigs, now: Instant) -> Value {
    let mut found = Vec::new();
    for config in snapshot.all_configs() {
        push(&mut found, &config.plan, config.row.workspace_id.uuid(), &config.row.slug, now);
    }
    inline.each(|workspace, plan| push(&mut found, plan, workspace, "inline", now));
    // Those that stay open longest first, then the closed ones.
    found.sort_by_key(|(closes_in, _)| std::cmp::Reverse(*closes_in));
    let is_capped = found.len() > MAX_PAGE;
    let data: Vec<Value> = found.into_iter().take(MAX_PAGE).map(|(_, circuit)| circuit).collect();
    json!({ "object": "list", "total_is_capped": is_capped, "data": data })
}

/// How many circuits there are of each provider, by state. Of targets whose provider the request names: `requested`.
pub fn by_provider(services: &Services, now: Instant) -> BTreeMap<(String, &'static str), i64> {
    let mut found = BTreeMap::new();
    let mut count = |plan: &Plan, workspace: Uuid| {
        if !plan.has_breakers() {
            return;
        }
        for leaf in plan.leaves() {
            let Some(status) = leaf.breaker.as_ref().and_then(|breaker| breaker.status(now)) else { continue };
            let state = if status.closes_in.is_some() { "open" } else { "closed" };
            *found.entry((provider(services, leaf, workspace), state)).or_insert(0) += 1;
        }
    };
    for config in services.snapshot.all_configs() {
        count(&config.plan, config.row.workspace_id.uuid());
    }
    services.planner.inline.each(|workspace, plan| count(plan, workspace));
    found
}

/// Only names of the table of providers: the rest is what customers chose.
fn provider(services: &Services, leaf: &Leaf, workspace: Uuid) -> String {
    let named = match &leaf.source {
        ProviderSource::Request => return "requested".to_owned(),
        ProviderSource::Named(name) => Some(name.clone()),
        ProviderSource::Stored(slug) => {
            let provider = services.snapshot.provider(WorkspaceId::new(workspace), slug);
            let integration = provider.and_then(|provider| services.snapshot.integration(&provider.integration_id));
            integration.map(|integration| integration.ai_provider_id.clone())
        }
    };
    named.filter(|name| services.router.providers.get(name).is_some()).unwrap_or_else(|| "other".to_owned())
}

fn push(found: &mut Vec<(Option<Duration>, Value)>, plan: &Plan, workspace: Uuid, config: &str, now: Instant) {
    if !plan.has_breakers() {
        return;
    }
    for (path, leaf) in plan.leaves_by_path() {
        let Some(status) = leaf.breaker.as_ref().and_then(|breaker| breaker.status(now)) else { continue };
        let closes_in_ms = status.closes_in.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let circuit = json!({
            "object": "circuit", "workspace_id": workspace, "config": config, "target": path,
            "state": if status.closes_in.is_some() { "open" } else { "closed" },
            "failures": status.failures, "successes": status.successes, "closes_in_ms": closes_in_ms,
        });
        found.push((status.closes_in, circuit));
    }
}
