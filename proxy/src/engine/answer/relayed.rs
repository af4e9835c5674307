//! A relayed answer that the engine itself carries: its bytes go on as they came, once it is known that they may.

use super::{AnswerSource, Broken, Ended, is_hop_by_hop, next, torn};
use crate::context::Visit;
use crate::net::downstream::Downstream;
use crate::runtime::memory::{MemoryOwner, OwnedShare};
use bytes::{Bytes, BytesMut};
use http::{HeaderName, Version};
use pingora_http::ResponseHeader;

/// What was read of an answer, and what that takes in memory.
pub struct Gathered {
    pub body: Bytes,
    pub is_whole: bool,
    _share: OwnedShare,
}

/// Reads an answer to its end, or a piece beyond `most`. On failure `read` has what came.
pub async fn gather(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    most: usize,
    room: MemoryOwner<'_>,
    visit: &mut Visit,
    read: &mut BytesMut,
) -> Result<Gathered, Ended> {
    let mut share = room.share();
    loop {
        let is_whole = source.is_done();
        if is_whole || read.len() > most {
            return Ok(Gathered { body: std::mem::take(read).freeze(), is_whole, _share: share });
        }
        let Some(piece) = next(client, source, visit).await?? else { continue };
        share.grow(piece.len()).map_err(Broken::from)?;
        read.extend_from_slice(&piece);
    }
}

/// Passes on an answer, of which `first` was read already, and what is still to come of it.
pub async fn pass_on(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    head: ResponseHeader,
    first: Bytes,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    client.write_head(head).await?;
    let mut piece = first;
    loop {
        let is_last = source.is_done();
        if is_last || !piece.is_empty() {
            visit.relays(&piece, is_last);
            client.write_body(piece, is_last).await?;
        }
        if is_last {
            return Ok(Ended::Complete);
        }
        let read = next(client, source, visit).await?;
        piece = read.map_err(|broken| torn(broken, visit))?.unwrap_or_default();
    }
}

/// The provider's head as the client gets it.
pub fn relayed_head(mut head: ResponseHeader, visit: &mut Visit) -> ResponseHeader {
    let hops: Vec<HeaderName> = head.headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in hops {
        head.remove_header(&name);
    }
    head.set_version(Version::HTTP_11);
    visit.answers_relayed(&mut head, true);
    head
}
