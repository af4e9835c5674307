//! Checks that many fields share: length in characters, slugs, e-mail addresses; and slugs made from names.

use crate::http::ApiError;

/// Refuses text whose length in characters is outside `lengths`. Nothing is trimmed: what was sent is what is read.
pub fn sized(field: &str, text: String, lengths: std::ops::RangeInclusive<usize>) -> Result<String, ApiError> {
    // Bytes first: counting characters of a megabyte to refuse it would be a waste.
    let fits = text.len() <= lengths.end() * 4 && lengths.contains(&text.chars().count());
    if fits {
        return Ok(text);
    }
    let (least, most) = (lengths.start(), lengths.end());
    Err(ApiError::field(field, format!("must have {least} to {most} characters")))
}

/// A name: 1 to 255 characters, not all of them blank.
pub fn name(field: &str, text: String) -> Result<String, ApiError> {
    let text = sized(field, text, 1..=255)?;
    if text.trim().is_empty() {
        return Err(ApiError::field(field, "must not be blank"));
    }
    Ok(text)
}

pub fn is_slug(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// A slug that the client chose.
pub fn slug(field: &str, text: String) -> Result<String, ApiError> {
    if !is_slug(&text) {
        return Err(ApiError::field(field, "must be 1 to 255 letters, digits, `_` and `-`"));
    }
    // Paths take an id or a slug in the same place.
    if text.len() == 36 && text.parse::<uuid::Uuid>().is_ok() {
        return Err(ApiError::field(field, "must not look like an id"));
    }
    Ok(text)
}

pub fn email(field: &str, text: &str) -> Result<String, ApiError> {
    let email = text.trim();
    let is_plain = email.len() <= 320 && !email.contains(|c: char| c.is_whitespace() || c.is_control());
    match email.split_once('@') {
        Some((local, domain)) if is_plain && !local.is_empty() && !domain.is_empty() && !domain.contains('@') => {
            Ok(email.to_owned())
        }
        _ => Err(ApiError::field(field, "must be an e-mail address")),
    }
}

/// `prefix-` + the first characters of the name as a slug + `-` + 6 hex digits: `ws-market-3f9a01`.
pub fn generated_slug(prefix: &str, name: &str, most: usize) -> String {
    let plain = slugified(name);
    let short = plain.get(..most).unwrap_or(&plain).trim_matches('-');
    let random = hex::encode(rand::random::<[u8; 3]>());
    let parts = [prefix, short, &random].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-")
}

/// Lower case; every run of other characters than `a-z0-9` is one `-`, none at the ends.
pub fn slugified(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_in_characters() {
        for (text, accepted) in [("", false), ("a", true), ("äöü", true), ("🦀🦀🦀", true), ("four", false)] {
            assert_eq!(sized("name", text.into(), 1..=3).is_ok(), accepted, "{text}");
        }
        assert!(sized("name", "x".repeat(1 << 20), 1..=255).is_err());
        assert!(name("name", "  ".into()).is_err());
    }

    #[test]
    fn slugs_are_made_of_the_names_plain_letters() {
        for (name, slug) in [
            ("Shared Team Workspace", "ws-shared-"),
            ("  A&B  ", "ws-a-b-"),
            ("Ünïcödé", "ws-n-c-d-"),
            ("🦀", "ws-"),
            ("abcde fgh", "ws-abcde-"),
        ] {
            let made = generated_slug("ws", name, 6);
            assert!(made.starts_with(slug) && made.len() == slug.len() + 6 && is_slug(&made), "{name}: {made}");
        }
    }

    #[test]
    fn addresses_have_two_parts_and_no_spaces() {
        for (text, accepted) in
            [("a@b.test", true), (" a@b.test ", true), ("a", false), ("@b", false), ("a@", false), ("a b@c", false)]
        {
            assert_eq!(email("email", text).is_ok(), accepted, "{text}");
        }
    }
}
