//! The little HTTP that clouds and secret managers need, and who speaks it. Headers and bodies carry credentials, so requests and
//! answers print only where they go.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The address is the machine's own identity service, chosen by us and not by a customer: the only one for which
    /// the rules against private addresses do not hold.
    pub is_own_identity: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: Vec<u8>,
}

pub type Sending = Pin<Box<dyn Future<Output = Result<Response, String>> + Send>>;

/// Sends one request and reads the whole answer (at most some hundred KiB). Follows no redirect, and gives up within
/// some seconds. The error says why in a word and repeats nothing of the request.
pub trait Http: Send + Sync {
    fn send(&self, request: Request) -> Sending;
}

impl<T: Http + ?Sized> Http for Arc<T> {
    fn send(&self, request: Request) -> Sending {
        (**self).send(request)
    }
}

impl Request {
    pub fn get(url: String) -> Self {
        Self { method: "GET", url, headers: Vec::new(), body: Vec::new(), is_own_identity: false }
    }

    pub fn post(url: String, content_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { method: "POST", url, headers, body, is_own_identity: false }
    }

    pub fn put(url: String) -> Self {
        Self { method: "PUT", ..Self::get(url) }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn to_own_identity(mut self) -> Self {
        self.is_own_identity = true;
        self
    }
}

impl Response {
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.url.split('?').next().unwrap_or_default();
        write!(f, "{} {place}", self.method)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

/// `name=value&…`, escaped.
pub fn form(pairs: &[(&str, &str)]) -> String {
    let escaped: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", escape(value, ""))).collect();
    escaped.join("&")
}

/// Percent-escapes all but unreserved characters and those in `kept`.
pub fn escape(text: &str, allowed: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-._~".contains(c) || (byte.is_ascii() && allowed.contains(c)) {
            escaped.push(c);
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_request_is_printed_but_where_it_goes() {
        let request = Request::post("https://m.test/v1?sig=s3cret".into(), "text/plain", b"s3cret".to_vec());
        let request = request.with("authorization", "s3cret");
        assert_eq!(format!("{request:?}"), "POST https://m.test/v1");
        let response = Response { status: 200, body: b"s3cret".to_vec() };
        assert_eq!(format!("{response:?}"), "200 with 6 bytes");
    }

    #[test]
    fn only_unreserved_characters_stay_as_they_are() {
        assert_eq!(escape("a/b c+ä~", ""), "a%2Fb%20c%2B%C3%A4~");
        assert_eq!(escape("a/b", "/"), "a/b");
        assert_eq!(form(&[("a", "1 2"), ("b", "&")]), "a=1%202&b=%26");
    }
}
