//! What the proxy serves itself, as the document shows it. The families stand in `families`, one row each.

mod families;

use super::config_language;
use super::doc::Doc;
use super::operation::{headers as headers_of_all, operation_id, parameters, request_body, success};
use super::schema;
use families::{Family, FamilyAnswer, families};
use serde_json::{Map, Value, json};
use shared::headers::gateway_headers;
use shared::headers::header_prefix::PREFIX;

/// The gateway's own headers, once, among the components. Every operation here reads the first; those that say where a
/// provider's account is count for the provider they belong to, and are listed here alone.
pub fn header_parameters() -> Value {
    let row = |name: String, says: &str, example: &str| {
        let schema = json!({ "type": "string" });
        let parameter =
            json!({ "name": name, "in": "header", "description": says, "schema": schema, "example": example });
        (name, parameter)
    };
    let ours = gateway_headers::REQUEST.iter().map(|header| row(name(header.suffix), header.says, header.example));
    let placement = config_language::placement_headers()
        .map(|(field, example, says)| row(name(&field.replace('_', "-")), says, example));
    Value::Object(ours.chain(placement).collect())
}

/// The headers of an answer; nothing promises that all are there.
fn answer_headers() -> Value {
    let rows = gateway_headers::RESPONSE.iter().map(|header| {
        let row = json!({ "description": header.says, "schema": { "type": "string" }, "example": header.example });
        (header.suffix.to_owned(), row)
    });
    let mut headers: Map<String, Value> = rows.collect();
    headers.extend(headers_of_all().as_object().into_iter().flatten().map(|(name, row)| (name.clone(), row.clone())));
    Value::Object(headers)
}

fn name(suffix: &str) -> String {
    format!("{PREFIX}{suffix}")
}

pub fn rendered() -> Vec<(String, String, Value)> {
    let families = families();
    let method = |doc: &Doc| doc.method.as_str().to_ascii_lowercase();
    let served = families.iter().map(|one| (one.doc.path.clone(), method(&one.doc), operation(one)));
    served.collect()
}

fn operation(family: &Family) -> Value {
    let doc = &family.doc;
    let segments: Vec<&str> = doc.path.split('/').filter(|segment| !segment.is_empty()).collect();
    // Who sends the key is a matter of `security`.
    let others = gateway_headers::REQUEST.iter().filter(|header| header.suffix != "api-key");
    let ours = others.map(|header| json!({ "$ref": format!("#/components/parameters/{}", name(header.suffix)) }));
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
        "responses": { "default": refusal() },
        "x-scopes": { "anyOf": family.scopes },
        "x-implemented": true,
    });
    // Asking which models there are is no call, and meets no limits.
    if !family.scopes.contains(&"models.list") {
        rendered["responses"]["412"] = exhausted();
        rendered["responses"]["429"] = too_many();
    }
    rendered["responses"][family.gives.status()] = answer(doc, family.gives);
    if let Some(body) = &doc.body {
        rendered["requestBody"] = request_body(body);
        if family.takes_form {
            let content = &mut rendered["requestBody"]["content"];
            let form = content["application/json"].clone();
            content["multipart/form-data"] = json!({ "schema": form["schema"], "example": form["example"] });
            if let Some(kinds) = content.as_object_mut() {
                kinds.shift_remove("application/json");
            }
        }
    }
    rendered
}

fn answer(doc: &Doc, gives: FamilyAnswer) -> Value {
    let mut answer = success(&doc.answer);
    answer["headers"] = answer_headers();
    match gives {
        FamilyAnswer::Json => {}
        FamilyAnswer::JsonOrEvents => {
            answer["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } })
        }
        FamilyAnswer::Bytes(kind) => {
            answer["content"] = json!({ kind: { "schema": { "type": "string", "format": "binary" } } })
        }
        FamilyAnswer::Websocket => {
            answer["description"] = "The connection is a websocket from here on.".into();
            if let Some(answer) = answer.as_object_mut() {
                answer.shift_remove("content");
            }
        }
    }
    answer
}

/// A budget is used up.
fn exhausted() -> Value {
    let message = "the budget of this API key is used up: 5 USD";
    let error =
        json!({ "message": message, "type": "usage_limit_exceeded", "param": null, "code": "budget_exhausted" });
    let mut answer = limited("A budget of the key, the workspace, the provider or a policy is used up.", &error);
    answer["headers"]["x-gateway-ratelimit-scope"] = scope();
    answer
}

/// A rate limit is reached, ours or the provider's own.
fn too_many() -> Value {
    let message = "the rate limit of this API key is reached: 60 requests per minute; try again in 12 s";
    let error = json!({ "message": message, "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded" });
    let mut answer = limited("A rate limit is reached, of the gateway or of the provider.", &error);
    let number = |text: &str| json!({ "description": text, "schema": { "type": "integer", "minimum": 0 } });
    let rows = [
        ("retry-after", number("Seconds until it is worth trying again.")),
        ("retry-after-ms", number("The same in milliseconds.")),
        ("x-gateway-ratelimit-scope", scope()),
    ];
    let headers = &mut answer["headers"];
    for (name, header) in rows {
        headers[name] = header;
    }
    for unit in ["requests", "tokens"] {
        headers[format!("x-ratelimit-limit-{unit}")] = number("How many the window allows; also on successes.");
        headers[format!("x-ratelimit-remaining-{unit}")] = number("How many are left in it.");
        headers[format!("x-ratelimit-reset-{unit}")] = json!({
            "description": "When it begins anew.", "schema": { "type": "string" }, "example": "12s",
        });
    }
    answer
}

fn scope() -> Value {
    let kinds = ["api_key", "token", "workspace", "policy", "virtual_key", "integration"];
    json!({ "description": "Whose limit it was, where it was the gateway's.", "schema": { "type": "string", "enum": kinds } })
}

fn limited(text: &str, error: &Value) -> Value {
    let example = json!({ "status": "failure", "message": error["message"], "error": error, "provider": null });
    json!({
        "description": text,
        "headers": answer_headers(),
        "content": { "application/json": { "schema": schema::any_object().json, "example": example } },
    })
}

/// The provider's own errors pass as they are, so there is no one schema for them.
fn refusal() -> Value {
    let example = json!({
        "error": { "message": "no API key was sent: send the gateway's key as x-gateway-api-key, Authorization: Bearer, x-api-key or x-goog-api-key", "type": "authentication_error",
                   "param": null, "code": "missing_api_key" },
    });
    json!({
        "description": "Refused by the gateway or by the provider.",
        "headers": answer_headers(),
        "content": { "application/json": { "schema": schema::any_object().json, "example": example } },
    })
}
