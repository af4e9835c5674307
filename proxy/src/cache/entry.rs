//! An answer that is kept, and what it is found by. Entries also leave the process (a shared store), so they have a form
//! in bytes that says its version: one of another version, or a damaged one, is no entry.

use crate::runtime::tenant_share::Tenant;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Whose answer, and to what. No credential is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub tenant: Tenant,
    pub digest: [u8; 32],
}

/// What a purge may name an entry by. Names and people as prefixes of their SHA-256, because entries are kept elsewhere
/// longer than their texts should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tags {
    /// Of the text of the header that named a namespace.
    pub namespace: Option<[u8; 16]>,
    pub config: Option<Uuid>,
    /// Of `_user` in the metadata of the request.
    pub user: Option<[u8; 16]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When its call began, by Postgres' clock: what a purge compares.
    pub asked_at_ms: i64,
    pub expires_at_ms: i64,
    pub tags: Tags,
    pub content_type: String,
    /// The whole answer, in the client's dialect and without what hooks said of it.
    pub body: Bytes,
    /// What the provider reported, in its own words, for what a hit saves.
    pub usage: Vec<String>,
    /// As the answer named it.
    pub model: Option<String>,
    pub service_tier: Option<String>,
    /// Prompt and completion tokens as they were guessed where the provider reported none.
    pub estimate: Option<(u64, u64)>,
}

/// Raised whenever what follows it changes.
const VERSION: u8 = 2;
/// The version and the length of the facts.
const PREFIX: usize = 5;
/// A checksum of everything before it.
const SUFFIX: usize = 4;

/// An entry without its body.
#[derive(Serialize, Deserialize)]
struct Facts {
    asked_at_ms: i64,
    expires_at_ms: i64,
    tags: Tags,
    content_type: String,
    usage: Vec<String>,
    model: Option<String>,
    service_tier: Option<String>,
    estimate: Option<(u64, u64)>,
}

impl Entry {
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms <= now_ms
    }

    /// The memory it takes, with what is kept around it.
    pub fn weight(&self) -> usize {
        /// Maps, queues and allocations around it, each perhaps twice as large as what is in use.
        const AROUND: usize = 512;
        let usage: usize = self.usage.iter().map(String::len).sum();
        let names = [&self.model, &self.service_tier].into_iter().flatten().map(String::len).sum::<usize>();
        AROUND + self.body.len() + self.content_type.len() + usage + names
    }

    pub fn encode(&self) -> Vec<u8> {
        let facts = Facts {
            asked_at_ms: self.asked_at_ms,
            expires_at_ms: self.expires_at_ms,
            tags: self.tags,
            content_type: self.content_type.clone(),
            usage: self.usage.clone(),
            model: self.model.clone(),
            service_tier: self.service_tier.clone(),
            estimate: self.estimate,
        };
        // Writing to memory cannot fail, and no field is of a kind that MessagePack lacks.
        let facts = rmp_serde::to_vec(&facts).unwrap_or_default();
        let length = u32::try_from(facts.len()).unwrap_or(u32::MAX);
        let mut out = Vec::with_capacity(PREFIX + facts.len() + self.body.len() + SUFFIX);
        out.push(VERSION);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&facts);
        out.extend_from_slice(&self.body);
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// None of another version's bytes, and of damaged ones.
    pub fn decode(bytes: Bytes) -> Option<Self> {
        if *bytes.first()? != VERSION {
            return None;
        }
        let end = bytes.len().checked_sub(SUFFIX)?;
        let checksum = u32::from_le_bytes(bytes.get(end..)?.try_into().ok()?);
        if crc32fast::hash(bytes.get(..end)?) != checksum {
            return None;
        }
        let length = u32::from_le_bytes(bytes.get(1..PREFIX)?.try_into().ok()?);
        let body_at = PREFIX.checked_add(usize::try_from(length).ok()?)?;
        let facts: Facts = rmp_serde::from_slice(bytes.get(PREFIX..body_at)?).ok()?;
        if body_at > end {
            return None;
        }
        Some(Self {
            asked_at_ms: facts.asked_at_ms,
            expires_at_ms: facts.expires_at_ms,
            tags: facts.tags,
            content_type: facts.content_type,
            body: bytes.slice(body_at..end),
            usage: facts.usage,
            model: facts.model,
            service_tier: facts.service_tier,
            estimate: facts.estimate,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn entry(body: &[u8]) -> Entry {
        Entry {
            asked_at_ms: 1_000,
            expires_at_ms: 61_000,
            tags: Tags { namespace: Some([7; 16]), config: Some(Uuid::from_u128(9)), user: None },
            content_type: "application/json".into(),
            body: Bytes::copy_from_slice(body),
            usage: vec![r#"{"prompt_tokens":1}"#.into()],
            model: Some("m".into()),
            service_tier: None,
            estimate: Some((1, 2)),
        }
    }

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        for body in [&b""[..], b"{}", &[0xff; 5_000]] {
            let entry = entry(body);
            assert_eq!(Entry::decode(entry.encode().into()), Some(entry));
        }
    }

    #[test]
    fn bytes_that_another_version_wrote_or_that_are_damaged_are_no_entry() {
        let whole = entry(b"{\"a\":1}").encode();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(Entry::decode(damaged.into()), None, "a bit of byte {at}");
            assert_eq!(Entry::decode(whole[..at].to_vec().into()), None, "{at} bytes of it");
        }
        let mut newer = whole[..whole.len() - SUFFIX].to_vec();
        newer[0] = VERSION + 1;
        let checksum = crc32fast::hash(&newer);
        newer.extend_from_slice(&checksum.to_le_bytes());
        assert_eq!(Entry::decode(newer.into()), None);
    }
}
