//! The headers that say where a message goes and where it ends. Requests get them here, whatever the caller put there:
//! a length, host or connection option that disagrees with the socket is how requests are smuggled.

use std::time::Duration;

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use pingora_http::RequestHeader;

use super::Origin;
use super::error::UpstreamError;
use super::request::UpstreamRequest;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Said here and by nobody else.
fn is_framing(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "host"
            | "content-length"
            | "transfer-encoding"
            | "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "upgrade"
    )
}

/// `Content-Length` is the one framing we send.
fn announced(request: &UpstreamRequest, length: usize) -> Option<usize> {
    (length > 0 || matches!(request.method, Method::POST | Method::PUT | Method::PATCH)).then_some(length)
}

/// The head as HTTP/1.1 writes it, for a body of this length.
pub fn write_h1(wire: &mut Vec<u8>, request: &UpstreamRequest, length: usize, origin: &Origin) {
    wire.reserve(512 + request.path_and_query().len());
    for part in [request.method.as_str(), " ", request.path_and_query(), " HTTP/1.1\r\n"] {
        wire.extend_from_slice(part.as_bytes());
    }
    write_line(wire, "host", origin.authority_value().as_bytes());
    for (name, value) in request.headers().filter(|(name, _)| !is_framing(name)) {
        write_line(wire, name.as_str(), value.as_bytes());
    }
    if let Some(length) = announced(request, length) {
        write_line(wire, CONTENT_LENGTH.as_str(), itoa::Buffer::new().format(length).as_bytes());
    }
    wire.extend_from_slice(b"\r\n");
}

fn write_line(wire: &mut Vec<u8>, name: &str, value: &[u8]) {
    wire.extend_from_slice(name.as_bytes());
    wire.extend_from_slice(b": ");
    wire.extend_from_slice(value);
    wire.extend_from_slice(b"\r\n");
}

/// The head as HTTP/2 wants it: the origin is in the URI.
pub fn h2_head(request: &UpstreamRequest, length: usize, origin: &Origin) -> Result<RequestHeader, UpstreamError> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = request.method.clone();
    parts.uri = absolute(origin, request.path_and_query())?;
    for (name, value) in request.headers().filter(|(name, _)| !is_framing(name)) {
        parts.headers.append(name, value.clone());
    }
    if let Some(length) = announced(request, length) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(RequestHeader::from(parts))
}

fn absolute(origin: &Origin, path: &str) -> Result<Uri, UpstreamError> {
    let uri = Uri::builder().scheme(origin.scheme().text()).authority(origin.authority().clone()).path_and_query(path);
    uri.build().map_err(|_| UpstreamError::protocol("the request has no valid path"))
}

/// `Keep-Alive: timeout=5` closes after five seconds on the server's clock; ours must be earlier.
pub fn promised_keep_alive(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(KEEP_ALIVE)?.to_str().ok()?;
    let timeout = text.split(',').find_map(|param| param.trim().strip_prefix("timeout="))?;
    Some(Duration::from_secs(timeout.trim().parse::<u64>().ok()?.saturating_sub(1)))
}

#[cfg(test)]
mod tests;
