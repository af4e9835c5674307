//! Requests to authorisation servers and to the documents that lead to them. Redirects are not followed, answers are
//! read whole up to a bound, and each exchange has one time limit.

use super::{AbortOnDrop, Outbound, broken};
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 128 << 10;

/// An answer whose status and body are the caller's to judge.
#[derive(Debug)]
pub struct OAuthReply {
    pub status: u16,
    pub headers: HeaderMap,
    body: Vec<u8>,
}

impl OAuthReply {
    /// Null for what is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Whole,
    /// Status and headers are enough; the body may have no end.
    Head,
}

impl Outbound {
    /// A document of metadata.
    pub async fn document(&self, url: &str) -> Result<OAuthReply, String> {
        self.ask(Method::GET, url, HeaderMap::new(), Vec::new(), Reading::Whole).await
    }

    /// Posts a form or JSON, as `headers` say.
    pub async fn submit(&self, url: &str, headers: HeaderMap, body: Vec<u8>) -> Result<OAuthReply, String> {
        self.ask(Method::POST, url, headers, body, Reading::Whole).await
    }

    /// How a server refuses somebody without credentials: status and headers.
    pub async fn refusal(&self, url: &str, headers: HeaderMap, body: Vec<u8>) -> Result<OAuthReply, String> {
        self.ask(Method::POST, url, headers, body, Reading::Head).await
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        reading: Reading,
    ) -> Result<OAuthReply, String> {
        let answered = self.exchange_whole(method, url, headers, body, reading);
        let late = || Err(format!("it did not answer within {} s", TIMEOUT.as_secs()));
        tokio::time::timeout(TIMEOUT, answered).await.unwrap_or_else(|_| late())
    }

    async fn exchange_whole(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Vec<u8>,
        reading: Reading,
    ) -> Result<OAuthReply, String> {
        let (origin, path) =
            self.guard.custom_url(url).map_err(|rule| format!("its address cannot be used: {rule}"))?;
        let stream = self.connect(&origin).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let _connection = AbortOnDrop(tokio::spawn(async move { drop(connection.await) }));
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static("portcullis"));
        headers.insert(header::HOST, origin.authority_value().clone());
        let request = Request::builder().method(method).uri(path.as_str()).body(Full::new(Bytes::from(body)));
        let mut request = request.map_err(|_| "the request cannot be made".to_owned())?;
        *request.headers_mut() = headers;
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        let body = match reading {
            Reading::Head => Vec::new(),
            Reading::Whole => match Limited::new(body, MAX_ANSWER).collect().await {
                Ok(body) => body.to_bytes().to_vec(),
                Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                    return Err(format!("its answer has more than {MAX_ANSWER} bytes"));
                }
                Err(_) => return Err("the answer broke off".into()),
            },
        };
        Ok(OAuthReply { status: head.status.as_u16(), headers: head.headers, body })
    }
}
