//! The master keys of an installation: lines of `id:base64`, 32 bytes each. The first seals; the others only open what
//! they sealed before, until a rotation has replaced them. Problems are told by line, never with its text.

use super::{SealError, SealingKey};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha2::{Digest as _, Sha256};

/// Padded or not: both come out of common tools.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug, Clone)]
pub struct Keyring {
    active: (String, SealingKey),
    others: Vec<(String, SealingKey)>,
}

impl Keyring {
    /// The text of a keyring file. Empty lines and lines that begin with `#` are skipped.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut keys: Vec<(String, SealingKey)> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (id, key) = entry(line).map_err(|problem| format!("line {}: {problem}", n + 1))?;
            if keys.iter().any(|(other, _)| *other == id) {
                return Err(format!("line {}: the id `{id}` is there already", n + 1));
            }
            keys.push((id, key));
        }
        let mut keys = keys.into_iter();
        let active = keys.next().ok_or("it holds no key")?;
        Ok(Self { active, others: keys.collect() })
    }

    /// A single key, `base64` or `id:base64`. Without an id its fingerprint is the id, so that another key under the
    /// same setting is told apart.
    pub fn single(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let active = if text.contains(':') { entry(text)? } else { unnamed(text)? };
        Ok(Self { active, others: Vec::new() })
    }

    /// The text of a new keyring with one new key.
    pub fn generate(id: &str) -> Result<String, SealError> {
        Ok(format!("{id}:{}\n", BASE64.encode(SealingKey::random()?.expose())))
    }

    /// The key that seals.
    pub fn active(&self) -> (&str, &SealingKey) {
        (&self.active.0, &self.active.1)
    }

    pub fn key(&self, id: &str) -> Option<&SealingKey> {
        self.all().find(|(one, _)| one == id).map(|(_, key)| key)
    }

    /// The same keys in the same order.
    pub fn is_same(&self, other: &Self) -> bool {
        let holds = |id: &str, key: &SealingKey| other.key(id).is_some_and(|one| one.expose() == key.expose());
        self.ids() == other.ids() && self.all().all(|(id, key)| holds(id, key))
    }

    /// All ids, the active one first.
    pub fn ids(&self) -> Vec<&str> {
        self.all().map(|(id, _)| id.as_str()).collect()
    }

    fn all(&self) -> impl Iterator<Item = &(String, SealingKey)> {
        std::iter::once(&self.active).chain(&self.others)
    }
}

fn entry(line: &str) -> Result<(String, SealingKey), String> {
    let (id, text) = line.split_once(':').ok_or("it must read `id:base64`")?;
    let is_id = (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !is_id {
        return Err("the id must be 1 to 64 letters, digits, `.`, `_` and `-`".into());
    }
    Ok((id.to_owned(), key_of(text)?))
}

fn unnamed(text: &str) -> Result<(String, SealingKey), String> {
    let key = key_of(text)?;
    let fingerprint = Sha256::digest([b"master key id".as_slice(), key.expose()].concat());
    Ok((hex::encode(&fingerprint[..4]), key))
}

fn key_of(text: &str) -> Result<SealingKey, String> {
    let bytes = BASE64.decode(text.trim()).ok().map(zeroize::Zeroizing::new);
    let key = bytes.and_then(|bytes| SealingKey::from_bytes(&bytes));
    key.ok_or_else(|| "the key must be 32 bytes in base64 (`openssl rand -base64 32`)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const TWO: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

    #[test]
    fn the_first_key_is_active_and_all_are_found_by_id() {
        let ring = Keyring::parse(&format!("# newest first\n\n2026-11:{TWO}\n  old : {ONE}\n").replace(" : ", ":"));
        let ring = ring.unwrap();
        assert_eq!((ring.active().0, ring.ids()), ("2026-11", vec!["2026-11", "old"]));
        assert_eq!(ring.key("old").unwrap().expose(), [0; 32]);
        assert!(ring.key("other").is_none());
    }

    #[test]
    fn what_is_no_keyring_is_refused_by_line_and_without_its_text() {
        for (text, expected) in [
            ("", "it holds no key"),
            ("# nothing\n", "it holds no key"),
            ("hunter2hunter2", "line 1: it must read"),
            (&format!("a:{ONE}\nb:hunter2"), "line 2: the key must be 32 bytes"),
            (&format!("a:{ONE}\na:{TWO}"), "line 2: the id `a` is there already"),
            (&format!("hunter 2:{ONE}"), "line 1: the id must be"),
            (&format!(":{ONE}"), "line 1: the id must be"),
        ] {
            let problem = Keyring::parse(text).unwrap_err();
            assert!(problem.starts_with(expected) && !problem.contains("hunter"), "{text}: {problem}");
        }
    }

    #[test]
    fn a_single_key_is_named_by_its_fingerprint_or_as_it_says() {
        let (one, two) = (Keyring::single(ONE).unwrap(), Keyring::single(TWO).unwrap());
        assert_eq!(one.active().0.len(), 8);
        assert_ne!(one.active().0, two.active().0);
        assert_eq!(Keyring::single(&format!("mine:{ONE}")).unwrap().active().0, "mine");
        assert!(Keyring::single("short").is_err());
    }

    #[test]
    fn a_generated_keyring_can_be_read() {
        let text = Keyring::generate("first").unwrap();
        assert_eq!(Keyring::parse(&text).unwrap().ids(), ["first"]);
        assert_ne!(text, Keyring::generate("first").unwrap());
    }
}
