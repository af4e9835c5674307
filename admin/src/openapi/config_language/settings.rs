//! The small objects of a config: strategy, sticky choices, cache, retries, hedging, circuit breakers.

use super::{key, key_or, needed, query, statuses};
use crate::openapi::schema::{Schema, choice, flag, list, number, object, text, whole};
use serde_json::json;

pub fn strategy() -> Schema {
    let mode = "single: the first target. loadbalance: one by weight. fallback: one after the other until one succeeds. \
                conditional: the first whose condition holds.";
    object("ConfigStrategy")
        .need("mode", needed(choice(&["single", "loadbalance", "fallback", "conditional"]).eg("fallback"), mode))
        .may(
            "on_status_codes",
            key(
                statuses(json!([429, 503])),
                "With the mode fallback: the statuses that go on to the next target; every status but 2xx when absent.",
            ),
        )
        .may(
            "conditions",
            key(list(query::condition()), "With the mode conditional: asked in this order; required there."),
        )
        .may(
            "default",
            key(
                text(1..=usize::MAX).eg("small"),
                "With the mode conditional: the name of the target when no condition holds; required there.",
            ),
        )
        .may("sticky", key(sticky(), "With the mode loadbalance: the same caller keeps its target."))
        .may("cb_config", key(circuit_breaker(), "A circuit breaker for the targets; not with the mode conditional."))
        .eg(json!({ "mode": "fallback", "on_status_codes": [429, 503] }))
        .closed()
}

fn sticky() -> Schema {
    let fields = "What a choice depends on: `metadata.<key>`, `params.<path>`, or prompt_prefix, which is the beginning \
                  of the conversation. Required when enabled.";
    object("ConfigSticky")
        .need("enabled", needed(flag().eg(true), "Whether it is on."))
        .may("hash_fields", key(list(text(1..=usize::MAX).eg("metadata.user_id")).at_most(20), fields))
        .may("ttl", key_or(whole(1..=i64::from(u32::MAX)).eg(3600), 3600, "Seconds that a choice is kept."))
        .closed()
}

pub fn cache() -> Schema {
    object("ConfigCache")
        .need(
            "mode",
            needed(choice(&["simple", "semantic"]), "simple: the same request. semantic: one that means the same."),
        )
        .may(
            "max_age",
            key(
                whole(1..=i64::MAX).eg(3600),
                "Seconds that an answer is kept, from 60 to 7776000; 604800 when absent.",
            ),
        )
        .may(
            "coalesce",
            key_or(
                flag().eg(true),
                false,
                "Equal requests that come while the first one is answered wait for its answer.",
            ),
        )
        .may(
            "similarity",
            key(
                number(0).up_to(1).eg(0.9),
                "semantic: the cosine from which on two questions are one; the operator's when absent.",
            ),
        )
        .closed()
}

pub fn retry() -> Schema {
    let header = "Whether a 429's retry-after-ms, x-ms-retry-after-ms or retry-after says how long to wait, in place of 1, 2, 4, 8 and 16 seconds.";
    let budget =
        "At most so many retries for each hundred first tries of a target, so that an outage is not made worse.";
    object("ConfigRetry")
        .need("attempts", needed(whole(0..=5).eg(2), "Tries after the first. An inline config's more than 5 is 5."))
        .may("on_status_codes", key(statuses(json!([429, 500, 502, 503, 504, 529])), "The statuses that are tried again; 429, 500, 502, 503, 504 and 529 when absent. Broken connections always are."))
        .may("use_retry_after_header", key_or(flag().eg(true), false, header))
        .may("use_retry_after_headers", key_or(flag().eg(true), false, "Another spelling of use_retry_after_header."))
        .may("jitter", key_or(choice(&["none", "full"]).eg("full"), "none", "full waits a random part of each wait, so that clients do not come back together."))
        .may("budget_percent", key_or(number(0).up_to(100).eg(20), 20, budget))
        .closed()
}

pub fn hedge() -> Schema {
    let mut percentile = number(50).eg(95);
    percentile.json["maximum"] = json!(99.9);
    object("ConfigHedge")
        .may(
            "after_ms",
            key(
                whole(1..=600_000).eg(300),
                "Milliseconds without an answer after which the second attempt starts; not together with percentile.",
            ),
        )
        .may(
            "percentile",
            key(percentile, "The same as a percentile of what this target took before; not together with after_ms."),
        )
        .eg(json!({ "after_ms": 300 }))
        .closed()
}

pub fn circuit_breaker() -> Schema {
    object("ConfigCircuitBreaker")
        .need(
            "cooldown_interval",
            needed(whole(30_000..=i64::MAX).eg(60_000), "Milliseconds that the target is left out."),
        )
        .may(
            "failure_threshold",
            key(
                whole(1..=i64::MAX).eg(5),
                "Failures that open the circuit; this or failure_threshold_percentage is required.",
            ),
        )
        .may(
            "failure_threshold_percentage",
            key(number(0).up_to(100).eg(50), "The part of failures, in percent, that opens the circuit."),
        )
        .may("minimum_requests", key(whole(1..=i64::MAX).eg(20), "Requests before the percentage is looked at."))
        .may(
            "failure_status_codes",
            key(statuses(json!([500, 502, 503])), "The statuses that are failures; all from 500 on when absent."),
        )
        .eg(json!({ "failure_threshold": 5, "cooldown_interval": 60_000 }))
        .closed()
}
