//! The keys of the small objects inside a config, by where such an object stands. The OpenAPI document describes them; tests
//! here hold the lists to what is read.

/// Each in the order of the alphabet.
pub static NESTED_FIELDS: &[(&str, &[&str])] = &[
    (
        "before_request_hooks[0]",
        &[
            "async",
            "audit",
            "checks",
            "deny",
            "guardrail_version_id",
            "id",
            "message",
            "on_fail",
            "on_success",
            "scope",
            "sequential",
            "soft_deny_200",
            "stream",
            "type",
        ],
    ),
    ("before_request_hooks[0].checks[0]", &["id", "is_enabled", "name", "parameters"]),
    ("cache", &["coalesce", "max_age", "mode", "similarity"]),
    (
        "cb_config",
        &[
            "cooldown_interval",
            "failure_status_codes",
            "failure_threshold",
            "failure_threshold_percentage",
            "minimum_requests",
        ],
    ),
    ("deployments[0]", &["alias", "api_version", "deployment_id", "is_default"]),
    ("hedge", &["after_ms", "percentile"]),
    (
        "input_guardrails[0]",
        &[
            "async",
            "audit",
            "deny",
            "guardrail_version_id",
            "id",
            "message",
            "on_fail",
            "on_success",
            "scope",
            "sequential",
            "soft_deny_200",
            "stream",
            "type",
        ],
    ),
    (
        "retry",
        &[
            "attempts",
            "budget_percent",
            "jitter",
            "on_status_codes",
            "use_retry_after_header",
            "use_retry_after_headers",
        ],
    ),
    ("strategy", &["cb_config", "conditions", "default", "mode", "on_status_codes", "sticky"]),
    ("strategy.conditions[0]", &["query", "then"]),
    ("strategy.sticky", &["enabled", "hash_fields", "ttl"]),
];

/// What a query may say: operators on a value, and the two that join queries.
pub static QUERY_OPERATORS: &[&str] =
    &["$and", "$eq", "$gt", "$gte", "$in", "$lt", "$lte", "$ne", "$nin", "$or", "$regex"];
