//! What happened: feedback, analytics, logs and their exports, kept answers, the audit trail; and this interface's own document.

use super::operation::{ADMIN as A, ANY, Access, Feature, Operation, WORKSPACE, delete, get, post, put};

/// `completions.write` suffices, so that a plain inference key can post feedback.
const WRITE_FEEDBACK: &[&str] = &["logs.write", "feedbacks.write", "completions.write"];

pub(super) static FEEDBACK: &[Operation] =
    &[post(158, "/feedback", WORKSPACE, WRITE_FEEDBACK), put(159, "/feedback/{id}", WORKSPACE, WRITE_FEEDBACK)];

const VIEW: &[&str] = &["analytics.view"];

/// Questions name what they ask, and lists of at most 100 items.
const QUESTIONS_BODY: usize = 64 << 10;

const fn figures(number: u16, path: &'static str) -> Operation {
    get(number, path, ANY, VIEW).in_own_workspaces()
}

pub(super) static ANALYTICS: &[Operation] = &[
    figures(160, "/analytics/graphs/requests"),
    figures(161, "/analytics/graphs/cost"),
    figures(162, "/analytics/graphs/latency"),
    figures(163, "/analytics/graphs/tokens"),
    figures(164, "/analytics/graphs/users"),
    figures(165, "/analytics/graphs/users/requests"),
    figures(166, "/analytics/graphs/errors"),
    figures(167, "/analytics/graphs/errors/rate"),
    figures(168, "/analytics/graphs/errors/stacks"),
    figures(169, "/analytics/graphs/errors/status-codes"),
    figures(170, "/analytics/graphs/requests/rescued"),
    figures(171, "/analytics/graphs/cache/hit-rate"),
    figures(172, "/analytics/graphs/cache/latency"),
    figures(173, "/analytics/graphs/feedbacks"),
    figures(174, "/analytics/graphs/feedbacks/scores"),
    figures(175, "/analytics/graphs/feedbacks/weighted"),
    figures(176, "/analytics/graphs/feedbacks/ai-models"),
    figures(177, "/analytics/summary/cache"),
    figures(178, "/analytics/groups/users"),
    figures(179, "/analytics/groups/ai-models"),
    figures(180, "/analytics/groups/workspaces"),
    figures(181, "/analytics/groups/metadata/{metadataKey}"),
    figures(182, "/analytics/groups/{groupBy}"),
    figures(0, "/analytics/budgets"),
    // A question is no change: nothing to record.
    post(0, "/analytics/query", ANY, VIEW).in_own_workspaces().body_up_to(QUESTIONS_BODY),
    post(210, "/analytics/saved-filters", ANY, VIEW).audited("saved_filters", "create"),
    get(211, "/analytics/saved-filters", ANY, VIEW),
    put(212, "/analytics/saved-filters/{id}", ANY, VIEW).audited("saved_filters", "update"),
    delete(213, "/analytics/saved-filters/{id}", ANY, VIEW).audited("saved_filters", "delete"),
];

/// A log carries the request and the answer of a call.
const LOG_BODY: usize = 20 << 20;

pub(super) static LOGS: &[Operation] = &[
    get(183, "/logs/groups/{groupBy}", ANY, &["logs.list", "analytics.view"]).in_own_workspaces(),
    post(184, "/logs", WORKSPACE, &["completions.write", "logs.write"]).all_scopes().body_up_to(LOG_BODY),
    get(185, "/logs/{logId}", ANY, &["logs.view", "logs.read", "logs.write", "completions.write"]).in_own_workspaces(),
    get(186, "/logs", ANY, &["logs.list"]).in_own_workspaces(),
    get(0, "/logs/tail", ANY, &["logs.list"]).in_own_workspaces(),
    post(187, "/logs/exports", ANY, &["logs.export"]).audited("log_exports", "create").when(Feature::DataExports),
    get(188, "/logs/exports", ANY, &["logs.export"]).in_own_workspaces().when(Feature::DataExports),
    get(189, "/logs/exports/{exportId}", ANY, &["logs.export"]).in_own_workspaces().when(Feature::DataExports),
    put(190, "/logs/exports/{exportId}", ANY, &["logs.export"])
        .audited("log_exports", "update")
        .when(Feature::DataExports),
    post(191, "/logs/exports/{exportId}/start", ANY, &["logs.export"])
        .audited("log_exports", "export")
        .when(Feature::DataExports),
    post(192, "/logs/exports/{exportId}/cancel", ANY, &["logs.export"])
        .audited("log_exports", "manage")
        .when(Feature::DataExports),
    get(193, "/logs/exports/{exportId}/download", ANY, &["logs.export"]).in_own_workspaces().when(Feature::DataExports),
    get(194, "/logs/exports/field-restrictions", ANY, &["logs.export"]).when(Feature::DataExports),
    // The link that a download gives out is the credential.
    get(0, "/logs/exports/{exportId}/files/{number}", Access::Public, &[]).when(Feature::DataExports),
    post(0, "/logs/erase", A, &["logs.delete"]).audited("logs", "delete").after_recent_sign_in(),
];

pub(super) static CACHE: &[Operation] = &[delete(0, "/cache", ANY, &["cache.delete"]).audited("cache", "delete")];

pub(super) static AUDIT_LOGS: &[Operation] = &[get(195, "/audit-logs", A, &["audit_logs.list"])
    .by_workspace_session()
    .in_own_workspaces()
    .when(Feature::AuditLogs)];

pub(super) static OPENAPI: &[Operation] = &[get(0, "/openapi.json", Access::Public, &[])];
