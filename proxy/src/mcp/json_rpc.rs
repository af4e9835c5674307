//! Errors in the words of JSON-RPC. Clients wait for the id of their request, and some wait for ever where an HTTP status
//! says that it failed: so whatever fails after a request was read is told as its answer.

use crate::request::refusal::{JSON_RPC_REFUSED, Refusal};
use bytes::Bytes;
use serde_json::{Value, json};

/// The bytes are no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// They are JSON, but no message.
pub const INVALID_REQUEST: i64 = -32600;
/// Also for tools and prompts that do not exist, which is what switched off ones look like.
pub const INVALID_PARAMS: i64 = -32602;
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// As the protocol's own servers say it.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// The server behind does not answer, or not as the protocol says.
pub const UPSTREAM_FAILED: i64 = -32051;

/// An error that takes the place of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl Fault {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// A refusal of the gateway's, with its own code beside the protocol's.
    pub fn of_refusal(refusal: &Refusal) -> Self {
        let mut data = json!({ "type": refusal.code.as_str() });
        if let Some(seconds) = refusal.retry_after_s {
            data["retry_after"] = seconds.into();
        }
        if let Some(results) = &refusal.hook_results {
            data["hook_results"] = (**results).clone();
        }
        Self { code: JSON_RPC_REFUSED, message: refusal.message.clone().into_owned(), data: Some(data) }
    }
}

/// The whole message. `id` is JSON, as the client wrote it; none where it could not be told.
pub fn fault_body(id: Option<&str>, fault: &Fault) -> Bytes {
    let mut error = json!({ "code": fault.code, "message": fault.message });
    if let Some(data) = &fault.data {
        error["data"] = data.clone();
    }
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.unwrap_or("null")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_repeats_the_id_as_it_was_written() {
        for (id, written) in [(Some("7"), json!(7)), (Some(r#""a\"b""#), json!("a\"b")), (None, Value::Null)] {
            let body = fault_body(id, &Fault::new(INVALID_PARAMS, "no \"such\" tool"));
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["id"], written);
            assert_eq!(body["error"], json!({ "code": -32602, "message": "no \"such\" tool" }));
        }
    }
}
