//! What the proxy serves itself: one row per endpoint family. Only what the gateway reads is described; everything else
//! of a body is the provider's and passes untouched.

use super::doc::Doc;
use super::operation::{headers, operation_id, parameters, request_body, success};
use super::schema::{self, Schema};
use serde_json::{Value, json};

fn families() -> Vec<Doc> {
    vec![
        Doc::post("/chat/completions", "Complete a chat")
            .details("With `stream: true` the answer is a stream of server-sent events.")
            .body(chat())
            .answer(completion()),
        Doc::get("/models", "List the models that can be asked")
            .details(
                "Without a provider: those of the workspace's providers, as `@slug/model`. With one: its own list.",
            )
            .filter("ai_service", schema::any_text().says("Names of providers, comma separated.").eg("openai"))
            .filter(
                "provider",
                schema::any_text().says("Slugs of the workspace's providers, comma separated.").eg("prod"),
            )
            .filter("limit", schema::whole(1..=i64::MAX).eg(100))
            .filter("offset", schema::whole(0..=i64::MAX).eg(0))
            .filter("sort", schema::choice(&["id", "slug", "provider", "ai_service", "created"]))
            .filter("order", schema::choice(&["asc", "desc"]))
            .answer(models()),
        Doc::get("/models/{model}", "Show one model").answer(model()),
    ]
}

fn models() -> Schema {
    // A provider's own list has no total, and fields of its own.
    schema::any_object().eg(json!({ "object": "list", "total": 1, "data": [model().example()] }))
}

fn model() -> Schema {
    schema::any_object().eg(json!({
        "id": "@prod/gpt-4o", "slug": "gpt-4o", "canonical_slug": "gpt-4o", "object": "model", "created": 1_767_225_600,
        "owned_by": "openai",
    }))
}

fn chat() -> Schema {
    let message = schema::any_object().eg(json!({ "role": "user", "content": "Say hello." }));
    schema::object("ChatCompletionRequest")
        .need("model", schema::any_text().eg("gpt-4o-mini"))
        .need("messages", schema::list(message))
        .may("stream", schema::flag())
}

fn completion() -> Schema {
    schema::any_object().eg(json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello." }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 },
    }))
}

/// Headers by which a caller chooses where a request goes.
const HEADERS: &[(&str, &str)] = &[
    ("x-gateway-provider", "The provider, as `openai`. Its own key goes in `Authorization`."),
    ("x-gateway-custom-host", "Another base URL of the provider."),
    ("x-gateway-metadata", "A JSON object of short texts, kept with the request."),
    ("x-gateway-trace-id", "Joins several requests; made when absent."),
    ("x-gateway-request-timeout", "How long to wait for the provider, in milliseconds."),
];

pub fn rendered() -> Vec<(String, String, Value)> {
    let families = families();
    let served = families.iter().map(|doc| (doc.path.clone(), doc.method.as_str().to_ascii_lowercase(), one(doc)));
    served.chain([("/explain".to_owned(), "post".to_owned(), explain())]).collect()
}

/// In the route table, but answered by the proxy, which knows what it would do.
fn explain() -> Value {
    let question = schema::object("Question")
        .may("method", schema::any_text().eg("POST"))
        .need("path", schema::any_text().eg("/v1/chat/completions"))
        .may("headers", schema::any_object().eg(json!({ "x-gateway-provider": "openai" })))
        .may("body", schema::anything().eg(json!({ "model": "gpt-4o-mini", "messages": [] })))
        .closed();
    json!({
        "operationId": operation_id("POST", &["explain"]),
        "tags": ["explain"],
        "summary": "Say what would become of a request",
        "description": "Which config and version applies, which targets would be tried in which order and why, with which \
                        settings. No provider is asked. Headers that are JSON may be written as JSON. Needs all of the \
                        scopes `completions.write`, `logs.view`, `configs.read` and a key of a workspace. Served by the \
                        proxy.",
        "parameters": [],
        "requestBody": request_body(&question),
        "security": [{ "apiKey": [] }, { "bearer": [] }],
        "responses": { "200": success(&explanation()), "default": refusal() },
        "x-scopes": { "allOf": ["logs.view", "configs.read"] },
        "x-implemented": true,
    })
}

fn explanation() -> Schema {
    let config = schema::object("ExplainedConfig")
        .need("source", schema::choice(&["inline", "request", "api_key", "workspace", "none"]).eg("request"))
        .need("id", schema::uuid().or_null())
        .need("slug", schema::any_text().eg("pc-chat").or_null())
        .need("version_id", schema::uuid().or_null());
    let why = schema::list(schema::any_text().eg("config: a fallback begins with its first healthy target"));
    let target = schema::any_object().eg(json!({
        "provider": "openai", "url": "https://api.openai.com/v1/chat/completions", "model": "gpt-4o-mini",
        "request_timeout": 600000, "stream_idle_timeout": 120000, "refusal": null,
    }));
    let stop = schema::object("ExplainedTarget")
        .need("option", schema::any_text().eg("config.targets[0]"))
        .need("is_reached", schema::flag())
        .need("share", schema::number(0).eg(1.0))
        .need("why", why)
        .need("settings", schema::any_object().eg(json!({ "retry": { "attempts": 2 }, "circuit": "closed" })))
        .need("target", target);
    schema::object("Explanation")
        .need("object", schema::fixed("explanation"))
        .need("lane", schema::choice(&["engine", "relay"]).eg("engine"))
        .need("metadata", schema::any_object().eg(json!({ "_user": "ann" })))
        .need("config", config)
        .need("plan", schema::list(stop))
        .need("limits", schema::list(schema::any_object()))
        .need("guardrails", schema::list(schema::any_object()))
}

fn one(doc: &Doc) -> Value {
    let segments: Vec<&str> = doc.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let in_head = HEADERS.iter().map(
        |(name, text)| json!({ "name": name, "in": "header", "description": text, "schema": { "type": "string" } }),
    );
    let parameters: Vec<Value> = parameters(&segments, Some(doc)).into_iter().chain(in_head).collect();
    let mut answer = success(&doc.answer);
    let is_listing = doc.body.is_none();
    if !is_listing {
        answer["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    let scopes: &[&str] = if is_listing { &["models.list", "completions.write"] } else { &["completions.write"] };
    let needs = scopes.iter().map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(" or ");
    let details = doc.details.as_deref().unwrap_or_default();
    let mut rendered = json!({
        "operationId": operation_id(doc.method.as_str(), &segments),
        "tags": ["inference"],
        "summary": doc.summary,
        "description": format!("{details} Needs the scope {needs} and a key of a workspace. Served by the proxy."),
        "parameters": parameters,
        "security": [{ "apiKey": [] }, { "bearer": [] }],
        "responses": { "200": answer, "default": refusal() },
        "x-scopes": { "anyOf": scopes },
        "x-implemented": true,
    });
    if let Some(body) = &doc.body {
        rendered["requestBody"] = request_body(body);
    }
    rendered
}

/// The provider's own errors pass as they are, so there is no one schema for them.
fn refusal() -> Value {
    let example = json!({
        "error": { "message": "no API key was sent: use the header x-gateway-api-key", "type": "authentication_error",
                   "param": null, "code": "missing_api_key" },
    });
    json!({
        "description": "Refused by the gateway or by the provider.",
        "headers": headers(),
        "content": { "application/json": { "schema": schema::any_object().json, "example": example } },
    })
}
