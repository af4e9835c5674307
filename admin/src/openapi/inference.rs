//! What the proxy serves itself, as the document shows it. The families stand in `families`, one row each.

mod families;

use super::doc::Doc;
use super::operation::{headers, operation_id, parameters, request_body, success};
use super::schema::{self, Schema};
use families::{Family, Gives, families};
use serde_json::{Value, json};

/// Headers by which a caller chooses where a request goes.
const HEADERS: &[(&str, &str)] = &[
    ("x-gateway-provider", "The provider: a name, as `openai`, whose own key goes in `Authorization`, or `@slug`."),
    ("x-gateway-config", "The config to follow: its slug, or the object itself."),
    ("x-gateway-custom-host", "Another base URL of the provider."),
    ("x-gateway-metadata", "A JSON object of short texts, kept with the request."),
    ("x-gateway-trace-id", "Joins several requests; made when absent."),
    ("x-gateway-request-timeout", "How long to wait for the provider, in milliseconds."),
];

pub fn rendered() -> Vec<(String, String, Value)> {
    let families = families();
    let method = |doc: &Doc| doc.method.as_str().to_ascii_lowercase();
    let served = families.iter().map(|one| (one.doc.path.clone(), method(&one.doc), operation(one)));
    served.chain([("/explain".to_owned(), "post".to_owned(), explain())]).collect()
}

fn operation(family: &Family) -> Value {
    let doc = &family.doc;
    let segments: Vec<&str> = doc.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let ours = HEADERS.iter().map(
        |(name, text)| json!({ "name": name, "in": "header", "description": text, "schema": { "type": "string" } }),
    );
    let parameters: Vec<Value> = parameters(&segments, Some(doc)).into_iter().chain(ours).collect();
    let details = doc.details.as_deref().unwrap_or_default();
    let needs = family.scopes.iter().map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(" or ");
    let mut rendered = json!({
        "operationId": operation_id(doc.method.as_str(), &segments),
        "tags": ["inference"],
        "summary": doc.summary,
        "description": format!("{details} Needs the scope {needs} and a key of a workspace. Served by the proxy.").trim(),
        "parameters": parameters,
        "security": [{ "apiKey": [] }, { "bearer": [] }],
        "responses": { family.gives.status(): answer(doc, family.gives), "default": refusal() },
        "x-scopes": { "anyOf": family.scopes },
        "x-implemented": true,
    });
    if let Some(body) = &doc.body {
        rendered["requestBody"] = request_body(body);
        if family.takes_form {
            let content = &mut rendered["requestBody"]["content"];
            content["multipart/form-data"] = json!({ "schema": content["application/json"]["schema"] });
            if let Some(kinds) = content.as_object_mut() {
                kinds.shift_remove("application/json");
            }
        }
    }
    rendered
}

fn answer(doc: &Doc, gives: Gives) -> Value {
    let mut answer = success(&doc.answer);
    match gives {
        Gives::Json => {}
        Gives::JsonOrEvents => answer["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } }),
        Gives::Bytes(kind) => {
            answer["content"] = json!({ kind: { "schema": { "type": "string", "format": "binary" } } })
        }
        Gives::Websocket => {
            answer["description"] = "The connection is a websocket from here on.".into();
            if let Some(answer) = answer.as_object_mut() {
                answer.shift_remove("content");
            }
        }
    }
    answer
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
