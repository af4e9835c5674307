//! Answers of the gateway itself: a refusal in the client's dialect, or a page of its own.

use crate::context::Visit;
use crate::net::downstream::{ClientGone, Downstream};
use crate::request::refusal::{Dialect, Refusal};
use bytes::Bytes;
use http::{HeaderValue, header};
use pingora_http::ResponseHeader;

/// Answers for the gateway itself.
pub async fn refuse(client: &mut impl Downstream, visit: &mut Visit, refusal: &Refusal) -> Result<(), ClientGone> {
    visit.answer.error_code = Some(refusal.code);
    let is_event = visit.answer.pulse.has_begun;
    let body = match is_event {
        true => refusal.event(visit.request.dialect, visit.id(), visit.tried_provider()),
        false => refusal.body(visit.request.dialect, visit.id(), visit.tried_provider()),
    };
    let head = refusal_head(visit, refusal, body.len());
    visit.answers(&head.headers);
    visit.ends_with(&body);
    if !is_event {
        client.write_head(head).await?;
    }
    client.write_body(body, true).await
}

/// A page of the gateway's own.
pub async fn own(client: &mut impl Downstream, visit: &mut Visit, page: &serde_json::Value) -> Result<(), ClientGone> {
    let body = Bytes::from(page.to_string());
    let mut head = ResponseHeader::build_no_case(200, Some(8)).expect("200 is a status");
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    visit.answer.status = 200;
    visit.stamp(&mut head);
    client.write_head(head).await?;
    client.write_body(body, true).await
}

fn refusal_head(visit: &mut Visit, refusal: &Refusal, body_length: usize) -> ResponseHeader {
    let mut head = ResponseHeader::build_no_case(refusal.status, Some(8))
        .unwrap_or_else(|_| ResponseHeader::build_no_case(500, None).expect("500 is a status"));
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body_length));
    if visit.request.dialect == Dialect::Aws {
        let _ = head.insert_header("x-amzn-errortype", HeaderValue::from_static(refusal.aws_exception()));
    }
    if let Some(challenge) = visit.request.challenge.take().filter(|_| refusal.status == 401) {
        let _ = head.insert_header(header::WWW_AUTHENTICATE, challenge);
    }
    if refusal.status == 426 {
        let _ = head.insert_header(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    }
    if let Some(seconds) = refusal.retry_after_s {
        let _ = head.insert_header(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    visit.answer.status = refusal.status;
    visit.stamp(&mut head);
    if let Some(hit) = &refusal.hit {
        hit.stamp(visit.request.alias.as_deref(), |name, text| drop(head.insert_header(name, text.to_value())));
    }
    head
}
