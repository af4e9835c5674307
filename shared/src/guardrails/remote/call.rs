//! One call: always a POST of JSON.

use super::super::verdict::Verdict;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::fmt;

#[derive(Clone)]
pub struct RemoteCall {
    pub url: String,
    /// Those that are secret are marked so.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Vec<u8>,
}

impl RemoteCall {
    pub fn post(url: String, body: &Value) -> Self {
        let headers = vec![
            (http::header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (http::header::ACCEPT, HeaderValue::from_static("application/json")),
            (http::header::USER_AGENT, HeaderValue::from_static("portcullis")),
        ];
        Self { url, headers, body: body.to_string().into_bytes() }
    }

    /// One header more, in place of any of that name.
    pub fn put(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
    }

    /// A header that nobody may see.
    pub fn put_secret(&mut self, name: &'static str, value: &str) -> Result<(), Box<Verdict>> {
        let Ok(mut value) = HeaderValue::from_str(value) else {
            return Err(Verdict::error("BadCredentials", "a stored credential cannot stand in a header").into());
        };
        value.set_sensitive(true);
        self.put(HeaderName::from_static(name), value);
        Ok(())
    }

    /// What must not be told, whatever an answer says.
    pub fn secrets(&self) -> Vec<String> {
        let secret = self.headers.iter().filter(|(_, value)| value.is_sensitive());
        let texts = secret.filter_map(|(_, value)| value.to_str().ok());
        texts.map(|text| text.rsplit(' ').next().unwrap_or(text).to_owned()).filter(|text| !text.is_empty()).collect()
    }
}

/// Headers and bodies carry credentials and what people write; an address may carry a signature.
impl fmt::Debug for RemoteCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#', '@']).next());
        write!(f, "POST to {}", host.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_prints_its_host_alone_and_knows_its_secrets() {
        let mut call = RemoteCall::post("https://a.test/p?sig=s3cret".into(), &json!({ "text": "s3cret" }));
        call.put_secret("authorization", "Bearer s3cret").unwrap();
        call.put(HeaderName::from_static("x-plain"), HeaderValue::from_static("seen"));
        assert_eq!(format!("{call:?}"), "POST to a.test");
        assert_eq!(call.secrets(), ["s3cret"]);
        assert!(call.put_secret("x-key", "a\nb").is_err());
    }
}
