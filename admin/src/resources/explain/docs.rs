//! How the document shows `POST /explain`, for requests that are made up and for those of the past.

use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::json;

pub fn docs() -> Doc {
    let question = schema::object("Question")
        .may("method", schema::any_text().eg("POST"))
        .need("path", schema::any_text().eg("/v1/chat/completions"))
        .may(
            "workspace_id",
            schema::any_text().eg("ws-market-3f9a01").says("Id or slug of the workspace; admin keys must name it."),
        )
        .may("headers", schema::any_object().eg(json!({ "x-gateway-provider": "openai" })))
        .may("body", schema::anything().eg(json!({ "model": "gpt-4o-mini", "messages": [] })))
        .closed();
    let past = schema::object("PastQuestion")
        .need("request_id", schema::text(1..=1024).eg("019a0000-0000-7000-8000-000000000000"))
        .closed();
    let traced = schema::object("PastTrace").need("trace_id", schema::text(1..=1024).eg("checkout-42")).closed();
    Doc::post("/explain", "Say what would become of a request, or what became of one")
        .details(
            "With `path`: which config and version applies, which targets would be tried in which order and why, with \
             which settings, and which limits would speak of it and what they would say. No provider is asked, nothing \
             counted. Headers that are JSON may be written as JSON. An admin key asks for a \
             workspace, by `workspace_id`. It is told by the proxy alone. With `request_id` \
             (the `x-gateway-request-id` of an answer or the id of a log) or `trace_id` (that has no other request): what was \
             tried, in which order and why, and what came of it. Logs arrive within seconds of a request's end.",
        )
        .body(schema::either([question, past, traced]))
        .answer(explanation())
}

fn explanation() -> Schema {
    let sources = ["inline", "request", "api_key", "workspace", "none", "saved"];
    let config = schema::object("ExplainedConfig")
        .need(
            "source",
            schema::choice(&sources).eg("request").says("`saved` of past requests: who named it is not logged."),
        )
        .need("id", schema::uuid().or_null())
        .need("slug", schema::any_text().eg("pc-chat").or_null())
        .need("version_id", schema::uuid().or_null())
        .may("version", schema::whole(1..=i64::MAX).or_null().says("Its number; of past requests."));
    let prompt = schema::object("ExplainedPrompt")
        .need("id", schema::uuid())
        .need("slug", schema::any_text().eg("pp-greeting-1f2e3d"))
        .need("version", schema::whole(1..=i64::MAX))
        .need("version_id", schema::uuid());
    let why = schema::list(schema::any_text().eg("config: a fallback begins with its first healthy target"));
    let target = schema::any_object().eg(json!({
        "provider": "openai", "url": "https://api.openai.com/v1/chat/completions", "model": "gpt-4o-mini",
        "found_at": null, "translated_to": null, "dropped_params": [], "request_timeout": 600000, "stream_idle_timeout": 120000, "refusal": null,
    }));
    let settings = schema::any_object().eg(json!({ "retry": { "attempts": 2 }, "circuit": "closed" })).or_null();
    let tried = counted(schema::object("TriedTarget").need("log_id", schema::uuid()));
    let stop = schema::object("ExplainedTarget")
        .need("option", schema::any_text().eg("config.targets[0]"))
        .need("is_reached", schema::flag().says("Whether a request can come to it; of past requests, whether it did."))
        .need("share", schema::number(0).eg(1.0).or_null())
        .need("why", why)
        .need("settings", settings.says("Null for a past request whose config is not kept."))
        .need(
            "target",
            target.says(
                "`found_at` is the workspace's provider that a model without one was found at, null where the request or its \
                 config names the provider. `translated_to` is the format into which the body is written, `estimate` where the \
                 gateway counts tokens itself; `dropped_params` is what that cannot say, null \
                 where it was not tried out. A `refusal` beside a `url` says why the body cannot be written for the target. \
                 Of past requests `url`, `translated_to` and timeouts are not logged.",
            ),
        )
        .may("outcome", tried.or_null());
    let limits = schema::list(limit()).or_null();
    let guardrails = schema::list(
        schema::object("ExplainedGuardrail")
            .need("option", schema::any_text().eg("config.targets[0]"))
            .need("is_reached", schema::flag())
            .need("is_run", schema::flag().says("Whether they would run: the target is reached."))
            .need("input", schema::list(schema::any_object()).says(
                "Hooks of the request; `says` is what one would say of the body, null where others would be asked or there is none.",
            ))
            .need("output", schema::list(schema::any_object()).says("Hooks of the answer.")),
    );
    schema::object("Explanation")
        .need("object", schema::fixed("explanation"))
        .need("lane", schema::choice(&["engine", "relay"]).eg("engine"))
        .need("metadata", schema::any_object().eg(json!({ "_user": "ann" })))
        .need("config", config)
        .may("prompt", prompt.or_null().says("The stored prompt that the path names, and the version it would be."))
        .need("plan", schema::list(stop))
        .need("limits", limits.says("That would speak of the request. Null of past requests, whose logs do not tell."))
        .need("guardrails", guardrails.or_null().says("Of a config that applies. Null of past requests."))
        .may(
            "warnings",
            warnings().says("What was ignored or changed in the config and the headers, and what the config names that does not exist."),
        )
        .may("outcome", outcome().or_null().says("Of a past request; null while it runs or its end is not stored yet."))
}

fn warnings() -> Schema {
    let warning = schema::object("ConfigWarning")
        .need("code", schema::any_text().eg("AB01_UNKNOWN_KEY"))
        .need("path", schema::any_text().eg("retry.attemps"))
        .need("message", schema::any_text().eg("is not a field of a config: did you mean attempts?"));
    schema::list(warning)
}

fn limit() -> Schema {
    let scopes = ["api_key", "token", "workspace", "policy", "virtual_key", "integration"];
    let amount = || schema::number(0).eg(100);
    schema::object("ExplainedLimit")
        .need("scope", schema::choice(&scopes).eg("workspace"))
        .need("whose", schema::any_text().eg("the workspace `ws-market-3f9a01`"))
        .need(
            "option",
            schema::any_text()
                .eg("config.targets[0]")
                .or_null()
                .says("The target it is asked for; null before routing."),
        )
        .need("kind", schema::choice(&["rate", "budget"]))
        .need("type", schema::choice(&["requests", "tokens", "cost"]))
        .need("window", schema::choice(&["minute", "hour", "day", "week"]).or_null().says("Of a rate, in UTC."))
        .need("strict", schema::flag())
        .need("dry_run", schema::flag().says("It counts, and refuses nothing."))
        .need("cap", amount().says("Requests, tokens or US dollars, as the two that follow."))
        .need("wanted", amount().or_null().says("What it would reserve; null when nobody can say."))
        .need("remaining", amount().or_null().says("As far as this proxy knows; null when it would have to ask."))
        .need("resets_at", schema::time().or_null())
        .need("verdict", schema::choice(&["passes", "refuses", "unknown"]))
        .need("message", schema::any_text().eg("the budget of this API key is used up: 5 USD").or_null())
}

fn outcome() -> Schema {
    counted(schema::object("PastOutcome"))
        .need("request_id", schema::uuid())
        .need("trace_id", schema::any_text().eg("checkout-42"))
        .need("created_at", schema::time())
        .need("method", schema::any_text().eg("POST"))
        .need("path", schema::any_text().eg("/v1/chat/completions"))
        .need("cost_currency", schema::any_text().eg("USD"))
        .need("answered_by", schema::any_text().eg("config.targets[1]").or_null())
        .need("targets_tried", schema::whole(0..=i64::MAX))
}

/// The fields of each try, and their sums for the request.
fn counted(object: Schema) -> Schema {
    let count = || schema::whole(0..=i64::MAX);
    object
        .need("status", count().eg(200))
        .need("is_success", schema::flag().eg(true))
        .need("error_code", schema::any_text().eg("upstream_unreachable").or_null())
        .need("retries", schema::whole(-1..=i64::MAX).eg(0).says("-1 when they were used up without success."))
        .need("response_time", count().eg(420))
        .need("time_to_first_token", count().eg(80).or_null())
        .need("req_units", count().eg(12))
        .need("res_units", count().eg(30))
        .need("usage_estimated", schema::flag())
        .need("cost", schema::number(0).eg(0.025).or_null().says("US cents; null when no price is known."))
        .need("cost_unit", schema::fixed("cent").says("What `cost` is counted in."))
}
