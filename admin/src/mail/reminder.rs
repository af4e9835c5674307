//! Letters about an API key: that it ends or is rotated tomorrow, and that it was rotated. None of them carries a
//! secret: who may manage the key fetches the new one.

use super::Letter;
use crate::http::Time;

pub const KIND_EXPIRY: &str = "key expiry";
pub const KIND_ROTATION: &str = "key rotation";
pub const KIND_ROTATED: &str = "key rotated";

/// The key that a letter is about.
pub struct ReminderKey<'a> {
    pub id: uuid::Uuid,
    pub name: &'a str,
    pub mask: &'a str,
}

pub fn expires(to: String, key: &ReminderKey<'_>, at: Time) -> Letter {
    let text = format!(
        "{}\n\nIt expires on {}. From then on it is refused.\nMove its end (PUT /v1/api-keys/{}) or replace it before.\n",
        described(key),
        day(at),
        key.id
    );
    Letter { to, subject: format!("API key {} expires soon", key.name), text, kind: KIND_EXPIRY }
}

pub fn is_due(to: String, key: &ReminderKey<'_>, at: Time) -> Letter {
    let text = format!(
        "{}\n\nIt gets a new secret on {} by its rotation policy. To choose the moment yourself, rotate it before \
         (POST /v1/api-keys/{}/rotate).\n",
        described(key),
        day(at),
        key.id
    );
    Letter { to, subject: format!("API key {} is about to be rotated", key.name), text, kind: KIND_ROTATION }
}

pub fn was_rotated(to: String, key: &ReminderKey<'_>, old_until: Time) -> Letter {
    let text = format!(
        "{}\n\nIt was rotated by its policy. The secret in use works until {}.\nFetch the new one before \
         (POST /v1/api-keys/{}/rotate) and give it to your applications.\n",
        described(key),
        day(old_until),
        key.id
    );
    Letter { to, subject: format!("API key {} was rotated", key.name), text, kind: KIND_ROTATED }
}

fn described(key: &ReminderKey<'_>) -> String {
    format!("This is about the API key {} ({}, id {}) on Portcullis.", key.name, key.mask, key.id)
}

fn day(time: Time) -> String {
    time.0.format("%-d %B %Y, %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_names_the_key_the_moment_and_what_to_do() {
        let key = ReminderKey { id: uuid::Uuid::nil(), name: "ci", mask: "pk*****abc" };
        let at = Time("2026-01-05T10:30:00Z".parse().unwrap());
        for (letter, does) in [
            (expires("a@x.test".into(), &key, at), "PUT /v1/api-keys/00000000"),
            (is_due("a@x.test".into(), &key, at), "/rotate"),
            (was_rotated("a@x.test".into(), &key, at), "/rotate"),
        ] {
            assert!(letter.subject.contains("API key ci "), "{}", letter.subject);
            for part in ["ci (pk*****abc", "5 January 2026, 10:30 UTC", does] {
                assert!(letter.text.contains(part), "{}", letter.text);
            }
        }
    }
}
