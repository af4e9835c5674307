//! What a request for a new batch says, checked as far as its body alone tells.

use super::files::PREFIX as FILE;
use super::files::managed::managed_id;
use super::options::BatchOptions;
use super::record::Mode;
use crate::request::headers::Aliases;
use crate::request::refusal::Refusal;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::batches::{BatchEndpoint, check_metadata};
use uuid::Uuid;

/// Of the whole body.
pub const MAX_BODY: usize = 64 << 10;
const MAX_MODEL: usize = 512;

#[derive(Debug)]
pub struct AskedBatch {
    pub mode: Mode,
    pub endpoint: BatchEndpoint,
    pub input_file: Uuid,
    pub model: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub provider_options: Map<String, Value>,
    pub options: BatchOptions,
}

impl AskedBatch {
    pub fn read(body: &[u8], head: &RequestHeader, aliases: &Aliases) -> Result<Self, Refusal> {
        let body: Map<String, Value> = serde_json::from_slice(body).map_err(Refusal::invalid_json)?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let endpoint = text("endpoint").and_then(BatchEndpoint::parse).ok_or_else(|| {
            let known = BatchEndpoint::ALL.map(BatchEndpoint::as_str).join(", ");
            wrong("endpoint", &format!("endpoint must be one of {known}"))
        })?;
        let window = text("completion_window").and_then(Mode::parse);
        let mode = window.ok_or_else(|| wrong("completion_window", "completion_window must be immediate or 24h"))?;
        let named = text("input_file_id")
            .ok_or_else(|| wrong("input_file_id", "input_file_id is required: the id of an uploaded file"))?;
        let input_file = file_id(named)?;
        check_metadata(body.get("metadata").unwrap_or(&Value::Null))
            .map_err(|error| wrong("metadata", &error.message))?;
        let metadata = body.get("metadata").and_then(Value::as_object).cloned();
        if metadata.as_ref().is_some_and(has_nul) {
            return Err(wrong("metadata", "metadata: it may hold no NUL"));
        }
        let model = match body.get("model") {
            None | Some(Value::Null) => None,
            Some(Value::String(model)) if !model.is_empty() && model.len() <= MAX_MODEL && !model.contains('\0') => {
                Some(model.clone())
            }
            Some(_) => return Err(wrong("model", "model must be the name of a model")),
        };
        let provider_options = match body.get("provider_options") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(options)) if !has_nul(options) => options.clone(),
            Some(_) => return Err(wrong("provider_options", "provider_options must be an object")),
        };
        let options = BatchOptions::read(head, body.get("gateway_options"), aliases)?;
        Ok(Self { mode, endpoint, input_file, model, metadata, provider_options, options })
    }
}

/// An id that is no managed file's is told apart from one that is nobody's.
fn file_id(named: &str) -> Result<Uuid, Refusal> {
    if !named.starts_with(FILE) {
        let message = "batches that the gateway runs read files that it keeps (gwf-…): upload the file without a \
             provider, or name the provider that has it";
        return Err(wrong("input_file_id", message));
    }
    managed_id(FILE, named).map_err(|sent| Refusal::input_file_not_found(&sent))
}

/// Postgres cannot keep it.
fn has_nul(object: &Map<String, Value>) -> bool {
    fn in_value(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(list) => list.iter().any(in_value),
            Value::Object(object) => has_nul(object),
            _ => false,
        }
    }
    object.iter().any(|(name, value)| name.contains('\0') || in_value(value))
}

fn wrong(field: &'static str, message: &str) -> Refusal {
    Refusal::invalid_parameter(message.to_owned(), field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::batch_creation::{is_immediate, names_managed_file};
    use serde_json::json;

    fn read(body: &Value) -> Result<AskedBatch, Refusal> {
        let head = RequestHeader::build("POST", b"/v1/batches", None).unwrap();
        AskedBatch::read(body.to_string().as_bytes(), &head, &Aliases::default())
    }

    fn whole() -> Value {
        json!({ "input_file_id": format!("gwf-{}", Uuid::nil()), "endpoint": "/v1/embeddings",
            "completion_window": "immediate", "metadata": { "a": "b" } })
    }

    #[test]
    fn a_whole_body_is_read() {
        let asked = read(&whole()).unwrap();
        assert_eq!(
            (asked.mode, asked.endpoint, asked.input_file),
            (Mode::Immediate, BatchEndpoint::Embeddings, Uuid::nil())
        );
        assert_eq!(Value::Object(asked.metadata.unwrap()), json!({ "a": "b" }));
    }

    #[test]
    fn each_field_that_is_wrong_is_named() {
        let pairs: Map<String, Value> = (0..17).map(|pair| (pair.to_string(), "v".into())).collect();
        for (field, value, status) in [
            ("endpoint", json!("/v1/images"), 400),
            ("endpoint", Value::Null, 400),
            ("completion_window", json!("48h"), 400),
            ("input_file_id", json!("file-1"), 400),
            ("input_file_id", json!("gwf-1"), 404),
            ("input_file_id", Value::Null, 400),
            ("metadata", Value::Object(pairs), 400),
            ("metadata", json!({ "k": "v".repeat(513) }), 400),
            ("metadata", json!({ "k".repeat(65): "v" }), 400),
            ("metadata", json!({ "k": 1 }), 400),
            ("metadata", json!({ "k": "\0" }), 400),
            ("model", json!(7), 400),
            ("model", json!("m".repeat(MAX_MODEL + 1)), 400),
            ("provider_options", json!([]), 400),
            ("gateway_options", json!("x"), 400),
        ] {
            let mut body = whole();
            body[field] = value.clone();
            let refusal = read(&body).unwrap_err();
            assert_eq!((refusal.status, refusal.param.as_deref()), (status, Some(field)), "{field}: {value}");
        }
        assert_eq!(read(&json!([])).unwrap_err().status, 400);
    }

    #[test]
    fn a_body_tells_whose_file_it_means() {
        assert!(names_managed_file(whole().to_string().as_bytes()));
        for other in [&b"{"[..], b"[]", b"{}", br#"{"input_file_id":"file-1"}"#, br#"{"input_file_id":7}"#] {
            assert!(!names_managed_file(other));
        }
        assert!(is_immediate(whole().to_string().as_bytes()) && !is_immediate(br#"{"completion_window":"24h"}"#));
    }
}
