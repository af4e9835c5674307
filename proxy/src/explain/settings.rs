//! The settings that apply to a target, as its config and what it inherits say.

use crate::routing::plan::{Hedging, Leaf};
use serde_json::{Value, json};
use shared::config::Retry;
use std::time::{Duration, Instant};

pub(super) fn settings(leaf: &Leaf, now: Instant) -> Value {
    let hedge = leaf.hedge.as_ref().map(|hedge| match hedge {
        Hedging::After(delay) => json!({ "after_ms": millis(Some(*delay)) }),
        Hedging::Percentile(percent, _) => json!({ "percentile": percent, "now_ms": millis(hedge.delay()) }),
    });
    json!({
        "config_id": leaf.id,
        "request_timeout": millis(leaf.request_timeout),
        "total_timeout": millis(leaf.total_timeout),
        "stream_idle_timeout": millis(leaf.stream_idle),
        "stream_heartbeat": millis(leaf.heartbeat),
        "retry": leaf.retry.as_ref().map(Retry::shown),
        "hedge": hedge,
        "circuit": leaf.breaker.as_ref().map(|breaker| if breaker.is_open(now) { "open" } else { "closed" }),
        "custom_host": leaf.custom_host,
        "forward_headers": leaf.forward_headers,
        "override_params": leaf.edits.overridden(),
        "default_params": leaf.edits.defaulted(),
        "drop_params": leaf.edits.dropped(),
    })
}

pub(super) fn millis(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
