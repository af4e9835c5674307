//! OAuth towards MCP servers: the gateway as a client of other people's authorisation servers. Where that server is, is
//! discovered from the MCP server; the gateway registers itself there, sends a person to agree, and keeps the tokens that
//! come back sealed, one set for each person and MCP server. No token is ever used for anybody else.
//!
//! Every address in here comes from outside, so each goes through the guarded connections of `outbound`, is bounded in
//! size and time, and nothing that an authorisation server says is repeated: some repeat the credential.

pub mod access;
pub mod client;
pub mod configured;
pub mod connection;
mod discovery;
pub mod ensure;
pub mod flow;
pub mod own_token;
pub mod refresh;
mod registration;
mod sealed_tokens;
mod store_refreshed;
mod token_endpoint;

use chrono::{DateTime, TimeDelta, Utc};
use shared::secrets::seal::{SealedPlace, Secret};
use uuid::Uuid;

/// Tokens as an authorisation server gives them, or a person stores them.
#[derive(Debug)]
pub struct Tokens {
    pub access: Secret,
    pub refresh: Option<Secret>,
    pub expires_at: Option<DateTime<Utc>>,
    pub scope: Option<String>,
}

/// The longest token that is kept.
pub const MAX_TOKEN: usize = 16 << 10;

/// When tokens that end at a time are refreshed: a fifth of their life before, within sensible bounds.
pub fn due(now: DateTime<Utc>, expires_at: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    let expires_at = expires_at?;
    let life = expires_at - now;
    let ahead = (life / 5).clamp(TimeDelta::seconds(5), TimeDelta::minutes(5));
    Some((expires_at - ahead).max(now))
}

/// Whether a text can stand in a header as a bearer token.
pub fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

pub fn place(organisation: Uuid, table: &'static str, row: Uuid, field: &'static str) -> SealedPlace {
    SealedPlace { organisation, table, row, field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_refreshed_ahead_of_their_end() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for (life, expected) in [(3600, 3300), (100, 80), (10, 5), (2, 0), (-5, 0)] {
            let due = due(now, Some(now + TimeDelta::seconds(life)));
            assert_eq!(due, Some(now + TimeDelta::seconds(expected)), "{life}");
        }
        assert_eq!(due(now, None), None);
    }

    #[test]
    fn a_token_is_what_a_header_can_carry() {
        for (text, expected) in
            [("abc.DEF-_~+/=", true), ("", false), ("a b", false), ("a\r\nx: y", false), ("ä", false)]
        {
            assert_eq!(is_token(text), expected, "{text:?}");
        }
        assert!(!is_token(&"x".repeat(MAX_TOKEN + 1)));
    }
}
