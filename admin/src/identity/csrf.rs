//! Whether a call that came with a cookie was meant by the page it came from. Browsers send cookies along with requests
//! that other sites make, so a call that changes something must come from our own origin and repeat a token that only
//! our own pages can have read (`GET /auth/session`).

use axum::http::{HeaderMap, HeaderValue, header};
use shared::headers::header_prefix::Aliases;

/// After the prefix: `x-gateway-csrf-token`.
const TOKEN: &str = "csrf-token";
const FETCH_SITE: &str = "sec-fetch-site";

/// Whether the request was made by a page of this origin, or by no page at all. What the browser says of the site counts
/// first; over plain HTTP it says nothing, and `Origin` must be the public address.
pub fn is_own_site(headers: &HeaderMap, public_url: &str) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let ours = url::Url::parse(public_url).map(|url| url.origin().ascii_serialization());
    ours.is_ok_and(|ours| origin == ours.as_str())
}

/// Whether the session's token was repeated.
pub fn is_repeated(headers: &HeaderMap, aliases: &Aliases, token: &str) -> bool {
    let sent = |prefix: &str| headers.get(format!("{prefix}{TOKEN}")).map(HeaderValue::as_bytes);
    let is_same = |sent: &[u8]| sent.len() == token.len() && openssl::memcmp::eq(sent, token.as_bytes());
    aliases.prefixes().filter_map(sent).any(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn another_site_is_told_by_what_browsers_say() {
        for (lines, is_own) in [
            (&[][..], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:8787")], true),
            (&[("sec-fetch-site", "same-site"), ("origin", "https://gw.test")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "https://gw.test")], true),
            (&[("origin", "https://gw.test.evil.test")], false),
            (&[("origin", "http://gw.test")], false),
            (&[("origin", "null")], false),
        ] {
            assert_eq!(is_own_site(&with(lines), "https://gw.test/below"), is_own, "{lines:?}");
        }
    }

    #[test]
    fn the_token_is_repeated_whole_under_any_prefix() {
        let aliases = Aliases::new(&["x-acme-".into()]).unwrap();
        for (lines, repeated) in [
            (&[("x-gateway-csrf-token", "abc")][..], true),
            (&[("x-acme-csrf-token", "abc")], true),
            (&[("x-gateway-csrf-token", "ab")], false),
            (&[("x-gateway-csrf-token", "")], false),
            (&[], false),
        ] {
            assert_eq!(is_repeated(&with(lines), &aliases, "abc"), repeated, "{lines:?}");
        }
    }
}
