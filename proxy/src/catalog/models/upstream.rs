//! A question to a provider that the gateway asks on its own: a short body there, a short answer back, both whole in
//! memory. Lists of models are asked so, and what is kept at providers in forms of their own.

use crate::catalog::target::Target;
use crate::net::dial::{Dialer, Upstream, UpstreamError, UpstreamRequest};
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::runtime::timeout::with_timeout;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use std::pin::pin;

/// What a provider answered.
pub struct ProviderReply {
    pub status: u16,
    /// Of the whole, where a part was asked for.
    pub length: Option<u64>,
    pub body: Bytes,
}

/// The answer is refused beyond `longest` bytes. What is held of it is counted.
pub async fn ask(
    dialer: &Dialer,
    target: &Target,
    request: UpstreamRequest,
    body: Bytes,
    longest: usize,
    share: &mut MemoryShare<'_>,
) -> Result<ProviderReply, Refusal> {
    let provider = &target.provider.name;
    let work = async {
        let upstream = dialer.connect(&target.origin, true).await;
        let mut upstream = upstream.map_err(|error| match error.class() {
            crate::net::dial::Class::Blocked => Refusal::invalid_custom_host(&error),
            _ => Refusal::upstream_unreachable(provider, &error),
        })?;
        let broken = |error: UpstreamError| Refusal::upstream_unreachable(provider, error.class().label());
        upstream.set_timeouts(target.timeout, target.stream_idle);
        upstream.send(request, body).await.map_err(broken)?;
        upstream.read_head().await.map_err(broken)?;
        let status = upstream.head().status.as_u16();
        let length = whole_length(&upstream.head().headers);
        let body = whole(&mut upstream, provider, longest, share).await?;
        upstream.release();
        Ok(ProviderReply { status, length, body })
    };
    with_timeout(target.timeout, pin!(work)).await.unwrap_or_else(|_| Err(Refusal::timeout(target.timeout.as_millis())))
}

/// Of `content-range: bytes 0-0/123`.
fn whole_length(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.rsplit_once('/')?.1.parse().ok()
}

async fn whole(
    upstream: &mut Upstream,
    provider: &str,
    longest: usize,
    share: &mut MemoryShare<'_>,
) -> Result<Bytes, Refusal> {
    let mut body = BytesMut::new();
    loop {
        let piece = upstream.read_body().await;
        match piece.map_err(|error| Refusal::upstream_unreachable(provider, error.class().label()))? {
            Some(piece) if body.len() + piece.len() > longest => {
                return Err(Refusal::invalid_upstream_response(provider, "its answer is too long"));
            }
            Some(piece) => {
                share.grow(piece.len())?;
                body.extend_from_slice(&piece);
            }
            None => return Ok(body.freeze()),
        }
    }
}
