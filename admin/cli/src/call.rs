//! One request of the control plane, before it is sent or shown.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::Value;
use std::collections::BTreeSet;

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One request. Paths are relative to `/v1`.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Option<Value>,
    pub is_stream: bool,
    /// Fields of the query or the body that are secret because of where they were read.
    pub hidden: BTreeSet<String>,
    pub is_body_from_stdin: bool,
}

impl Call {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            is_stream: false,
            hidden: BTreeSet::new(),
            is_body_from_stdin: false,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn query(mut self, query: impl IntoIterator<Item = (String, String)>) -> Self {
        self.query.extend(query);
        self
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Refused with 412 when the object is no longer the one that was read.
    pub fn only_as_read(self, etag: &str) -> Self {
        if etag.is_empty() { self } else { self.header("if-match", etag) }
    }
}

/// One part of a path, as an id or a name that may hold any character.
pub fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}
