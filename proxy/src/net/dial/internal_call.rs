//! The gateway's own small requests (key sets, prices, secrets): an answer that is read whole, and failures in words that
//! repeat nothing of either.

use super::{Class, Upstream, UpstreamError};
use bytes::Bytes;
use pingora_http::RequestHeader;

/// Sends the request and tells the status of its answer.
pub async fn send(upstream: &mut Upstream, head: RequestHeader, body: Bytes) -> Result<u16, String> {
    upstream.send(head, body).await.map_err(broken)?;
    upstream.read_head().await.map_err(broken)?;
    Ok(upstream.head().status.as_u16())
}

/// The body of an answer, if it is no longer than this.
pub async fn whole(upstream: &mut Upstream, longest: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = upstream.read_body().await.map_err(broken)? {
        if body.len() + piece.len() > longest {
            return Err("the answer is too long".into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn broken(error: UpstreamError) -> String {
    spoken(error.class())
}

/// A class of failures as words.
pub fn spoken(class: Class) -> String {
    format!("the connection failed ({})", class.label().replace('_', " "))
}
