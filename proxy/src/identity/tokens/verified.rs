//! Tokens that were verified a moment ago, by their hash. Held in parts with a lock each, so that requests on
//! different cores rarely meet; none is held across anything slow.

use crate::snapshot::Snapshot;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::RwLock;
use shared::identity::api_key::KeyHash;
use shared::identity::jwt::{Current, VerifiedToken, WebKeySet};
use shared::model::{ApiKey, EmailDigest, Organisation};
use std::collections::HashMap;
use std::sync::Arc;

/// After so long a token is verified anew.
const MAX_AGE: TimeDelta = TimeDelta::minutes(5);
const PARTS: usize = 64;
/// A part that is full of live tokens starts anew: nobody can fill the memory.
const MAX_IN_PART: usize = 256;

pub struct Verified {
    organisation: Arc<Organisation>,
    pub key: Arc<ApiKey>,
    pub token: Arc<VerifiedToken>,
    /// Whom it is for, as people are found in the snapshot.
    pub person: Option<EmailDigest>,
    keys: Arc<WebKeySet>,
    until: DateTime<Utc>,
}

impl Verified {
    /// `current` are the keys that one of them signed it with.
    pub fn new(
        organisation: Arc<Organisation>,
        key: Arc<ApiKey>,
        token: Arc<VerifiedToken>,
        current: Current,
        now: DateTime<Utc>,
    ) -> Self {
        let fresh_for = TimeDelta::from_std(current.fresh_for).map_or(MAX_AGE, |fresh_for| fresh_for.min(MAX_AGE));
        let until = token.ends_at().min(now + fresh_for);
        let person = token.person.as_deref().map(EmailDigest::new);
        Self { organisation, key, token, person, keys: current.keys, until }
    }

    /// Any change of the organisation's row or of its keys ends it: the key that signed it may be gone.
    fn is_current(&self, snapshot: &Snapshot, now: DateTime<Utc>) -> bool {
        let organisation = snapshot.organisation(&self.organisation.id);
        now < self.until
            && !self.keys.is_withdrawn()
            && organisation.is_some_and(|now| Arc::ptr_eq(&now, &self.organisation))
    }
}

pub struct Memory(Box<[VerifiedPart]>);

type VerifiedPart = RwLock<HashMap<KeyHash, Arc<Verified>>>;

impl Memory {
    pub fn new() -> Self {
        Self((0..PARTS).map(|_| VerifiedPart::default()).collect())
    }

    pub fn find(&self, hash: &KeyHash, snapshot: &Snapshot, now: DateTime<Utc>) -> Option<Arc<Verified>> {
        let found = self.part(hash).read().get(hash).cloned();
        found.filter(|verified| verified.is_current(snapshot, now))
    }

    pub fn keep(&self, hash: KeyHash, verified: Verified, now: DateTime<Utc>) {
        let mut part = self.part(&hash).write();
        if part.len() >= MAX_IN_PART {
            part.retain(|_, verified| now < verified.until);
        }
        if part.len() >= MAX_IN_PART {
            part.clear();
        }
        part.insert(hash, Arc::new(verified));
    }

    fn part(&self, hash: &KeyHash) -> &VerifiedPart {
        &self.0[usize::from(hash.0[0]) % PARTS]
    }
}

#[cfg(test)]
mod tests;
