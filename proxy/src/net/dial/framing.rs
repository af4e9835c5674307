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
mod tests {
    use super::*;

    fn hostile(method: &str) -> UpstreamRequest {
        let mut request = UpstreamRequest::new(method.parse().unwrap(), "/v1/x?y=z".into()).unwrap();
        for (name, value) in [
            ("content-length", "99"),
            ("transfer-encoding", "chunked"),
            ("host", "evil.example"),
            ("connection", "close, x-kept"),
            ("keep-alive", "5"),
            ("proxy-connection", "x"),
            ("te", "gzip"),
            ("upgrade", "x"),
            ("x-kept", "yes"),
        ] {
            request.add(HeaderName::from_static(name), HeaderValue::from_static(value));
            request.add(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        request
    }

    #[test]
    fn a_request_is_framed_by_its_body_alone() {
        let origin = Origin::parse("https://a.example:8443/v1").unwrap();
        for (method, length, announced) in [
            ("POST", 5, Some("5")),
            ("POST", 0, Some("0")),
            ("PUT", 0, Some("0")),
            ("GET", 0, None),
            ("DELETE", 0, None),
            ("DELETE", 2, Some("2")),
        ] {
            let request = hostile(method);
            let mut wire = Vec::new();
            write_h1(&mut wire, &request, length, &origin);
            let announcement = announced.map(|length| format!("content-length: {length}\r\n")).unwrap_or_default();
            let expected = format!(
                "{method} /v1/x?y=z HTTP/1.1\r\nhost: a.example:8443\r\nx-kept: yes\r\nx-kept: yes\r\n{announcement}\r\n"
            );
            assert_eq!(String::from_utf8(wire).unwrap(), expected);
            let head = h2_head(&request, length, &origin).unwrap();
            assert_eq!(
                (head.method.as_str(), head.uri.to_string()),
                (method, "https://a.example:8443/v1/x?y=z".into())
            );
            let mut found: Vec<_> =
                head.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            found.sort_unstable();
            let mut expected = vec![("x-kept", "yes"), ("x-kept", "yes")];
            expected.extend(announced.map(|length| ("content-length", length)));
            expected.sort_unstable();
            assert_eq!(found, expected, "{method} {length}");
        }
    }

    #[test]
    fn a_promise_to_keep_alive_is_cut_by_a_second() {
        for (value, expected) in [
            ("timeout=5", Some(4)),
            ("timeout=5, max=100", Some(4)),
            ("max=100, timeout=60", Some(59)),
            ("timeout=1", Some(0)),
            ("timeout=0", Some(0)),
            ("timeout=x", None),
            ("max=5", None),
        ] {
            let headers = HeaderMap::from_iter([(KEEP_ALIVE, HeaderValue::from_static(value))]);
            assert_eq!(promised_keep_alive(&headers), expected.map(Duration::from_secs), "{value}");
        }
    }
}
