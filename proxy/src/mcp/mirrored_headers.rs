//! Headers that say again what the body says, as newer revisions have them: `mcp-method` and `mcp-name`. A server may act on
//! either, so they must agree with the body; what goes on is written anew from what was judged.

use super::client_message::ClientMessage;
use super::json_rpc::Fault;
use http::{HeaderMap, HeaderName, HeaderValue};
use openssl::base64::{decode_block, encode_block};

pub static METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// As the protocol has it.
const MISMATCH: i64 = -32020;

/// What a client says twice. The server gets no more: that one is missing is for it to refuse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mirrored {
    pub method: bool,
    pub name: bool,
}

/// An error where a header says something else than the body.
pub fn mirrored(headers: &HeaderMap, message: &ClientMessage) -> Result<Mirrored, Fault> {
    let mismatch = |name: &HeaderName| Fault::new(MISMATCH, format!("the header {name} does not agree with the body"));
    let mut methods = headers.get_all(&METHOD).iter();
    let mut names = headers.get_all(&NAME).iter();
    if methods.any(|method| method.as_bytes() != message.method.as_bytes()) {
        return Err(mismatch(&METHOD));
    }
    if let Some(called) = message.asked.call()
        && names.any(|name| decoded(name).as_deref() != Some(called))
    {
        return Err(mismatch(&NAME));
    }
    Ok(Mirrored { method: headers.contains_key(&METHOD), name: headers.contains_key(&NAME) })
}

/// A value in letters that a header may hold; others are in base64, and marked so.
pub fn encoded(value: &str) -> Option<HeaderValue> {
    let is_plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && value.trim() == value;
    match is_plain && !value.starts_with("=?base64?") {
        true => HeaderValue::try_from(value).ok(),
        false => HeaderValue::try_from(format!("=?base64?{}?=", encode_block(value.as_bytes()))).ok(),
    }
}

fn decoded(value: &HeaderValue) -> Option<String> {
    let value = value.to_str().ok()?;
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(text) => String::from_utf8(decode_block(text).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::parse;
    use bytes::Bytes;

    #[test]
    fn what_headers_say_must_agree_with_the_body() {
        let body = Bytes::from_static(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"écho\"}}".as_bytes(),
        );
        let message = parse(&body, false).unwrap().messages.remove(0);
        let name = encoded("écho").unwrap();
        assert_eq!(name, "=?base64?w6ljaG8=?=");
        for (pairs, expected) in [
            (vec![], Ok((false, false))),
            (vec![(&METHOD, HeaderValue::from_static("tools/call")), (&NAME, name.clone())], Ok((true, true))),
            (vec![(&METHOD, HeaderValue::from_static("tools/call"))], Ok((true, false))),
            (vec![(&METHOD, HeaderValue::from_static("tools/list"))], Err(MISMATCH)),
            (vec![(&NAME, HeaderValue::from_static("delete"))], Err(MISMATCH)),
            (vec![(&NAME, name.clone()), (&NAME, HeaderValue::from_static("delete"))], Err(MISMATCH)),
            (vec![(&NAME, HeaderValue::from_static("=?base64?!?="))], Err(MISMATCH)),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in &pairs {
                headers.append((*name).clone(), value.clone());
            }
            let found = mirrored(&headers, &message).map(|found| (found.method, found.name));
            assert_eq!(found.map_err(|fault| fault.code), expected, "{pairs:?}");
        }
        assert_eq!(encoded("echo").unwrap(), "echo");
    }
}
