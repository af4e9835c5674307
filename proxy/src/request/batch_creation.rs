//! What tells that a request for a new batch is for the gateway itself, though it may name a provider.

use http::Method;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::providers::Family;

/// How ids begin of files that the gateway keeps.
pub const MANAGED_FILE: &str = "gwf-";
/// The completion window that no provider offers.
pub const IMMEDIATE: &str = "immediate";

/// Whether it asks for a new batch, whoever is to run it.
pub fn is_creation(path: &str, head: &RequestHeader) -> bool {
    head.method == Method::POST && Family::from_path(&head.method, path) == Some((Family::Batches, ""))
}

/// Whether a body asks for a batch over a file that the gateway keeps. Of one that is no JSON that is not known, and its
/// provider says so.
pub fn names_managed_file(body: &[u8]) -> bool {
    field(body, "input_file_id").is_some_and(|id| id.starts_with(MANAGED_FILE))
}

/// Whether a body asks for what only the gateway itself does.
pub fn is_immediate(body: &[u8]) -> bool {
    field(body, "completion_window").as_deref() == Some(IMMEDIATE)
}

fn field(body: &[u8], name: &str) -> Option<String> {
    let body: Map<String, Value> = serde_json::from_slice(body).ok()?;
    body.get(name).and_then(Value::as_str).map(str::to_owned)
}
