//! A client without a socket, for tests: it sends one body and keeps what it gets.

use super::{ClientGone, Downstream};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pingora_http::{RequestHeader, ResponseHeader};
use std::sync::Arc;
use tokio::sync::Notify;

pub struct LabClient {
    head: RequestHeader,
    body: Option<Bytes>,
    pub answer: Option<ResponseHeader>,
    /// What was written, piece by piece.
    pub pieces: Vec<Bytes>,
    pub is_ended: bool,
    /// When it leaves.
    pub leaving: Option<Arc<Notify>>,
}

impl LabClient {
    pub fn post(path: &str, body: &str, headers: &[(&'static str, &str)]) -> Self {
        let mut head = RequestHeader::build("POST", path.as_bytes(), None).unwrap();
        head.insert_header(header::CONTENT_TYPE, "application/json").unwrap();
        head.insert_header(header::CONTENT_LENGTH, body.len().to_string()).unwrap();
        for &(name, value) in headers {
            head.insert_header(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()).unwrap();
        }
        let body = Some(Bytes::copy_from_slice(body.as_bytes()));
        Self { head, body, answer: None, pieces: Vec::new(), is_ended: false, leaving: None }
    }

    pub fn status(&self) -> u16 {
        self.answer.as_ref().expect("an answer has begun").status.as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.answer.as_ref().expect("an answer has begun").headers
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name).map(|value| value.to_str().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.pieces.concat()).unwrap()
    }
}

impl Downstream for LabClient {
    fn head(&self) -> &RequestHeader {
        &self.head
    }

    async fn read_body(&mut self) -> Result<Option<Bytes>, ClientGone> {
        Ok(self.body.take())
    }

    async fn write_continue(&mut self) -> Result<(), ClientGone> {
        Ok(())
    }

    async fn write_head(&mut self, head: ResponseHeader) -> Result<(), ClientGone> {
        assert!(self.answer.is_none(), "a second head");
        self.answer = Some(head);
        Ok(())
    }

    async fn write_body(&mut self, bytes: Bytes, end: bool) -> Result<(), ClientGone> {
        assert!(!self.is_ended, "something after the end: {bytes:?}");
        if !bytes.is_empty() {
            self.pieces.push(bytes);
        }
        self.is_ended = end;
        Ok(())
    }

    async fn gone(&mut self) {
        match &self.leaving {
            Some(leaving) => leaving.notified().await,
            None => std::future::pending().await,
        }
    }
}
