//! Heads whose framing is clear, and those that are refused.

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
        assert_eq!((head.method.as_str(), head.uri.to_string()), (method, "https://a.example:8443/v1/x?y=z".into()));
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
