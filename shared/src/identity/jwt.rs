//! Tokens (JWT) in place of API keys. An organisation names the keys that sign its tokens; a token names the
//! organisation, a workspace and scopes, and acts like a key of that workspace, never as an administrator.
//!
//! `token` is pure: text, keys, settings and the time make a `VerifiedToken` or a named `Rejection`. `key_ring` fetches and
//! keeps the keys; `failures` makes rows of an audit trail of rejected tokens, as few as `allowance` grants.

pub mod algorithm;
mod allowance;
pub mod claims;
pub mod failures;
pub mod key_ring;
pub mod keys;
pub mod limits;
pub mod rejection;
pub mod rules;
mod signature;
#[cfg(test)]
pub(crate) mod testing;
pub mod token;

pub use claims::VerifiedToken;
pub use failures::Failures;
pub use key_ring::{Current, KeyRing, KeySource};
pub use keys::WebKeySet;
pub use rejection::Rejection;
pub use rules::TokenRules;
pub use token::{Unverified, looks_like_jwt};

/// How a token is shown: its first two and last two characters.
pub fn mask(token: &str) -> String {
    let chars: Vec<char> = token.chars().collect();
    match chars.len() {
        0..12 => "*****".into(),
        length => {
            let ends = |part: &[char]| part.iter().collect::<String>();
            format!("{}*****{}", ends(&chars[..2]), ends(&chars[length - 2..]))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_mask_shows_two_characters_of_each_end_and_nothing_of_a_short_text() {
        for (token, shown) in [("eyJhbGciOi.e30.c2ln", "ey*****ln"), ("eyJ.e30.c2l", "*****"), ("", "*****")] {
            assert_eq!(super::mask(token), shown);
        }
    }
}
