//! The config language as JSON Schema: what may stand in `x-gateway-config` and in a saved config, key by key, with
//! defaults, ranges and examples. The reader in `shared::config` is the truth; a test holds the two together.
//!
//! It describes saved configs. Inline ones are read more kindly (unknown keys are ignored), and both accept camel case
//! and null for "not sent".

mod hooks;
mod placement;
mod query;
mod settings;

pub use placement::headers as placement_headers;

use super::components;
use super::schema::{self, Schema, any_object, any_text, choice, flag, list, number, object, text, whole};
use serde_json::{Map, Value, json};

/// The root of the language among the components.
pub const TITLE: &str = "ConfigObject";

const DAY_MS: i64 = 86_400_000;

/// Adds the language to the components, and leads there from every place where a config is sent or shown.
pub fn join(document: &mut Value) {
    let mut found = Map::new();
    components::hoisted(config().json, &mut found);
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    for title in ["NewConfig", "ConfigChange"] {
        // An object or its JSON as text, where null may join them: the object is what the language describes.
        let forms = schemas.get_mut(title).and_then(|schema| schema.pointer_mut("/properties/config/anyOf"));
        let forms = forms
            .and_then(|forms| if forms[0].get("anyOf").is_some() { forms[0].get_mut("anyOf") } else { Some(forms) });
        if let Some(form) = forms.and_then(|forms| forms.get_mut(0)) {
            *form = reference(TITLE, Value::Null).json;
        }
    }
    schemas.extend(found);
    schemas.sort_keys();
}

/// A named object of the document, by its name: the only way to say that targets are configs again.
fn reference(title: &str, example: Value) -> Schema {
    Schema { json: json!({ "$ref": format!("#/components/schemas/{title}") }), example }
}

/// A key that may be left out; null says the same.
fn key(schema: Schema, says: &str) -> Schema {
    let is_nullable = schema.json.get("type").is_some() || schema.json.get("anyOf").is_some();
    needed(if is_nullable { schema.or_null() } else { schema }, says)
}

fn needed(schema: Schema, says: &str) -> Schema {
    let mut schema = schema.says(says);
    schema.json["examples"] = json!([schema.example]);
    schema
}

/// A key with the value that it has when it is left out.
fn key_or(schema: Schema, default: impl Into<Value>, says: &str) -> Schema {
    let mut schema = key(schema, says);
    schema.json["default"] = default.into();
    schema
}

fn statuses(example: Value) -> Schema {
    list(whole(100..=599)).eg(example)
}

fn milliseconds(least: i64, example: i64) -> Schema {
    whole(least..=DAY_MS).eg(example)
}

fn example() -> Value {
    json!({
        "strategy": { "mode": "fallback", "on_status_codes": [429, 503] },
        "retry": { "attempts": 2 },
        "targets": [{ "provider": "@openai-main" }, { "provider": "@backup", "override_params": { "model": "small" } }],
    })
}

fn config() -> Schema {
    let says =
        "Which providers a request may go to, in which order, with which settings. Each target is a config again.";
    let all = [routing(), target(), body(), times(), behaviour(), hooks::keys(), placement::keys()];
    all.iter().fold(object(TITLE), |config, part| config.with(part)).closed().eg(example()).says(says)
}

fn routing() -> Schema {
    let targets = list(reference(TITLE, json!({ "provider": "@openai-main" }))).at_least(1);
    let legacy = "The old place of strategy.on_status_codes, which wins.";
    object("")
        .may("strategy", key(settings::strategy(), "How one of the targets is chosen; needs targets."))
        .may(
            "targets",
            key(
                targets,
                "What to choose from; needs a strategy. At most 100 at the root (1,000 with the mode \
            conditional), 50 below each, 10 levels; the operator may set other bounds.",
            ),
        )
        .may("on_status_codes", key(statuses(json!([429, 503])), legacy))
        .may(
            "weight",
            key_or(
                number(0).up_to(1_000_000_000).eg(0.7),
                1,
                "The target's share in a load balance, relative to the others'; 0 drains it.",
            ),
        )
        .may(
            "name",
            key(
                text(1..=usize::MAX).eg("big"),
                "The name by which conditions choose this target; no two beside each other share one.",
            ),
        )
        .may("id", key(text(1..=usize::MAX).eg("checkout"), "A name for the config, which explanations show of each target (`settings.config_id`); the outermost one counts. Nothing else depends on it."))
}

fn target() -> Schema {
    let host = any_text().eg("https://llm.example.com/v1");
    object("")
        .may("provider", key(text(1..=usize::MAX).eg("@openai-main"), "A provider's name, as openai, or `@slug` of one that the workspace stores."))
        .may("virtual_key", key(text(1..=usize::MAX).eg("openai-main"), "The old name of `@slug`."))
        .may("prompt_id", key(text(1..=usize::MAX).eg("pp-greeting-1f2e3d"), "A stored prompt, as slug, slug@3 or slug@label, to run in place of the body, which gives it variables and parameters."))
        .may("passthrough", key_or(flag().eg(true), false, "Takes the provider from the request's own headers or model; stands without strategy, targets, override_params and guardrails."))
        .may("custom_host", key(host, "Another base URL of the provider, with its version segment. Inherited by targets."))
}

fn body() -> Schema {
    let params = |example: Value| any_object().eg(example);
    let paths = list(text(1..=usize::MAX).eg("tools[*].strict"));
    object("")
        .may(
            "override_params",
            key(
                params(json!({ "model": "gpt-4o-mini", "temperature": 0 })),
                "Fields set in the body, whatever the client sent. Merged with those above, the inner one wins.",
            ),
        )
        .may(
            "default_params",
            key(
                params(json!({ "max_tokens": 500 })),
                "Fields set in the body where the client sent none. Merged with those above, the inner one wins.",
            ),
        )
        .may(
            "drop_params",
            key(paths, "Paths removed from the body last: `a`, `a.b`, `a[0].b`, `a[*].b`. Added to those above."),
        )
}

fn times() -> Schema {
    object("")
        .may("request_timeout", key(milliseconds(1, 8000), "Milliseconds for one attempt until the answer's head, then 408; the header x-gateway-request-timeout wins. UPSTREAM_FIRST_BYTE_TIMEOUT_MS when absent."))
        .may("total_timeout", key(milliseconds(1, 60_000), "Milliseconds for the whole request, with all its attempts and the stream."))
        .may("stream_idle_timeout", key(milliseconds(1, 30_000), "Milliseconds of silence after which a stream is over. UPSTREAM_STREAM_IDLE_TIMEOUT_MS when absent."))
        .may("stream_heartbeat", key(milliseconds(100, 15_000), "Milliseconds of silence after which the client of a stream gets a comment, so that nothing between cuts the connection; none when absent."))
}

fn behaviour() -> Schema {
    let forward = list(text(1..=usize::MAX).eg("x-tenant"));
    let strict = "Whether answers hold OpenAI's fields only; false lets a provider's own through.";
    object("")
        .may("cache", key(schema::either([settings::cache(), choice(&["simple", "semantic"])]), "Answers from the cache: an object, or only its mode."))
        .may("retry", key(settings::retry(), "Tries again what failed, before a fallback goes on. Replaces the one above as a whole."))
        .may("hedge", key(settings::hedge(), "A second attempt beside a slow first one; the first answer wins. Counted against the retry budget."))
        .may("cb_config", key(settings::circuit_breaker(), "A circuit breaker: a target that keeps failing is left out for a while. Replaces the one above as a whole."))
        .may("forward_headers", key(forward, "Headers of the client that are sent on to the provider; x-gateway-forward-headers wins."))
        .may("strict_open_ai_compliance", key_or(flag().eg(false), true, strict))
        .may("strict_openai_compliance", key_or(flag().eg(false), true, "Another spelling of strict_open_ai_compliance."))
        .may("fetch_integrated_models", key_or(flag().eg(true), false, "Whether `GET /models` lists the workspace's models although a provider is named."))
}
