//! A refusal as bytes: a body, or an event of a stream that has begun, in the dialect of the route's clients.

use super::vendor_words::{aws_exception, aws_stream_exception, google_status};
use super::{Dialect, Refusal, RefusalCode};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// What a refusal of the gateway's is to JSON-RPC: among the codes that are left to servers.
pub const JSON_RPC_REFUSED: i64 = -32050;

impl Refusal {
    /// The error body in the words of the route's clients. `provider` is the one that was tried, if one was.
    pub fn body(&self, dialect: Dialect, request_id: &str, provider: Option<&str>) -> Bytes {
        let message = &self.message;
        let mut value = match dialect {
            Dialect::OpenAi | Dialect::Responses => json!({
                "status": "failure", "message": message,
                "error": { "message": message, "type": self.kind.as_str(), "param": self.param, "code": self.written_code() },
                "provider": provider,
            }),
            Dialect::Anthropic => json!({
                "type": "error", "error": { "type": self.kind.as_str(), "message": message, "code": self.written_code() },
                "request_id": request_id,
            }),
            // Google's own place for what a program should know of an error.
            Dialect::Google => json!({ "error": {
                "code": self.status, "message": message, "status": google_status(self.status),
                "details": [{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "gateway",
                    "reason": self.written_code(), "metadata": self.named(provider),
                }],
            } }),
            Dialect::Aws => json!({ "message": message, "code": self.written_code() }),
            Dialect::ControlPlane => json!({
                "success": false, "message": message,
                "data": { "message": message, "errorCode": self.control_plane_code(), "errors": [] },
                "error": { "message": message, "type": self.kind.as_str(), "param": self.param, "code": self.control_plane_code() },
                "request_id": request_id,
            }),
            // Of a request whose id is not known.
            Dialect::Mcp => json!({
                "jsonrpc": "2.0", "id": null,
                "error": { "code": JSON_RPC_REFUSED, "message": message, "data": { "type": self.written_code() } },
            }),
            Dialect::Plain => json!({ "message": message, "ok": false }),
        };
        if let (Dialect::Anthropic, Some(provider)) = (dialect, provider) {
            value["provider"] = json!(provider);
        }
        if let Some(results) = &self.hook_results {
            value["hook_results"] = json!(results);
            // Google's is the status, and AWS's errors have no such object.
            if !matches!(dialect, Dialect::Google | Dialect::Aws | Dialect::Plain | Dialect::Mcp) {
                value["error"]["code"] = json!(null);
            }
        }
        if !self.errors.is_empty() {
            value["errors"] = json!(self.errors);
        }
        Bytes::from(value.to_string())
    }

    /// The same as one server-sent event, for a stream that has already begun.
    pub fn event(&self, dialect: Dialect, request_id: &str, provider: Option<&str>) -> Bytes {
        if dialect == Dialect::Responses {
            let error = json!({ "code": self.written_code(), "message": self.message });
            let failed = json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
            return Bytes::from(format!("event: response.failed\ndata: {failed}\n\n"));
        }
        let body = self.body(dialect, request_id, provider);
        let mut event = Vec::with_capacity(body.len() + 40);
        match dialect {
            Dialect::Anthropic => event.extend_from_slice(b"event: error\n"),
            Dialect::Aws => {
                event.extend_from_slice(b"event: ");
                event.extend_from_slice(aws_stream_exception(self.status).as_bytes());
                event.push(b'\n');
            }
            _ => {}
        }
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(&body);
        event.extend_from_slice(b"\n\n");
        if dialect == Dialect::OpenAi {
            event.extend_from_slice(b"data: [DONE]\n\n");
        }
        Bytes::from(event)
    }

    /// What it is about, by name.
    fn named(&self, provider: Option<&str>) -> Map<String, Value> {
        let names = [("param", self.param.as_deref()), ("provider", provider)];
        names.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
    }

    /// What AWS's clients read from the header `x-amzn-errortype`.
    pub fn aws_exception(&self) -> &'static str {
        aws_exception(self.status)
    }

    /// As clients see it: whatever is wrong with a config begins with `AB01`, on both planes.
    fn written_code(&self) -> &'static str {
        match self.code {
            RefusalCode::InvalidConfig => "AB01_INVALID_CONFIG",
            code => code.as_str(),
        }
    }

    fn control_plane_code(&self) -> &'static str {
        match self.status {
            400 | 413 | 431 => "AB01",
            404 | 405 => "AB02",
            403 => "AB03",
            401 => "AB05",
            429 => "AB06",
            _ => "AB04",
        }
    }
}
