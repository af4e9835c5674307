//! Names of groups: `<key>:<value>` joined by `|`. They come from whoever sends requests, so they are bounded, and no
//! value can be made to look like two.

use super::{Facts, PolicyKey};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Longer values stand in a name by their hash.
const LONGEST_VALUE: usize = 120;
/// Longer names are a hash as a whole, so that the names of counters, which begin with a policy's, stay short enough.
const LONGEST: usize = 200;

/// The name of the group that a request belongs to; none when it lacks one of the values.
pub fn value_key<'a>(keys: impl IntoIterator<Item = &'a PolicyKey>, facts: &impl Facts) -> Option<String> {
    let mut name = String::new();
    push_value_key(&mut name, keys, facts, false).then_some(name)
}

/// Writes the name of the group that a request belongs to behind what is there. False when the request lacks one of the
/// values; then what was written means nothing. Unless it is to include those: a key stands without a colon then, which
/// no value can be made to look like.
pub fn push_value_key<'a>(
    out: &mut String,
    keys: impl IntoIterator<Item = &'a PolicyKey>,
    facts: &impl Facts,
    include_none: bool,
) -> bool {
    let start = out.len();
    for key in keys {
        let value = facts.value(key);
        if value.is_none() && !include_none {
            return false;
        }
        if out.len() > start {
            out.push('|');
        }
        push(out, key.prefix());
        push(out, key.field());
        let Some(value) = value else { continue };
        out.push(':');
        match value.len() {
            0..=LONGEST_VALUE => push(out, &value),
            _ => out.push_str(&hashed(&value)),
        }
    }
    if out.len() - start > LONGEST {
        let whole = hashed(&out[start..]);
        out.truncate(start);
        out.push_str(&whole);
    }
    true
}

/// An id as it is written, without the machinery of formatting: this is done for every request.
pub fn push_id(out: &mut String, id: Uuid) {
    out.push_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
}

fn hashed(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text.as_bytes())))
}

/// What joins parts is escaped inside of them; Postgres cannot store NUL.
fn push(name: &mut String, text: &str) {
    if !text.contains(['|', '\\', '\0']) {
        return name.push_str(text);
    }
    for c in text.chars() {
        match c {
            '|' | '\\' => name.extend(['\\', c]),
            '\0' => name.push('\u{fffd}'),
            _ => name.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    struct Sent(&'static [(&'static str, &'static str)]);

    impl Facts for Sent {
        fn value(&self, key: &PolicyKey) -> Option<Cow<'_, str>> {
            let name = key.to_string();
            self.0.iter().find(|(one, _)| *one == name).map(|(_, value)| Cow::Borrowed(*value))
        }
    }

    fn keys(names: &[&str]) -> Vec<PolicyKey> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn named(names: &[&str], sent: &'static [(&'static str, &'static str)]) -> Option<String> {
        value_key(&keys(names), &Sent(sent))
    }

    #[test]
    fn a_group_is_named_by_its_keys_and_values_in_order() {
        let sent: &[(&str, &str)] = &[("metadata._user", "alice"), ("api_key", "k-1")];
        assert_eq!(named(&["metadata._user"], sent).as_deref(), Some("metadata._user:alice"));
        assert_eq!(named(&["api_key", "metadata._user"], sent).as_deref(), Some("api_key:k-1|metadata._user:alice"));
        assert_eq!(named(&["api_key", "metadata.team"], sent), None, "a request that lacks a value is in no group");
        let mut behind = "policy/".to_owned();
        assert!(push_value_key(&mut behind, &keys(&["api_key"]), &Sent(sent), false));
        assert_eq!(behind, "policy/api_key:k-1");
        let mut none = String::new();
        assert!(push_value_key(&mut none, &keys(&["metadata.team", "api_key"]), &Sent(sent), true));
        assert_eq!(none, "metadata.team|api_key:k-1", "unless it is asked for");
    }

    #[test]
    fn no_value_can_look_like_two() {
        let names = ["metadata.a", "metadata.b"];
        let one = named(&names, &[("metadata.a", "x|metadata.b:y"), ("metadata.b", "z")]);
        let two = named(&names, &[("metadata.a", "x"), ("metadata.b", "y|metadata.b:z")]);
        assert_ne!(one, two);
        assert_ne!(
            named(&names, &[("metadata.a", "x\\"), ("metadata.b", "y")]),
            named(&names, &[("metadata.a", "x"), ("metadata.b", "\\y")])
        );
    }

    #[test]
    fn a_long_value_stands_by_its_hash() {
        static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(1 << 16));
        struct Long;
        impl Facts for Long {
            fn value(&self, _: &PolicyKey) -> Option<Cow<'_, str>> {
                Some(Cow::Borrowed(LONG.as_str()))
            }
        }
        let name = value_key(&keys(&["metadata.x"]), &Long).unwrap();
        assert!(name.starts_with("metadata.x:sha256:") && name.len() == 18 + 64, "{name}");
        let many: Vec<String> = (0..8).map(|n| format!("metadata.{}{n}", "y".repeat(100))).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let name = value_key(&keys(&many), &Long).unwrap();
        assert!(name.starts_with("sha256:") && name.len() == 7 + 64, "{name}");
    }
}
