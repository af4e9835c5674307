//! A workspace's icon is one emoji. It is kept apart from the name and shown before it; an emoji that leads a given
//! name is taken for the icon, so that what was shown can be sent back.

use crate::http::ApiError;

/// Icon and name of what was sent as a name.
pub fn split(given: String) -> (Option<String>, String) {
    match given.split_once(' ') {
        Some((first, rest)) if is_emoji(first) && !rest.trim().is_empty() => (Some(first.to_owned()), rest.to_owned()),
        _ => (None, given),
    }
}

pub fn joined(icon: Option<&str>, name: &str) -> String {
    icon.map_or_else(|| name.to_owned(), |icon| format!("{icon} {name}"))
}

/// The empty text clears it.
pub fn checked_icon(icon: String) -> Result<Option<String>, ApiError> {
    match icon.as_str() {
        "" => Ok(None),
        text if is_emoji(text) => Ok(Some(icon)),
        _ => Err(ApiError::field("icon", "must be one emoji")),
    }
}

/// Characters that make up one emoji: pictures, flags and keycaps, and what joins and colours them.
fn is_emoji(text: &str) -> bool {
    let is_picture = |c: char| {
        matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
            | '\u{2b00}'..='\u{2bff}' | '\u{25a0}'..='\u{25ff}' | '\u{3030}' | '\u{303d}' | '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}')
    };
    let is_part = |c: char| {
        is_picture(c)
            || matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{20e3}' | '\u{e0020}'..='\u{e007f}' | '0'..='9' | '#' | '*')
    };
    let is_keycap = text.ends_with('\u{20e3}');
    let begins = text.chars().next().is_some_and(|first| is_picture(first) || is_keycap);
    begins && text.chars().count() <= 16 && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_emoji_is_the_icon() {
        for (given, icon, name) in [
            ("🚀 Team", Some("🚀"), "Team"),
            ("👩‍🚀 Crew", Some("👩‍🚀"), "Crew"),
            ("🇫🇷 Paris", Some("🇫🇷"), "Paris"),
            ("1️⃣ First", Some("1️⃣"), "First"),
            ("❤️ Care", Some("❤️"), "Care"),
            ("Team 🚀", None, "Team 🚀"),
            ("🚀", None, "🚀"),
            ("🚀 ", None, "🚀 "),
            ("42 Team", None, "42 Team"),
            ("A team", None, "A team"),
        ] {
            let (found, rest) = split(given.into());
            assert_eq!((found.as_deref(), rest.as_str()), (icon, name), "{given}");
            assert_eq!(joined(found.as_deref(), &rest), given);
        }
    }

    #[test]
    fn an_icon_is_one_emoji_or_nothing() {
        for (icon, accepted) in [("🚀", true), ("", true), ("x", false), ("7", false), ("🚀 x", false)] {
            assert_eq!(checked_icon(icon.into()).is_ok(), accepted, "{icon}");
        }
    }
}
