//! Cookies that a provider sets under names of ours. A browser would keep them for our origin, and send them to us as our own.

use http::{HeaderMap, HeaderValue, header};

/// How the names of our cookies begin, in small letters.
const OURS: [&str; 6] =
    ["__host-gateway_", "__secure-gateway_", "gateway_", "__host-mcp_oauth_", "__secure-mcp_oauth_", "mcp_oauth_"];

/// Takes them out of a provider's head. Most heads set none, which costs one look.
pub fn drop_own_cookies(head: &mut HeaderMap) {
    if !head.contains_key(header::SET_COOKIE) {
        return;
    }
    let passing: Vec<HeaderValue> =
        head.get_all(header::SET_COOKIE).iter().filter(|line| !is_ours(line.as_bytes())).cloned().collect();
    head.remove(header::SET_COOKIE);
    for line in passing {
        head.append(header::SET_COOKIE, line);
    }
}

/// A cookie without a name is sent as its value, which may begin with a name.
fn is_ours(line: &[u8]) -> bool {
    let is_filler = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'=';
    let begins = line.iter().position(|byte| !is_filler(byte)).unwrap_or(line.len());
    let name = line[begins..].to_ascii_lowercase();
    OURS.iter().any(|ours| name.starts_with(ours.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_ours_are_taken_out_however_they_are_written_and_others_stay() {
        for (line, stays) in [
            ("session=1", true),
            ("__cf_bm=1; path=/", true),
            ("a=gateway_session", true),
            ("__Host-gateway_session=1; Path=/; Secure", false),
            ("__HOST-GATEWAY_SESSION=1", false),
            ("gateway_login=1", false),
            (" gateway_session=1", false),
            ("=__Host-gateway_session=1", false),
            ("= =gateway_session", false),
            ("mcp_oauth_0123456789abcdef=1; Path=/mcp-oauth", false),
            ("MCP_OAuth_0123456789abcdef=1", false),
        ] {
            let mut head = HeaderMap::new();
            head.append(header::SET_COOKIE, HeaderValue::from_static("other=1"));
            head.append(header::SET_COOKIE, HeaderValue::from_str(line).unwrap());
            drop_own_cookies(&mut head);
            assert_eq!(head.get_all(header::SET_COOKIE).iter().count(), 1 + usize::from(stays), "{line}");
        }
        let mut none = HeaderMap::new();
        drop_own_cookies(&mut none);
        assert!(none.is_empty());
    }
}
