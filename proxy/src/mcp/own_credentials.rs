//! What opens this gateway goes to no server, whoever asked for it: a server would be everything that the caller is. Every
//! header of a client's that an integration wants is asked for it, whichever rule of the integration wants it.

use crate::identity::tokens::Tokens;
use crate::snapshot::Snapshot;
use http::HeaderValue;
use shared::identity::api_key::KeyHash;
use shared::identity::jwt::looks_like_jwt;

/// Words of one value that are looked at; a value with more does not pass.
const MAX_WORDS: usize = 64;

pub struct OwnCredentials<'a> {
    pub snapshot: &'a Snapshot,
    pub tokens: &'a Tokens,
    /// What opened the gateway to the client.
    pub service_key: &'a [u8],
}

impl OwnCredentials<'_> {
    /// Whether a value holds what opened the gateway now, another key of it, or a token that is for it: one that names an
    /// organisation whose tokens are accepted here, or whose issuer and audience are those of one.
    pub fn are_in(&self, value: &HeaderValue) -> bool {
        let value = value.as_bytes();
        if !self.service_key.is_empty() && memchr::memmem::find(value, self.service_key).is_some() {
            return true;
        }
        let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-_.~+/".contains(byte));
        let mut words = value.split(is_end).filter(|word| !word.is_empty());
        words.by_ref().take(MAX_WORDS).any(|word| self.is_own(word)) || words.next().is_some()
    }

    fn is_own(&self, word: &[u8]) -> bool {
        match looks_like_jwt(word) {
            true => self.tokens.are_meant(word, self.snapshot),
            false => self.snapshot.api_key(&KeyHash::from_key(word)).is_some(),
        }
    }
}
