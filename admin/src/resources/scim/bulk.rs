//! `/scim/Bulk`: several operations in one request, each of which succeeds or fails for itself and leaves its own
//! record. A later one may name what an earlier one made, by `bulkId:…`.

use super::answer::{Done, Outcome};
use super::{groups, users};
use crate::app::App;
use crate::http::ApiError;
use crate::identity::Call;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub const MAX_OPERATIONS: usize = 500;

pub async fn run(State(app): State<App>, call: Call) -> Outcome {
    let body = call.object()?;
    let sent = body.iter().find(|(name, _)| name.eq_ignore_ascii_case("operations"));
    let Some((_, Value::Array(sent))) = sent else {
        return Err(ApiError::invalid("Operations must be a list"));
    };
    if sent.len() > MAX_OPERATIONS {
        return Err(ApiError::Scim {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            kind: "tooMany",
            detail: format!("At most {MAX_OPERATIONS} operations are taken at once"),
        });
    }
    let most_failures = body.get("failOnErrors").and_then(Value::as_u64).filter(|most| *most > 0);
    let mut made: HashMap<String, String> = HashMap::new();
    let (mut answers, mut failures) = (Vec::new(), 0);
    for operation in sent {
        if most_failures.is_some_and(|most| failures >= most) {
            break;
        }
        let (method, path) = (operation["method"].as_str().unwrap_or_default(), operation["path"].as_str());
        let mut answer = json!({ "method": method });
        let bulk_id = operation["bulkId"].as_str().filter(|id| id.len() <= 255);
        if let Some(id) = bulk_id {
            answer["bulkId"] = json!(id);
        }
        let data = resolved(operation["data"].clone(), &made);
        let path = named(path.unwrap_or_default(), &made);
        match one(&app, &call, method, &path, data).await {
            Ok(done) => {
                let body = done.body.unwrap_or_default();
                answer["status"] = done.status.as_u16().to_string().into();
                if let (Some(bulk_id), Some(id)) = (bulk_id, body["id"].as_str()) {
                    made.insert(format!("bulkId:{bulk_id}"), id.to_owned());
                }
                for name in ["location", "version"] {
                    if let Some(value) = body["meta"].get(name) {
                        answer[name] = value.clone();
                    }
                }
            }
            Err(refused) => {
                failures += 1;
                answer["status"] = refused.status().as_u16().to_string().into();
                answer["response"] = refused.scim_body();
            }
        }
        answers.push(answer);
    }
    // Each operation that succeeded has its record; if none did, the request as a whole still has one from the gate.
    Ok(Done::ok(json!({ "schemas": ["urn:ietf:params:scim:api:messages:2.0:BulkResponse"], "Operations": answers })))
}

async fn one(app: &App, call: &Call, method: &str, path: &str, data: Value) -> Outcome {
    let fields: Map<String, Value> = match data {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut parts = path.trim_matches('/').split('/');
    let (kind, id) = (parts.next().unwrap_or_default(), parts.next());
    match (method.to_ascii_uppercase().as_str(), kind, id) {
        ("POST", "Users", None) => users::create(app, call, fields).await,
        ("PUT", "Users", Some(id)) => users::replace(app, call, id, fields).await,
        ("PATCH", "Users", Some(id)) => users::modify(app, call, id, fields).await,
        ("DELETE", "Users", Some(id)) => users::remove(app, call, id).await,
        ("POST", "Groups", None) => groups::create(app, call, fields).await,
        ("PUT", "Groups", Some(id)) => groups::replace(app, call, id, fields).await,
        ("PATCH", "Groups", Some(id)) => groups::modify(app, call, id, fields).await,
        ("DELETE", "Groups", Some(id)) => groups::remove(app, call, id).await,
        _ => Err(ApiError::field("path", "must be /Users or /Groups, with an id for all methods but POST")),
    }
}

/// Names of what was made in this request, replaced by their ids.
fn resolved(data: Value, made: &HashMap<String, String>) -> Value {
    match data {
        Value::String(text) => Value::String(made.get(&text).cloned().unwrap_or(text)),
        Value::Array(items) => items.into_iter().map(|item| resolved(item, made)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, resolved(value, made))).collect::<Map<_, _>>().into()
        }
        plain => plain,
    }
}

fn named(path: &str, made: &HashMap<String, String>) -> String {
    path.split('/').map(|part| made.get(part).map_or(part, String::as_str)).collect::<Vec<_>>().join("/")
}
