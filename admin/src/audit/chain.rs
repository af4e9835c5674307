//! The hash chain of an organisation's audit trail: each record has a number without gaps and a hash over itself and
//! the hash before it. So an edit, a gap or a cut shows, whoever made it. Pure: the job that chains and the command
//! that verifies both compute here, never in the database, which is what they do not trust.
//!
//! What a chain without an outside witness cannot show is that all of it was computed anew from some record on. A note
//! of an earlier end (an `Anchor`) does show it; `audit verify` prints the ends and the job logs them.

mod walk;

pub use walk::{ChainFinding, ChainWalk, ChainedRecord};

use sha2::{Digest as _, Sha256};
use std::str::FromStr;

pub type ChainHash = [u8; 32];

/// What stands before the first record.
pub const GENESIS: ChainHash = [0; 32];

/// Tells this way of hashing from any other. Columns that are added later need a new one beside it: old records keep
/// the hash they have.
const FORMAT: &[u8] = b"portcullis audit 1\n";

/// The columns that are hashed, in their order, as texts that depend on neither time zone nor locale. Postgres stores
/// `jsonb` in one form, so its text is canonical.
pub const FIELDS: &str = "ARRAY[id::text, organisation_id::text, workspace_id::text,
    (extract(epoch FROM created_at) * 1000000)::bigint::text, user_id::text, user_type, api_key_id::text, method, uri,
    query_params::text, request_headers::text, request_body::text, request_id::text, client_ip::text, country,
    resource_type, action, resource_id, response_status_code::text, error, before::text, after::text]";

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainEnd {
    pub sequence: i64,
    pub hash: ChainHash,
}

impl ChainEnd {
    pub const BEGINNING: Self = Self { sequence: 0, hash: GENESIS };

    /// The end after one more record.
    pub fn with(self, fields: &[Option<String>]) -> Self {
        let sequence = self.sequence + 1;
        Self { sequence, hash: hash(&self.hash, sequence, fields) }
    }
}

/// As it is printed, noted and given back: `17:9f86d0…`.
impl std::fmt::Display for ChainEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.sequence, hex::encode(self.hash))
    }
}

impl FromStr for ChainEnd {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "it must be a number, `:` and 64 hex digits, as `audit verify` prints it";
        let (sequence, digits) = text.split_once(':').ok_or(WRONG)?;
        let sequence = sequence.parse().ok().filter(|sequence| *sequence > 0).ok_or(WRONG)?;
        let mut hash = GENESIS;
        hex::decode_to_slice(digits, &mut hash).map_err(|_| WRONG)?;
        Ok(Self { sequence, hash })
    }
}

/// Every field is preceded by its length, so that no text can move from one field into the next unnoticed.
pub fn hash(previous: &[u8], sequence: i64, fields: &[Option<String>]) -> ChainHash {
    let mut hasher = Sha256::new();
    hasher.update(FORMAT);
    hasher.update((previous.len() as u64).to_be_bytes());
    hasher.update(previous);
    hasher.update(sequence.to_be_bytes());
    for field in fields {
        match field {
            None => hasher.update([0]),
            Some(text) => {
                hasher.update([1]);
                hasher.update((text.len() as u64).to_be_bytes());
                hasher.update(text);
            }
        }
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(texts: &[Option<&str>]) -> Vec<Option<String>> {
        texts.iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn anything_that_differs_gives_another_hash() {
        let base = hash(&GENESIS, 1, &fields(&[Some("ab"), Some("c"), None]));
        assert_eq!(base, hash(&GENESIS, 1, &fields(&[Some("ab"), Some("c"), None])));
        for other in [
            hash(&GENESIS, 1, &fields(&[Some("a"), Some("bc"), None])),
            hash(&GENESIS, 1, &fields(&[Some("ab"), Some("c"), Some("")])),
            hash(&GENESIS, 1, &fields(&[Some("ab"), None, Some("c")])),
            hash(&GENESIS, 1, &fields(&[Some("ab"), Some("c")])),
            hash(&GENESIS, 2, &fields(&[Some("ab"), Some("c"), None])),
            hash(&[1; 32], 1, &fields(&[Some("ab"), Some("c"), None])),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn the_format_never_changes_under_records_that_exist() {
        let hash = hash(&GENESIS, 1, &fields(&[Some("a"), None]));
        let mut spelled = b"portcullis audit 1\n".to_vec();
        spelled.extend([0, 0, 0, 0, 0, 0, 0, 32]);
        spelled.extend([0; 32]);
        spelled.extend([0, 0, 0, 0, 0, 0, 0, 1]);
        spelled.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, b'a', 0]);
        assert_eq!(hash, ChainHash::from(Sha256::digest(spelled)));
    }

    #[test]
    fn an_end_is_read_as_it_is_printed() {
        let end = ChainEnd::BEGINNING.with(&fields(&[Some("a")]));
        assert_eq!(end.to_string().parse(), Ok(end));
        for wrong in ["", "1", "1:", "1:00", "0:0000000000000000000000000000000000000000000000000000000000000000"] {
            assert!(wrong.parse::<ChainEnd>().is_err(), "{wrong}");
        }
    }
}
