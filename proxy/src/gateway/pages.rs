//! What the gateway answers by itself at no provider's expense: a greeting, and browsers' questions before a call.

use super::Readiness;
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

pub const GREETING: &[u8] = concat!(
    r#"{"name":"Portcullis","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","compatible_release":"1.12.0","message":"The gateway is running; the API is under /v1"}"#
)
.as_bytes();

pub fn json_head(status: u16, length: usize) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build_no_case(status, Some(6))?;
    head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))?;
    head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(length))?;
    Ok(head)
}

/// The pages of the metrics port that a balancer asks for, where the operator wants them here, too.
pub fn health(head: &RequestHeader, readiness: &Readiness) -> Option<(u16, Bytes)> {
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/healthz") => Some((200, Bytes::from_static(b"ok\n"))),
        (&Method::GET, "/readyz") => Some(match readiness() {
            Ok(ready) => (200, Bytes::from(ready.into_owned())),
            Err(why) => (503, Bytes::from(why.into_owned())),
        }),
        _ => None,
    }
}

pub fn text_head(status: u16, length: usize) -> Result<ResponseHeader> {
    let mut head = json_head(status, length)?;
    head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))?;
    Ok(head)
}

/// Browsers may call the gateway from anywhere: it is the key that opens it, never a cookie.
pub fn preflight() -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build_no_case(204, Some(8))?;
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("access-control-allow-headers", "*, authorization"),
        ("access-control-max-age", "86400"),
    ] {
        head.insert_header(name, value)?;
    }
    Ok(head)
}
