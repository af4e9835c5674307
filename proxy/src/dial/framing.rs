//! The headers that say where a message goes and where it ends. Requests get them here, whatever the caller put there:
//! a length, host or connection option that disagrees with the socket is how requests are smuggled.

use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use http::{Method, Uri};
use pingora_http::{RequestHeader, ResponseHeader};

use super::Origin;
use super::error::UpstreamError;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// `Content-Length` is the one framing we send. HTTP/1 names its origin in `Host`, HTTP/2 in the URI.
pub fn prepare(head: &mut RequestHeader, length: usize, origin: &Origin, is_h2: bool) -> Result<(), UpstreamError> {
    for name in [TRANSFER_ENCODING, CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, UPGRADE] {
        head.remove_header(&name);
    }
    if length > 0 || matches!(head.method, Method::POST | Method::PUT | Method::PATCH) {
        insert(head, CONTENT_LENGTH, length.into())?;
    } else {
        head.remove_header(&CONTENT_LENGTH);
    }
    if is_h2 {
        head.remove_header(&HOST);
        head.set_uri(absolute(origin, &head.uri)?);
        Ok(())
    } else {
        insert(head, HOST, origin.authority_value().clone())
    }
}

fn insert(head: &mut RequestHeader, name: HeaderName, value: HeaderValue) -> Result<(), UpstreamError> {
    head.insert_header(name, value).map_err(|_| UpstreamError::protocol("the request has too many headers"))
}

fn absolute(origin: &Origin, uri: &Uri) -> Result<Uri, UpstreamError> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme(origin.scheme().text()).authority(origin.authority().clone()).path_and_query(path);
    uri.build().map_err(|_| UpstreamError::protocol("the request has no valid path"))
}

/// `Keep-Alive: timeout=5` closes after five seconds on the server's clock; ours must be earlier.
pub fn promised_keep_alive(head: &ResponseHeader) -> Option<Duration> {
    let text = head.headers.get(KEEP_ALIVE)?.to_str().ok()?;
    let timeout = text.split(',').find_map(|param| param.trim().strip_prefix("timeout="))?;
    Some(Duration::from_secs(timeout.trim().parse::<u64>().ok()?.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_framed_by_its_body_alone() {
        let origin = Origin::parse("https://a.example:8443/v1").unwrap();
        for (method, length, expected) in [
            ("POST", 5, Some("5")),
            ("POST", 0, Some("0")),
            ("PUT", 0, Some("0")),
            ("GET", 0, None),
            ("DELETE", 0, None),
            ("DELETE", 2, Some("2")),
        ] {
            for is_h2 in [false, true] {
                let mut head = RequestHeader::build(method, b"/v1/x?y=z", None).unwrap();
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
                    head.append_header(name, value).unwrap();
                    head.append_header(name, value).unwrap();
                }
                prepare(&mut head, length, &origin, is_h2).unwrap();
                let found = head.headers.get_all("content-length").iter().map(|value| value.to_str().unwrap());
                assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>(), "{method} {length}");
                let mut names: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
                names.retain(|name| *name != "content-length");
                names.sort_unstable();
                if is_h2 {
                    assert_eq!(names, ["x-kept"]);
                    assert_eq!(head.uri, "https://a.example:8443/v1/x?y=z");
                } else {
                    assert_eq!(names, ["host", "x-kept"]);
                    assert_eq!(head.headers["host"], "a.example:8443");
                    assert_eq!(head.uri, "/v1/x?y=z");
                }
            }
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
            let mut head = ResponseHeader::build(200, None).unwrap();
            head.insert_header("keep-alive", value).unwrap();
            assert_eq!(promised_keep_alive(&head), expected.map(Duration::from_secs), "{value}");
        }
    }
}
