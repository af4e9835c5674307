//! Heads as text: one `name: value` line per header, with secrets masked. One buffer for all heads of a request costs
//! less than keeping the maps alive, and is what the journal writes.

use super::inline_config::{self, is_config};
use super::mask::{MASK, is_harmless, is_secret};
use http::{HeaderMap, HeaderValue};

/// What the client sent, or is sent. `sensitive` are further names that it wants masked, comma separated.
pub fn write(out: &mut Vec<u8>, headers: &HeaderMap, sensitive: Option<&HeaderValue>) {
    for (name, value) in headers {
        let name = name.as_str();
        let is_meant_to_be = value.is_sensitive() || sensitive.is_some_and(|list| names(list, name));
        if is_config(name) && !is_meant_to_be {
            line(out, name, &inline_config::masked(value.as_bytes()));
            continue;
        }
        let is_masked = is_meant_to_be || is_secret(name) || is_broken_metadata(name, value.as_bytes());
        line(out, name, if is_masked { MASK.as_bytes() } else { value.as_bytes() });
    }
}

/// One header that a provider was sent, shown only where it is surely no secret: one of a stored account may be anything.
pub fn write_sent(out: &mut Vec<u8>, name: &str, value: &HeaderValue, is_harmless: bool) {
    line(out, name, if is_harmless { value.as_bytes() } else { MASK.as_bytes() });
}

/// Whether the value may be shown that a provider was sent under this name.
pub fn is_harmless_sent(name: &str, value: &HeaderValue) -> bool {
    !value.is_sensitive() && is_harmless(name)
}

/// The text under a name, of lines that were written.
pub fn find<'l>(lines: &'l [u8], name: &str) -> Option<&'l [u8]> {
    let mut lines = lines.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b": "))
}

/// The pairs that were written.
pub fn parse(lines: &[u8]) -> impl Iterator<Item = (String, String)> {
    lines.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.windows(2).position(|pair| pair == b": ")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(&line[..at]), text(&line[at + 2..])))
    })
}

/// A value can hold no line feed: HTTP forbids it, and the parsers refuse it.
fn line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + 3);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// Tags are meant to be seen. What is no object is something else that was put there by mistake.
fn is_broken_metadata(name: &str, value: &[u8]) -> bool {
    name.ends_with("-metadata") && !value.trim_ascii().ends_with(b"}")
}

fn names(list: &HeaderValue, name: &str) -> bool {
    list.as_bytes().split(|byte| *byte == b',').any(|listed| listed.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn head(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn shown(lines: &[u8]) -> Vec<(String, String)> {
        parse(lines).collect()
    }

    #[test]
    fn what_is_secret_or_said_to_be_is_masked_and_the_rest_is_kept() {
        let mut map = head(&[("authorization", "Bearer k"), ("x-mine", "a: b"), ("x-other", "o")]);
        map.insert("x-flagged", {
            let mut value = HeaderValue::from_static("f");
            value.set_sensitive(true);
            value
        });
        let mut lines = Vec::new();
        write(&mut lines, &map, Some(&HeaderValue::from_static("x-unsent, X-OTHER")));
        let mut found = shown(&lines);
        found.sort();
        let expected = [("authorization", MASK), ("x-flagged", MASK), ("x-mine", "a: b"), ("x-other", MASK)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn of_what_a_provider_is_sent_only_the_harmless_is_shown() {
        let mut lines = Vec::new();
        for (name, value) in &head(&[("content-type", "application/json"), ("x-account", "a")]) {
            write_sent(&mut lines, name.as_str(), value, is_harmless_sent(name.as_str(), value));
        }
        assert_eq!((find(&lines, "content-type"), find(&lines, "content")), (Some(&b"application/json"[..]), None));
        let found = shown(&lines);
        assert_eq!(found[0], ("content-type".into(), "application/json".into()));
        assert_eq!(found[1], ("x-account".into(), MASK.into()));
    }
}
