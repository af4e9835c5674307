//! How the OpenAPI document shows policies.

use super::rates::{self, RatePolicy};
use super::rule::{MAX_CONDITIONS, MAX_GROUPS, MAX_VALUE, MAX_VALUES, TARGETS};
use super::usage::{self, UsagePolicy};
use super::{STATUSES, entities};
use crate::crud::Resource as _;
use crate::http::{FLAGS, PageSizes};
use crate::openapi::schema::{self, Schema};
use crate::openapi::{Doc, choices};
use serde_json::json;

const MAX_AMOUNT: i64 = 1_000_000_000_000_000;

pub fn rates() -> [Doc; 6] {
    let own = |title: &str| {
        schema::object(title)
            .need("type", schema::choice(&rates::KINDS))
            .need("unit", schema::choice(&rates::UNITS))
            .need("value", schema::number(1).up_to(MAX_AMOUNT).eg(100))
    };
    let policy = record(schema::shown("RateLimitsPolicy", RatePolicy::OBJECT).with(&own("")), &RATE_KEYS);
    let change = change("RateLimitsPolicyChange", &RATE_KEYS)
        .may("type", schema::choice(&rates::KINDS).or_null().says("Cannot be changed."))
        .may("unit", schema::choice(&rates::UNITS).or_null())
        .may("value", schema::number(1).up_to(MAX_AMOUNT).eg(100).or_null());
    let entity = entity("RateLimitsPolicyEntity")
        .need("limit", schema::number(1).eg(100))
        .need("window_resets_at", schema::time());
    let path = format!("{}/{{id}}/entities", RatePolicy::PATH);
    let restarts = "Sets the fields that are sent and keeps the others. Counters restart when `unit`, `conditions` or \
                    `group_by` change; a new `value` holds in the running window.";
    [
        Doc::list::<RatePolicy>(&policy)
            .filter("status", statuses())
            .filter("type", choices(&rates::KINDS))
            .filter("unit", choices(&rates::UNITS)),
        Doc::create::<RatePolicy>(new(own("NewRateLimitsPolicy"), &RATE_KEYS)),
        Doc::read::<RatePolicy>(&matched(&policy, "RateLimitsPolicyRead")).filter("status", statuses()),
        Doc::update::<RatePolicy>(change).details(restarts).answer(policy),
        Doc::delete::<RatePolicy>(),
        listed(Doc::get(&path, "List whom a rate limits policy speaks of, and who was counted in this window"), entity),
    ]
}

pub fn usage() -> [Doc; 8] {
    let limit = || schema::number(1).up_to(MAX_AMOUNT).eg(500).says("Dollars, tokens (at least 100) or requests.");
    let budget = schema::object("")
        .may("alert_threshold", schema::number(1).up_to(MAX_AMOUNT).eg(400).or_null().says("Below credit_limit."))
        .may("periodic_reset", schema::choice(&["monthly", "weekly"]).or_null().says("On the first, or on Mondays."))
        .may("periodic_reset_days", schema::whole(1..=365).or_null().eg(json!(null)));
    let own = |title: &str| {
        let needed = schema::object(title).need("type", schema::choice(&usage::KINDS)).need("credit_limit", limit());
        needed.with(&budget)
    };
    let policy = record(schema::shown("UsageLimitsPolicy", UsagePolicy::OBJECT).with(&own("")), &USAGE_KEYS)
        .need("next_usage_reset_at", schema::time().or_null())
        .need("last_reset_at", schema::time().says("When the present period began."))
        .need("strict", strict())
        .need("unknown_price", crate::limits::docs::unknown_price())
        .whole();
    let sent = |body: Schema| {
        body.may("next_usage_reset_at", schema::moment().or_null())
            .may("strict", strict().or_null())
            .may("unknown_price", crate::limits::docs::unknown_price())
    };
    let change = sent(change("UsageLimitsPolicyChange", &USAGE_KEYS).with(&budget))
        .may("type", schema::choice(&usage::KINDS).or_null().says("Cannot be changed."))
        .may("credit_limit", limit().or_null())
        .may(
            "reset_usage_for_value",
            schema::any_text().or_null().eg(json!(null)).says("A value key, whose usage starts over."),
        );
    let state = schema::object("")
        .need("current_usage", schema::number(0))
        .need("status", schema::choice(&entities::STATUSES))
        .need("is_threshold_alerts_sent", schema::flag())
        .need("is_exhausted_alerts_sent", schema::flag());
    let read = matched(&policy, "UsageLimitsPolicyRead")
        .may("value_key_usage_map", schema::map(state).says("With `include_usage=true`, by value key."));
    let says = "Part of current_usage: promised to calls whose proxy died before they were over.";
    let entity = entity("UsageLimitsPolicyEntity")
        .need("last_reset_at", schema::time().or_null())
        .need("unconfirmed", schema::number(0).says(says));
    let entities = format!("{}/{{id}}/entities", UsagePolicy::PATH);
    let by_body = schema::object("").need("entity_id", schema::any_text().eg("metadata._user:alice"));
    [
        Doc::list::<UsagePolicy>(&policy).filter("status", statuses()).filter("type", choices(&usage::KINDS)),
        Doc::create::<UsagePolicy>(sent(new(own("NewUsageLimitsPolicy"), &USAGE_KEYS))),
        Doc::read::<UsagePolicy>(&read)
            .filter("status", statuses())
            .filter("include_usage", schema::choice(FLAGS).or_empty().says("`true` adds what each group has used.")),
        Doc::update::<UsagePolicy>(change).answer(policy),
        Doc::delete::<UsagePolicy>(),
        listed(Doc::get(&entities, "List the groups of a usage limits policy, and what each has used"), entity),
        Doc::put(&format!("{entities}/{{entityId}}/reset"), "Set the usage of one group back to zero")
            .details("The group is named by its id or its value key."),
        Doc::post(&format!("{entities}/reset"), "Set the usage of one group back to zero, named in the body")
            .body(by_body)
            .answer(schema::object("").need("success", schema::fixed(true))),
    ]
}

const RATE_KEYS: [&str; 11] = [
    "api_key",
    "organisation_id",
    "workspace_id",
    "virtual_key",
    "provider",
    "config",
    "prompt",
    "model",
    "endpoint_type",
    "mcp_server",
    "mcp_tool",
];
const USAGE_KEYS: [&str; 10] = [
    "api_key",
    "organisation_id",
    "workspace_id",
    "virtual_key",
    "provider",
    "config",
    "prompt",
    "model",
    "mcp_server",
    "mcp_tool",
];

fn conditions(keys: &[&str]) -> Schema {
    let text = || schema::text(1..=MAX_VALUE);
    let several = |one: Schema| [one.clone(), schema::list(one).at_least(1).at_most(MAX_VALUES)];
    let others = several(text().matching(r"^([^*]|\*[\s\S])").eg("root")).into_iter().chain([schema::nothing()]);
    let condition = schema::object("")
        .need("key", key(keys))
        .need("value", schema::either(several(text().eg("*"))).says("One of these; `*` is any value at all."))
        .may("excludes", schema::either(others).says("And none of these."))
        .closed();
    schema::list(condition)
        .at_most(MAX_CONDITIONS)
        .says("All of them must hold; without any it applies to every request.")
}

fn group_by(keys: &[&str]) -> Schema {
    let group = schema::object("").need("key", key(keys)).closed();
    schema::list(group).at_most(MAX_GROUPS).says(
        "Each combination of values is counted apart; a request that lacks one of them is not counted, \
               unless `include_none` is set. Without any, all requests are counted together.",
    )
}

fn key(keys: &[&str]) -> Schema {
    let form = format!(r"^({}|metadata\.[^\x00-\x1f\x7f-\x9f]{{1,128}})$", keys.join("|"));
    let says = format!("One of {}, or `metadata.<field>`.", keys.join(", "));
    schema::any_text().matching(&form).eg("metadata._user").says(&says)
}

fn new(sent: Schema, keys: &[&str]) -> Schema {
    sent.may("conditions", conditions(keys).or_null())
        .may("group_by", group_by(keys).or_null())
        .may("name", name().or_null())
        .may("description", description().or_null())
        .may("dry_run", dry_run().or_null())
        .may("include_none", include_none().or_null())
        .may("trusted_metadata", trusted_metadata().or_null())
        .may("organisation_id", schema::uuid().or_null().eg(json!(null)).says("The caller's own."))
        .may("target", target())
}

fn change(title: &str, keys: &[&str]) -> Schema {
    schema::object(title)
        .may("name", name().or_null())
        .may("description", description().or_null())
        .may("conditions", conditions(keys).or_null())
        .may("group_by", group_by(keys).or_null())
        .may("dry_run", dry_run().or_null())
        .may("include_none", include_none().or_null())
        .may("trusted_metadata", trusted_metadata().or_null())
        .may("target", target())
        .may("status", schema::choice(&STATUSES).or_null())
}

fn record(policy: Schema, keys: &[&str]) -> Schema {
    policy
        .need("conditions", conditions(keys))
        .need("group_by", group_by(keys))
        .need("name", name().or_null())
        .need("description", description().or_null())
        .need("dry_run", dry_run())
        .need("include_none", include_none())
        .need("trusted_metadata", trusted_metadata())
        .need("target", target())
        .need("status", schema::choice(&STATUSES))
        .need("workspace_id", schema::uuid())
        .need("organisation_id", schema::uuid())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn matched(policy: &Schema, title: &str) -> Schema {
    schema::object(title)
        .with(policy)
        .need("last_matched_at", schema::time().or_null().says("When a request last matched it."))
        .need("unmatched", schema::flag().says("Whether nothing has matched it for a day."))
}

fn entity(title: &str) -> Schema {
    schema::shown(title, "policy-entity")
        .need("value_key", schema::any_text().eg("metadata._user:alice"))
        .need("current_usage", schema::number(0))
        .need("status", schema::choice(&entities::STATUSES))
        .need("entity_type", schema::choice(&entities::TYPES))
        .need("entity_id", schema::any_text().eg("alice"))
        .need("name", schema::any_text().eg("alice").or_null())
}

fn listed(doc: Doc, entity: Schema) -> Doc {
    let answer = schema::object("")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("data", schema::list(entity));
    doc.pages(PageSizes::USUAL)
        .filter("type", choices(&entities::TYPES))
        .filter("status", choices(&entities::STATUSES))
        .filter("search", schema::any_text().eg("ali").says("Part of the value key or name, in upper or lower case."))
        .filter("workspace_id", schema::any_text().eg("ws-market-3f9a01").says("Id or slug of a workspace."))
        .answer(answer)
}

fn statuses() -> Schema {
    choices(&STATUSES).says("`active` unless asked for otherwise.")
}

fn name() -> Schema {
    schema::text(1..=255).eg("Everybody")
}

fn description() -> Schema {
    schema::text(0..=500).eg("So that nobody takes it all")
}

fn strict() -> Schema {
    schema::flag().says("Never overspent, at the price of waiting for the database.")
}

fn include_none() -> Schema {
    schema::flag().says("Requests that lack a grouped value are counted together, in a group of their own.")
}

fn trusted_metadata() -> Schema {
    schema::flag().says("Only metadata of the API key and the workspace is looked at, not what the client sends.")
}

fn target() -> Schema {
    let says = "Which requests it is for: those to models, calls of MCP tools, or both (null). Cannot be changed.";
    schema::choice(&TARGETS).or_null().eg(json!(null)).says(says)
}

fn dry_run() -> Schema {
    schema::flag().says("Counts and reports, and never refuses.")
}
