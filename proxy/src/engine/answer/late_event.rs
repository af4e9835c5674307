//! A plain answer to a client that was sent a stream's head already, because heartbeats had to go out first: it becomes
//! an event, and an error one in the client's dialect.

use super::{AnswerSource, Broken, Ended, Steps, next};
use crate::context::Visit;
use crate::net::dial::UpstreamError;
use crate::net::downstream::Downstream;
use crate::request::refusal::{Dialect, Refusal};
use bytes::{Bytes, BytesMut};

/// A longer answer is not made an event, and the client is told so.
const MAX_EVENT: usize = 4 << 20;

pub async fn as_event(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    first: Bytes,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    let status = source.head().status.as_u16();
    let mut body = BytesMut::from(first.as_ref());
    while !source.is_done() {
        match next(client, source, visit).await? {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break,
            Err(broken) => return super::break_off(client, visit, &mut Steps::default(), broken).await,
        }
        if body.len() > MAX_EVENT && status < 400 {
            let error = UpstreamError::protocol("it is no stream, and too large to become an event of one");
            let broken = Broken::from_upstream(&error, visit);
            return super::break_off(client, visit, &mut Steps::default(), broken).await;
        }
        if body.len() > MAX_EVENT {
            // No error is as long: its status must do.
            body.clear();
            break;
        }
    }
    tell(client, source, &body, &body, visit).await
}

/// `read` is what the provider sent, `passed` what the client gets of it.
pub async fn tell(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    read: &[u8],
    passed: &[u8],
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    visit.answer.status = source.head().status.as_u16();
    visit.answers(&source.head().headers);
    let event = event(passed, visit.answer.status, visit.request.dialect, visit.id(), visit.tried_provider());
    visit.late(read, &event);
    client.write_body(event, true).await?;
    Ok(Ended::Complete)
}

fn event(body: &[u8], status: u16, dialect: Dialect, id: &str, provider: Option<&str>) -> Bytes {
    let is_error = status >= 400;
    if is_error && (dialect == Dialect::Responses || !body.starts_with(b"{")) {
        let message = format!("the provider answered with {status}");
        return Refusal::upstream_error(status, message).event(dialect, id, provider);
    }
    // An answer that was made a stream is one already.
    if !is_error && (body.starts_with(b"data: ") || body.starts_with(b"event: ")) {
        return Bytes::copy_from_slice(body);
    }
    let mut event = Vec::with_capacity(body.len() + 64);
    if is_error && dialect == Dialect::Anthropic {
        event.extend_from_slice(b"event: error\n");
    }
    for line in body.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    if dialect == Dialect::OpenAi {
        event.extend_from_slice(b"data: [DONE]\n\n");
    }
    Bytes::from(event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sse::events;

    #[test]
    fn a_providers_error_is_one_event_that_the_dialect_knows() {
        let body = b"{\n  \"error\": {\"message\": \"m\"}\r\n}";
        for (dialect, name, count) in [
            (Dialect::OpenAi, None, 2),
            (Dialect::Anthropic, Some("error"), 1),
            (Dialect::Responses, Some("response.failed"), 1),
        ] {
            let event = event(body, 429, dialect, "id", None);
            let found: Vec<_> = events(&event).collect();
            assert_eq!((found[0].name.as_deref(), found.len()), (name, count), "{dialect:?}");
            let said: serde_json::Value = serde_json::from_slice(&found[0].data).unwrap();
            assert!(said.pointer("/error/message").or(said.pointer("/response/error/message")).is_some(), "{said}");
        }
        assert!(String::from_utf8_lossy(&event(b"<html>", 502, Dialect::OpenAi, "id", None)).contains("502"));
        let events = b"data: {}\n\ndata: [DONE]\n\n";
        assert_eq!(event(events, 200, Dialect::OpenAi, "id", None), &events[..]);
    }
}
