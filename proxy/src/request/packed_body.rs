//! A compressed request body becomes plain where it is received, so that whatever follows (guardrails, the cache, limits, logs,
//! the provider) sees the text and nothing else.
//!
//! It is read in small steps, each of which counts against the memory of bodies before the next, and ends at the longest body:
//! a few bytes that become gigabytes cost what a plain body of the greatest length costs. However short it is, it is read
//! beside the threads that carry requests: decoders take memory of their own (16 MiB at most), once for each core.

use super::refusal::Refusal;
use crate::runtime::heavy::heavy;
use crate::runtime::memory::OwnedShare;
use crate::wire::framing::compression::{ContentEncoding, UnknownEncoding, reader};
use bytes::Bytes;
use http::HeaderMap;
use std::io::Read as _;

/// What is read at once.
const STEP: usize = 64 << 10;

/// The encodings that requests may have. Of the one that is missing here the end is not certain: a body that was cut would pass.
pub fn encoding(head: &HeaderMap) -> Result<Option<ContentEncoding>, Refusal> {
    match ContentEncoding::from_headers(head) {
        Ok(Some(ContentEncoding::Deflate)) => Err(Refusal::unknown_content_encoding("deflate")),
        Ok(encoding) => Ok(encoding),
        Err(UnknownEncoding(name)) => Err(Refusal::unknown_content_encoding(&name)),
    }
}

/// The plain body, with what it takes of the memory of bodies.
pub async fn unpack(
    packed: Bytes,
    encoding: ContentEncoding,
    max_bytes: usize,
    mut share: OwnedShare,
) -> Result<(Bytes, OwnedShare), Refusal> {
    if packed.is_empty() {
        return Ok((packed, share));
    }
    let tenant = share.tenant();
    let unpacking = move || read_all(&packed, encoding, max_bytes, &mut share).map(|plain| (plain, share));
    heavy(tenant, unpacking).await.ok_or_else(Refusal::internal)?
}

fn read_all(
    packed: &[u8],
    encoding: ContentEncoding,
    max_bytes: usize,
    share: &mut OwnedShare,
) -> Result<Bytes, Refusal> {
    let mut reader = reader(encoding, packed).map_err(Refusal::damaged_encoding)?;
    let mut plain = Vec::new();
    let mut step = vec![0; STEP];
    loop {
        let read = reader.read(&mut step).map_err(Refusal::damaged_encoding)?;
        if read == 0 {
            return Ok(Bytes::from(plain));
        }
        if plain.len() + read > max_bytes {
            return Err(Refusal::body_too_large(max_bytes));
        }
        let wanted = plain.len() + read;
        if wanted > plain.capacity() {
            // What is taken is counted, not what is used of it.
            let room = (plain.capacity() * 2).max(wanted).min(max_bytes);
            share.grow(room - plain.capacity())?;
            plain.reserve_exact(room - plain.len());
        }
        plain.extend_from_slice(&step[..read]);
    }
}
