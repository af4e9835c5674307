//! One path can be spelled in many ways. `canonical` undoes the spellings that every server reads alike, so that a
//! request is judged by what it asks for; `loosest` is what the most forgiving server could make of a path. Where the
//! two name different endpoints, nobody can say which one the provider would serve: such a request is refused.

use percent_encoding::percent_decode;
use std::borrow::Cow;

/// The path with escaped unreserved characters written plainly, one slash where several stood, and none at its end.
pub fn canonical(path: &str) -> Cow<'_, str> {
    let is_plain = !path.contains('%') && !path.contains("//") && (path.len() <= 1 || !path.ends_with('/'));
    if is_plain {
        return Cow::Borrowed(path);
    }
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match unreserved(&bytes[at..]) {
            Some(plain) => {
                out.push(plain);
                at += 3;
            }
            None => {
                if byte != b'/' || out.last() != Some(&b'/') {
                    out.push(byte);
                }
                at += 1;
            }
        }
    }
    if out.len() > 1 && out.last() == Some(&b'/') {
        out.pop();
    }
    // Only ASCII was put in and only whole bytes taken over.
    String::from_utf8(out).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// The character that an escape stands for, where escaping it changes nothing (RFC 3986, 2.3).
fn unreserved(rest: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = rest else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = digit(*high)? << 4 | digit(*low)?;
    (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)).then_some(byte)
}

/// The path as a server would read it that decodes everything, more than once, resolves dots, takes backslashes for
/// slashes, cuts parameters off and does not look at case. None when that is the path as it is written.
pub fn loosest(path: &str) -> Option<String> {
    let is_odd = |byte: u8| byte.is_ascii_uppercase() || !byte.is_ascii_graphic() || b"%\\;".contains(&byte);
    if !path.bytes().any(is_odd) && !path.contains("/.") && !path.contains("//") {
        return None;
    }
    const ROUNDS: usize = 3;
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..ROUNDS {
        bytes = percent_decode(&bytes).collect();
    }
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase().replace('\\', "/");
    let text = text.split(['?', '#', '\0']).next().unwrap_or_default();
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        match segment.split(';').next().unwrap_or_default().trim() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    Some(format!("/{}", segments.join("/")))
}

#[cfg(test)]
mod tests;
