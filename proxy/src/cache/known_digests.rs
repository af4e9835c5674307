//! Digests of what kept answers were found for lately, by the bytes that they are made of: of bodies, which clients write
//! alike where they are equal, and of keys. To compare a text takes a fraction of the time of spelling and hashing it anew.
//!
//! Texts of requests are here only as long as they are of use: few, none that is long, and all are dropped whenever the
//! cache is swept.

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::hash::BuildHasher as _;

const PLACES: usize = 256;
/// Of a text, in bytes.
const MAX_TEXT: usize = 4 << 10;

pub struct KnownDigests<D> {
    /// Each text has one place, and gives it up to the next.
    places: Box<[Mutex<Option<KnownDigest<D>>>]>,
    spread: RandomState,
}

struct KnownDigest<D> {
    hash: u64,
    text: Box<[u8]>,
    digest: D,
}

impl<D> Default for KnownDigests<D> {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| Mutex::default()).collect(), spread: RandomState::default() }
    }
}

impl<D: Copy> KnownDigests<D> {
    pub fn find(&self, text: &[u8]) -> Option<D> {
        let (hash, place) = self.place(text)?;
        // Whoever would have to wait hashes.
        let known = place.try_lock()?;
        known.as_ref().filter(|known| known.hash == hash && *known.text == *text).map(|known| known.digest)
    }

    pub fn remember(&self, text: &[u8], digest: D) {
        if let Some((hash, place)) = self.place(text) {
            let known = KnownDigest { hash, text: text.into(), digest };
            let before = place.lock().replace(known);
            drop(before);
        }
    }

    pub fn forget_all(&self) {
        for place in &self.places {
            *place.lock() = None;
        }
    }

    fn place(&self, text: &[u8]) -> Option<(u64, &Mutex<Option<KnownDigest<D>>>)> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let hash = self.spread.hash_one(text);
        self.places.get(hash as usize % PLACES).map(|place| (hash, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::key::BodyDigest;

    fn digest(body: &str) -> BodyDigest {
        BodyDigest::of(body.as_bytes()).unwrap()
    }

    #[test]
    fn a_text_is_known_by_all_of_its_bytes_until_it_is_forgotten() {
        let known = KnownDigests::default();
        let (one, other) = (r#"{"a":1}"#, r#"{"a":2}"#);
        assert_eq!(known.find(one.as_bytes()), None);
        known.remember(one.as_bytes(), digest(one));
        assert_eq!(known.find(one.as_bytes()), Some(digest(one)));
        assert_eq!(known.find(other.as_bytes()), None);
        assert_eq!(known.find(r#"{"a":1 }"#.as_bytes()), None, "spelled otherwise");
        known.forget_all();
        assert_eq!(known.find(one.as_bytes()), None);
    }

    #[test]
    fn places_are_few_and_long_texts_have_none() {
        let known = KnownDigests::default();
        let bodies: Vec<String> = (0..10 * PLACES).map(|number| format!(r#"{{"a":{number}}}"#)).collect();
        bodies.iter().for_each(|body| known.remember(body.as_bytes(), digest(body)));
        let found = bodies.iter().filter(|body| known.find(body.as_bytes()).is_some());
        assert!(found.inspect(|body| assert_eq!(known.find(body.as_bytes()), Some(digest(body)))).count() <= PLACES);
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_TEXT));
        known.remember(long.as_bytes(), digest(&long));
        assert_eq!(known.find(long.as_bytes()), None);
    }
}
