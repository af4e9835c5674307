//! The algorithms by which tokens may be signed: those with a public key alone, so that nobody who can verify can sign. A key
//! decides which of them hold for it (`keys`); what a token says of itself only chooses among those.

use jsonwebtoken::Algorithm;

pub const NAMES: &[&str] = &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/// Of an RSA key that names none.
pub(super) const RSA: &[Algorithm] =
    &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512];

pub(super) fn parse(name: &str) -> Option<Algorithm> {
    NAMES.contains(&name).then(|| name.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_an_algorithm_with_a_public_key_and_no_other_is_read() {
        for name in NAMES {
            let algorithm = parse(name).unwrap();
            assert_eq!(serde_json::to_value(algorithm).unwrap(), **name);
        }
        for name in ["HS256", "HS384", "HS512", "none", "", "rs256", "ES512", "RS256 "] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
