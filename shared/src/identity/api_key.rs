//! API keys: a prefix and 256 random bits. Only the SHA-256 is stored; because the key is random, no slow hash is
//! needed, and a lookup by hash leaks nothing about near misses.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The stored form of a key, and the one thing a lookup needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    pub fn from_key(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }
}

/// A hash opens nothing, but it identifies a key; logs do not need it.
impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

/// A new key: the prefix and 43 base64url characters.
pub fn generate(prefix: &str) -> String {
    let bits: [u8; 32] = rand::random();
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bits))
}

/// How a key is shown after its creation: first two and last three characters.
pub fn mask(key: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    if chars.len() < 8 {
        return "*****".into();
    }
    let head: String = chars[..2].iter().collect();
    let tail: String = chars[chars.len() - 3..].iter().collect();
    format!("{head}*****{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_carries_256_bits_and_its_prefix() {
        let (one, two) = (generate("pk_"), generate("pk_"));
        assert!(one.starts_with("pk_") && one.len() == 3 + 43, "{one}");
        assert_ne!(one, two);
    }

    #[test]
    fn a_mask_shows_two_and_three_characters_of_a_long_key_and_none_of_a_short_one() {
        for (key, shown) in [("z1abcdef3AX", "z1*****3AX"), ("short", "*****")] {
            assert_eq!(mask(key), shown);
        }
    }
}
