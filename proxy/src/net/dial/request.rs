//! The head of a request that we send. A list and not a map: it is short, it is written once from top to bottom, and
//! hashing its names cost more than everything else about it.

use http::{HeaderName, HeaderValue, Method};
use pingora_http::RequestHeader;

/// Never shown: its values may be credentials.
pub struct UpstreamRequest {
    pub method: Method,
    path_and_query: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// As long as the library's own URIs, which HTTP/2 is asked with.
const MAX_PATH: usize = 65_534;

impl UpstreamRequest {
    /// None for what is no path, would end the line it stands in, or is longer than any URI may be.
    pub fn new(method: Method, path_and_query: String) -> Option<Self> {
        let ends_line = |byte: u8| byte <= b' ' || byte == 127;
        let is_valid = path_and_query.starts_with('/')
            && path_and_query.len() <= MAX_PATH
            && !path_and_query.bytes().any(ends_line);
        is_valid.then(|| Self { method, path_and_query, headers: Vec::with_capacity(8) })
    }

    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    pub fn path(&self) -> &str {
        self.path_and_query.split('?').next().unwrap_or_default()
    }

    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.headers.iter().map(|(name, value)| (name, value))
    }

    /// In place of every header of that name.
    pub fn put(&mut self, name: HeaderName, value: HeaderValue) {
        self.remove(&name);
        self.add(name, value);
    }

    /// After those of that name.
    pub fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.push((name, value));
    }

    pub fn remove(&mut self, name: &HeaderName) {
        self.headers.retain(|(present, _)| present != name);
    }
}

impl From<RequestHeader> for UpstreamRequest {
    fn from(head: RequestHeader) -> Self {
        let path_and_query = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { method: head.method.clone(), path_and_query, headers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_none_or_would_end_its_line_is_refused() {
        for (path, is_valid) in [
            ("/v1/x?y=z", true),
            ("/", true),
            ("/caf\u{e9}", true),
            ("", false),
            ("v1", false),
            ("/a b", false),
            ("/a\r\nx: y", false),
            ("/a\u{7f}", false),
            (&"/".repeat(MAX_PATH), true),
            (&"/".repeat(MAX_PATH + 1), false),
        ] {
            assert_eq!(
                UpstreamRequest::new(Method::GET, path.to_owned()).is_some(),
                is_valid,
                "{:?}",
                &path[..path.len().min(20)]
            );
        }
    }

    #[test]
    fn what_is_put_stands_alone_and_what_is_added_does_not() {
        let (name, other) = (HeaderName::from_static("x-one"), HeaderName::from_static("x-two"));
        let mut request = UpstreamRequest::new(Method::POST, "/".into()).unwrap();
        request.add(name.clone(), HeaderValue::from_static("1"));
        request.add(name.clone(), HeaderValue::from_static("2"));
        request.add(other.clone(), HeaderValue::from_static("3"));
        let values = |request: &UpstreamRequest| {
            request.headers().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(values(&request), ["x-one=1", "x-one=2", "x-two=3"]);
        request.put(name.clone(), HeaderValue::from_static("4"));
        assert_eq!(values(&request), ["x-two=3", "x-one=4"]);
        request.remove(&other);
        assert_eq!(values(&request), ["x-one=4"]);
    }
}
