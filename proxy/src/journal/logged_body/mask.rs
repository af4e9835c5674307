//! Which names carry secrets. A value under such a name is replaced as a whole: a beginning and an end of it would tell
//! keys apart, but also shorten the search for them.

use std::borrow::Cow;

pub const MASK: &str = "*****";

/// What the head of almost every request holds, and never a secret: told apart without a search. Asked for every header
/// of every request, so a name is compared only with those of its length.
pub fn is_harmless(name: &str) -> bool {
    let is_listed = match name.len() {
        4 => matches!(name, "host" | "date" | "vary"),
        6 => matches!(name, "accept" | "server" | "origin" | "expect"),
        7 => matches!(name, "referer"),
        10 => matches!(name, "user-agent" | "connection"),
        11 => matches!(name, "traceparent" | "openai-beta"),
        12 => matches!(name, "content-type" | "x-request-id"),
        13 => matches!(name, "server-timing" | "cache-control"),
        14 => matches!(name, "content-length" | "openai-project" | "openai-version" | "anthropic-beta"),
        15 => matches!(name, "accept-encoding" | "accept-language"),
        16 => matches!(name, "content-encoding"),
        17 => matches!(name, "transfer-encoding" | "anthropic-version"),
        18 => matches!(name, "x-gateway-provider" | "x-gateway-trace-id" | "x-gateway-metadata"),
        19 => matches!(name, "openai-organization"),
        20 => matches!(name, "x-gateway-request-id" | "openai-processing-ms"),
        21 => matches!(name, "x-gateway-custom-host"),
        22 => matches!(name, "x-gateway-cache-status"),
        29 => matches!(name, "x-gateway-retry-attempt-count"),
        32 => matches!(name, "x-gateway-last-used-option-index"),
        _ => false,
    };
    is_listed || name.starts_with("x-ratelimit-") || name.starts_with("anthropic-ratelimit-")
}

/// Whether a part of the name is one under which secrets are sent. A name that merely sounds like one costs a value, no
/// more.
pub fn sounds_secret(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.iter().enumerate().any(|(at, first)| {
        let parts: &[&str] = match first {
            b'a' => &["auth"],
            b'c' => &["cookie", "credential"],
            b'k' => &["key"],
            b'p' => &["password"],
            b's' => &["secret", "signature"],
            b't' => &["token"],
            _ => return false,
        };
        parts.iter().any(|part| bytes[at..].starts_with(part.as_bytes()))
    })
}

/// Whether what stands under this name is never shown. Names are in lower case.
pub fn is_secret(name: &str) -> bool {
    // A key can be a websocket's subprotocol, and an inline config or a key file holds keys.
    let holds_keys = ["-config", "-account-json", "-external-id"].iter().any(|end| name.ends_with(end));
    !is_harmless(name) && (sounds_secret(name) || name == "sec-websocket-protocol" || holds_keys)
}

/// A path and query without the values of what names a secret.
pub fn url(text: &str) -> Cow<'_, str> {
    let Some((path, query)) = text.split_once('?') else { return Cow::Borrowed(text) };
    let masked = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(&decoded(name)) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    });
    Cow::Owned(format!("{path}?{}", masked.collect::<Vec<_>>().join("&")))
}

fn decoded(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
