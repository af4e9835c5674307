//! Which names carry secrets. A value under such a name is replaced as a whole: a beginning and an end of it would tell
//! keys apart, but also shorten the search for them.

use std::borrow::Cow;

pub const MASK: &str = "*****";

/// Parts of names under which secrets are sent. A name that merely sounds like one costs a value, no more.
const TELLTALES: [&str; 8] = ["auth", "key", "token", "secret", "password", "cookie", "credential", "signature"];

/// What the head of almost every request holds, and never a secret: told apart without a search.
fn is_harmless(name: &str) -> bool {
    matches!(
        name,
        "host"
            | "user-agent"
            | "accept"
            | "accept-encoding"
            | "accept-language"
            | "connection"
            | "content-type"
            | "content-length"
            | "content-encoding"
            | "transfer-encoding"
            | "date"
            | "server"
            | "server-timing"
            | "cache-control"
            | "vary"
            | "origin"
            | "referer"
            | "expect"
            | "traceparent"
            | "x-request-id"
            | "x-gateway-provider"
            | "x-gateway-trace-id"
            | "x-gateway-request-id"
            | "x-gateway-metadata"
            | "x-gateway-custom-host"
            | "x-gateway-cache-status"
            | "x-gateway-last-used-option-index"
            | "x-gateway-retry-attempt-count"
            | "openai-organization"
            | "openai-project"
            | "openai-beta"
            | "openai-version"
            | "openai-processing-ms"
            | "anthropic-version"
            | "anthropic-beta"
    ) || name.starts_with("x-ratelimit-")
        || name.starts_with("anthropic-ratelimit-")
}

/// Whether what stands under this name is never shown. Names are in lower case.
pub fn is_secret(name: &str) -> bool {
    // A key can be a websocket's subprotocol, and an inline config holds keys.
    !is_harmless(name)
        && (TELLTALES.iter().any(|part| name.contains(part))
            || name == "sec-websocket-protocol"
            || name.ends_with("-config"))
}

/// What we ourselves sent is shown only where it is surely no secret: a header of a stored account may be anything.
pub fn is_shown_of_sent(name: &str) -> bool {
    is_harmless(name)
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
mod tests {
    use super::*;

    #[test]
    fn names_that_carry_secrets_are_known() {
        for (name, expected) in [
            ("authorization", true),
            ("proxy-authorization", true),
            ("x-api-key", true),
            ("x-goog-api-key", true),
            ("x-gateway-api-key", true),
            ("x-acme-api-key", true),
            ("x-gateway-virtual-key", true),
            ("x-gateway-client-auth", true),
            ("x-gateway-config", true),
            ("x-acme-config", true),
            ("x-gateway-aws-secret-access-key", true),
            ("x-amz-security-token", true),
            ("cookie", true),
            ("set-cookie", true),
            ("sec-websocket-protocol", true),
            ("content-type", false),
            ("x-gateway-provider", false),
            ("x-gateway-metadata", false),
            ("x-stainless-lang", false),
            ("user-agent", false),
            ("x-ratelimit-remaining-tokens", false),
        ] {
            assert_eq!(is_secret(name), expected, "{name}");
        }
    }

    #[test]
    fn a_query_keeps_its_form_and_loses_its_secrets() {
        for (sent, kept) in [
            ("/v1/x", "/v1/x"),
            ("/v1/x?a=1&key=sk-1&b", "/v1/x?a=1&key=*****&b"),
            ("/v1/x?API%2DKEY=sk-1", "/v1/x?API%2DKEY=*****"),
            ("/v1/x?model=m&X-Amz-Signature=s=t", "/v1/x?model=m&X-Amz-Signature=*****"),
        ] {
            assert_eq!(url(sent), kept);
        }
    }
}
