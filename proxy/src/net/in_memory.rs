//! A client without a socket: for requests that the gateway makes of itself. It sends one body, keeps what it gets up to a bound
//! (and, where many run at once, within a budget that they share), and is gone at its deadline or when nobody waits for it any longer; so such a request ends and is logged like any other whose
//! client left.

use super::answer_budget::AnswerShare;
use super::downstream::{ClientGone, Downstream};
use crate::net::retry_after::retry_after;
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderValue, header};
use pingora_http::{RequestHeader, ResponseHeader};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

pub struct InMemoryClient {
    head: RequestHeader,
    body: Option<Bytes>,
    deadline: Option<Instant>,
    waiter: watch::Receiver<()>,
    longest: usize,
    share: Option<Arc<AnswerShare>>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    answer: Vec<u8>,
    is_too_long: bool,
    is_ended: bool,
}

/// Held by whoever waits for the answer: dropped, the client is gone.
pub struct Waiter {
    _alive: watch::Sender<()>,
}

/// What it got.
#[derive(Debug, PartialEq, Eq)]
pub enum InMemoryAnswer {
    Whole {
        status: u16,
        body: Vec<u8>,
    },
    TooLong,
    /// It was gone before the end.
    None,
}

impl InMemoryClient {
    /// None if the path is none. The body is JSON; answers are kept up to `longest` bytes.
    pub fn post(path: &str, body: Bytes, longest: usize, deadline: Option<Instant>) -> Option<(Self, Waiter)> {
        let mut head = RequestHeader::build("POST", path.as_bytes(), Some(8)).ok()?;
        head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json")).ok()?;
        head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len())).ok()?;
        let (alive, waiter) = watch::channel(());
        let client = Self {
            head,
            body: Some(body),
            deadline,
            waiter,
            longest,
            share: None,
            status: None,
            retry_after: None,
            answer: Vec::new(),
            is_too_long: false,
            is_ended: false,
        };
        Some((client, Waiter { _alive: alive }))
    }

    /// Its answer takes part of a budget. Whoever has the share holds it for as long as anything of the answer is held.
    #[must_use]
    pub fn within(mut self, share: Arc<AnswerShare>) -> Self {
        self.share = Some(share);
        self
    }

    /// One header more. False if it is none.
    pub fn put(&mut self, name: &'static str, value: &str) -> bool {
        HeaderValue::from_str(value).is_ok_and(|value| self.head.insert_header(name, value).is_ok())
    }

    /// For whoever has further headers.
    pub fn head_mut(&mut self) -> &mut RequestHeader {
        &mut self.head
    }

    /// How long its answer asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    pub fn into_answer(self) -> InMemoryAnswer {
        match (self.is_too_long, self.status, self.is_ended) {
            (true, ..) => InMemoryAnswer::TooLong,
            (false, Some(status), true) => InMemoryAnswer::Whole { status, body: self.answer },
            _ => InMemoryAnswer::None,
        }
    }
}

impl Downstream for InMemoryClient {
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
        self.status = Some(head.status.as_u16());
        self.retry_after = retry_after(&head.headers, Utc::now());
        Ok(())
    }

    async fn write_body(&mut self, bytes: Bytes, end: bool) -> Result<(), ClientGone> {
        if self.answer.len().saturating_add(bytes.len()) > self.longest {
            self.is_too_long = true;
            return Err(ClientGone);
        }
        if let Some(share) = &self.share {
            let growing = share.grow(bytes.len());
            match self.deadline {
                None => growing.await,
                Some(deadline) => tokio::time::timeout_at(deadline.into(), growing).await.map_err(|_| ClientGone)?,
            }
        }
        self.answer.extend_from_slice(&bytes);
        self.is_ended |= end;
        Ok(())
    }

    async fn gone(&mut self) {
        let (waiter, deadline) = (&mut self.waiter, self.deadline);
        // Nothing is ever sent to it: it ends when the other end is dropped.
        let left = async move { while waiter.changed().await.is_ok() {} };
        match deadline {
            None => left.await,
            Some(deadline) => {
                let _ = tokio::time::timeout_at(deadline.into(), left).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::answer_budget::AnswerBudget;
    use crate::runtime::tenant_share::Tenant;
    use futures::FutureExt as _;

    fn client(longest: usize, deadline: Option<Instant>) -> (InMemoryClient, Waiter) {
        InMemoryClient::post("/v1/chat/completions", Bytes::from_static(b"{}"), longest, deadline).unwrap()
    }

    fn head(status: u16) -> ResponseHeader {
        ResponseHeader::build(status, None).unwrap()
    }

    #[tokio::test]
    async fn it_sends_its_body_once_and_keeps_an_answer_that_ends() {
        let (mut client, _waiter) = client(10, None);
        assert!(client.put("x-gateway-trace-id", "t") && !client.put("x-gateway-trace-id", "a\nb"));
        assert_eq!(client.read_body().await, Ok(Some(Bytes::from_static(b"{}"))));
        assert_eq!(client.read_body().await, Ok(None));
        client.write_head(head(429)).await.unwrap();
        client.write_body(Bytes::from_static(b"12345"), false).await.unwrap();
        client.write_body(Bytes::from_static(b"67890"), true).await.unwrap();
        assert_eq!(client.into_answer(), InMemoryAnswer::Whole { status: 429, body: b"1234567890".to_vec() });
    }

    #[tokio::test]
    async fn an_answer_beyond_its_bound_or_without_an_end_is_none() {
        let (mut client, _waiter) = client(4, None);
        client.write_head(head(200)).await.unwrap();
        assert_eq!(client.write_body(Bytes::from_static(b"12345"), true).await, Err(ClientGone));
        assert_eq!(client.into_answer(), InMemoryAnswer::TooLong);
        let (mut client, _waiter) = self::client(4, None);
        client.write_head(head(200)).await.unwrap();
        client.write_body(Bytes::from_static(b"1"), false).await.unwrap();
        assert_eq!(client.into_answer(), InMemoryAnswer::None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_its_part_of_a_budget_until_its_deadline() {
        let budget = AnswerBudget::new(0);
        let share = || budget.share(Tenant::test(1, 1));
        let [others, alone] = [share(), share()];
        others.grow(5).await;
        alone.grow(5).await;
        let deadline = tokio::time::Instant::now().into_std() + Duration::from_secs(5);
        let (client, _waiter) = client(10, Some(deadline));
        let mut client = client.within(share());
        assert!(client.write_body(Bytes::from_static(b"1"), false).now_or_never().is_none());
        drop(alone);
        assert_eq!(client.write_body(Bytes::from_static(b"2"), false).await, Ok(()));
        let (client, _waiter) = self::client(10, Some(deadline));
        assert_eq!(client.within(share()).write_body(Bytes::from_static(b"1"), true).await, Err(ClientGone));
        assert!(tokio::time::Instant::now().into_std() >= deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_gone_at_its_deadline_or_when_nobody_waits() {
        let (mut client, waiter) = client(4, None);
        assert!(client.gone().now_or_never().is_none());
        drop(waiter);
        client.gone().await;
        // However often it is asked.
        client.gone().await;
        let deadline = tokio::time::Instant::now().into_std() + Duration::from_secs(5);
        let (mut client, _waiter) = self::client(4, Some(deadline));
        client.gone().await;
        assert!(tokio::time::Instant::now().into_std() >= deadline);
    }
}
