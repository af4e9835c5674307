//! What makes two requests equal: what the provider would be sent, and whose request it is.
//!
//! The key is a SHA-256 over the endpoint, where the request would go, its body in one spelling, and what keeps it apart: a
//! namespace, or metadata and the headers that go along. Keys of objects are sorted and blanks left out; texts and numbers
//! stay as they are written, so that bodies which differ in anything else never meet. No credential is part of it.

mod canonical;

#[cfg(test)]
use super::entry::CacheKey;
use super::entry::Tags;
use crate::runtime::tenant_share::Tenant;
use canonical::canonical;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared::model::purge_tag;
use uuid::Uuid;

/// Fields that say how an answer is delivered, and not which one it is.
const OF_DELIVERY: &[&str] = &["stream", "stream_options"];

/// Raised when keys are made of something else, so that processes of two versions do not meet in a shared store.
const VERSION: &[u8] = b"v2";

/// A longer body is not looked up: the time to spell it anew is better spent on its answer.
pub const MAX_BODY: usize = 16 << 20;

/// A body in its one spelling, as a digest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyDigest([u8; 32]);

impl BodyDigest {
    /// None of a body that has no one spelling: it is nested too deep. Takes long for a long one.
    pub fn of(body: &[u8]) -> Option<Self> {
        Some(Self(Sha256::digest(canonical(body, OF_DELIVERY)?).into()))
    }
}

/// Everything that decides which answer a request gets.
#[derive(Debug, Clone, Copy)]
pub struct KeyInputs<'k> {
    pub tenant: Tenant,
    /// The route, which is also the form of the answer.
    pub endpoint: &'k str,
    pub provider: &'k str,
    /// Address and path of the target.
    pub address: [&'k str; 2],
    /// As the target is asked for it: some have it in their path alone.
    pub model: Option<&'k str>,
    /// What fills other places of the path.
    pub placed: &'k [(String, String)],
    pub query: Option<&'k str>,
    /// As the provider would be sent it.
    pub body: BodyDigest,
    /// The client's own, where its answer repeats it.
    pub asked: Option<BodyDigest>,
    /// Answers of translated calls depend on it.
    pub is_strict: bool,
    /// Which hooks the answer has passed.
    pub hooks: &'k [u8],
    /// The workspace's handle on the provider.
    pub target: Option<&'k str>,
    /// Of those that go to the provider.
    pub headers: &'k [(&'k str, &'k [u8])],
    pub partition: Partition<'k>,
}

/// What keeps requests apart that are otherwise equal.
#[derive(Debug, Clone, Copy)]
pub enum Partition<'k> {
    /// A name that the client gives, in place of what it says of itself.
    Namespace(&'k str),
    Metadata(&'k Map<String, Value>),
}

/// Everything that decides which answer a request gets, as one text.
#[derive(Debug)]
pub struct KeyText {
    pub tenant: Tenant,
    parts: Parts,
}

impl KeyText {
    /// None of metadata that has no one spelling: it is nested too deep.
    pub fn new(inputs: &KeyInputs<'_>) -> Option<Self> {
        Some(Self { tenant: inputs.tenant, parts: parts(inputs)? })
    }

    /// Without the workspace.
    pub fn as_bytes(&self) -> &[u8] {
        &self.parts.0
    }

    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.as_bytes()).into()
    }
}

#[cfg(test)]
fn key(inputs: &KeyInputs<'_>) -> Option<CacheKey> {
    KeyText::new(inputs).map(|text| CacheKey { tenant: text.tenant, digest: text.digest() })
}

fn parts(inputs: &KeyInputs<'_>) -> Option<Parts> {
    let mut parts = Parts(Vec::with_capacity(512));
    parts.add(VERSION);
    parts.add(inputs.endpoint.as_bytes());
    parts.add(inputs.provider.as_bytes());
    inputs.address.iter().for_each(|part| parts.add(part.as_bytes()));
    parts.optional(inputs.model.map(str::as_bytes));
    parts.count(inputs.placed.len());
    for (name, value) in inputs.placed {
        parts.add(name.as_bytes());
        parts.add(value.as_bytes());
    }
    parts.optional(inputs.query.map(str::as_bytes));
    parts.add(&inputs.body.0);
    parts.optional(inputs.asked.as_ref().map(|asked| &asked.0[..]));
    parts.add(&[u8::from(inputs.is_strict)]);
    parts.add(inputs.hooks);
    match inputs.partition {
        Partition::Namespace(name) => {
            parts.add(b"namespace");
            parts.add(name.as_bytes());
        }
        Partition::Metadata(metadata) => {
            parts.add(b"request");
            match metadata.is_empty() {
                true => parts.add(b"{}"),
                false => parts.add(&canonical(&serde_json::to_vec(metadata).ok()?, &[])?),
            }
        }
    }
    // In a namespace too: an answer is another's with other headers, or of another account.
    parts.optional(inputs.target.map(str::as_bytes));
    parts.count(inputs.headers.len());
    for (name, value) in inputs.headers {
        parts.add(name.as_bytes());
        parts.add(value);
    }
    Some(parts)
}

impl Tags {
    pub fn new(namespace: Option<&str>, config: Option<Uuid>, metadata: &Map<String, Value>) -> Self {
        // Whoever erases a person writes numbers as text too.
        let user = match metadata.get("_user") {
            Some(Value::String(name)) => Some(purge_tag(name)),
            Some(name @ (Value::Number(_) | Value::Bool(_))) => Some(purge_tag(&name.to_string())),
            _ => None,
        };
        Self { namespace: namespace.map(purge_tag), config, user }
    }
}

/// Each part with its length before it, so that no two lists of parts are the same bytes.
#[derive(Debug)]
struct Parts(Vec<u8>);

impl Parts {
    fn add(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.0.push(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.add(bytes);
        }
    }

    fn count(&mut self, count: usize) {
        self.0.extend_from_slice(&(count as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
