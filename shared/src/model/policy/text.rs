//! Names of groups: `<key>:<value>` joined by `|`. They come from whoever sends requests, so they are bounded, and no
//! value can be made to look like two.

use super::{Facts, PolicyKey};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Longer values stand in a name by their hash.
const MAX_VALUE: usize = 120;
/// Longer names are a hash as a whole, so that the names of counters, which begin with a policy's, stay short enough.
const MAX_NAME: usize = 200;

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
            0..=MAX_VALUE => push(out, &value),
            _ => out.push_str(&hashed(&value)),
        }
    }
    if out.len() - start > MAX_NAME {
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
mod tests;
