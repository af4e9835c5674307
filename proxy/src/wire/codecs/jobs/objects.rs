//! OpenAI's objects of what is kept: a batch, a job of fine-tuning, a file, a list of them. All their fields are there,
//! null where nobody says one.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

/// What of a batch a provider tells.
#[derive(Debug, Default)]
pub struct Batch {
    pub id: String,
    pub status: &'static str,
    pub endpoint: Option<String>,
    pub model: Option<String>,
    pub input_file: Option<String>,
    pub output_file: Option<String>,
    pub created: Option<i64>,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    pub cancelling: Option<i64>,
    pub expires: Option<i64>,
    /// Completed and failed, and how many there are.
    pub counts: (u64, u64, u64),
    pub error: Option<String>,
    pub metadata: Value,
}

impl Batch {
    pub fn json(self, provider: &str) -> Value {
        let ended = |status: &str| (self.status == status).then_some(self.ended).flatten();
        let errors = self.error.map(|message| {
            let error = json!({ "code": "provider_error", "message": message, "param": null, "line": null });
            json!({ "object": "list", "data": [error] })
        });
        let (completed, failed, total) = self.counts;
        json!({
            "id": self.id, "object": "batch", "endpoint": self.endpoint.unwrap_or_else(|| "/v1/chat/completions".to_owned()),
            "model": self.model, "errors": errors, "input_file_id": self.input_file, "completion_window": "24h",
            "status": self.status, "output_file_id": self.output_file, "error_file_id": null,
            "created_at": self.created, "in_progress_at": self.started, "expires_at": self.expires,
            "finalizing_at": null, "completed_at": ended("completed"), "failed_at": ended("failed"),
            "expired_at": ended("expired"), "cancelling_at": self.cancelling, "cancelled_at": ended("cancelled"),
            "request_counts": { "total": total, "completed": completed, "failed": failed },
            "metadata": self.metadata, "provider": provider,
        })
    }
}

/// The same of a job of fine-tuning.
#[derive(Debug, Default)]
pub struct TuningJob {
    pub id: String,
    pub status: &'static str,
    pub model: Option<String>,
    pub tuned: Option<String>,
    pub created: Option<i64>,
    pub finished: Option<i64>,
    pub training_file: Option<String>,
    pub validation_file: Option<String>,
    pub hyperparameters: Option<Value>,
    pub error: Option<String>,
}

impl TuningJob {
    pub fn json(self, provider: &str) -> Value {
        let error = self.error.map(|message| json!({ "code": "provider_error", "message": message, "param": null }));
        json!({
            "id": self.id, "object": "fine_tuning.job", "created_at": self.created, "finished_at": self.finished,
            "model": self.model, "fine_tuned_model": self.tuned, "status": self.status,
            "training_file": self.training_file, "validation_file": self.validation_file,
            "hyperparameters": self.hyperparameters.unwrap_or_else(|| json!({})), "error": error, "result_files": [],
            "organization_id": null, "trained_tokens": null, "seed": null, "provider": provider,
        })
    }
}

/// The same of a file.
#[derive(Debug, Default)]
pub struct ProviderFile {
    pub id: String,
    pub name: String,
    pub bytes: u64,
    pub created: Option<i64>,
    pub purpose: String,
    pub status: &'static str,
}

impl ProviderFile {
    pub fn json(self, provider: &str) -> Value {
        let status = if self.status.is_empty() { "processed" } else { self.status };
        json!({
            "id": self.id, "object": "file", "bytes": self.bytes, "created_at": self.created, "filename": self.name,
            "purpose": self.purpose, "status": status, "status_details": null, "provider": provider,
        })
    }
}

pub fn deleted(id: &str) -> Value {
    json!({ "id": id, "object": "file", "deleted": true })
}

/// `next` is what the following page is asked for by, and stands where clients look for it.
pub fn list(data: Vec<Value>, next: Option<&str>) -> Value {
    let id = |one: Option<&Value>| one.map(|one| one["id"].clone());
    let last = next.map(Value::from).or_else(|| id(data.last()));
    json!({ "object": "list", "first_id": id(data.first()), "last_id": last, "has_more": next.is_some(), "data": data })
}

/// A time as seconds; providers write texts.
pub fn time(reply: &Value, name: &str) -> Option<i64> {
    match reply.get(name)? {
        Value::String(text) => text.parse::<DateTime<Utc>>().ok().map(|at| at.timestamp()),
        Value::Number(seconds) => seconds.as_f64().map(|seconds| seconds as i64),
        _ => None,
    }
}

pub fn text(reply: &Value, pointer: &str) -> Option<String> {
    reply.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A number that may be written as a text.
pub fn count(reply: &Value, pointer: &str) -> u64 {
    match reply.pointer(pointer) {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    }
}

/// The entries of a list that are objects.
pub fn entries<'v>(reply: &'v Value, name: &str) -> Vec<&'v Value> {
    let list = reply.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter(|one| one.is_object()).collect()
}

/// A field that is there only if it has a value.
pub fn put(body: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        body.insert(name.to_owned(), value);
    }
}
