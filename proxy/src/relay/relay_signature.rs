//! Computed credentials on the relay lane. Its bodies pass unread, but for short ones to who signs them together with the
//! head (`read_ahead`); longer ones cannot be signed. Tokens do not mind.

use crate::catalog::signing::{AccountCredential, HeadToSign, REPLACED, SignedBody, Signing};
use crate::catalog::target::Target;
use crate::engine::call::unsigned;
use crate::request::refusal::Refusal;
use http::{HeaderMap, Method, header};
use pingora_http::RequestHeader;

/// Puts the credential on a head that is otherwise complete.
pub(super) async fn put(
    signing: &Signing,
    credential: &AccountCredential,
    target: &Target,
    head: &mut RequestHeader,
    whole: Option<&[u8]>,
) -> Result<(), Refusal> {
    for name in &REPLACED {
        head.remove_header(name);
    }
    let added = {
        let texts = head.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers: Vec<(&str, &str)> = texts.collect();
        let to_sign = HeadToSign {
            method: head.method.as_str(),
            origin: &target.origin,
            path_and_query: head.uri.path_and_query().map_or("/", |place| place.as_str()),
            headers: &headers,
            body: body(head, whole),
        };
        signing.headers(credential, &to_sign).await.map_err(|error| unsigned(target, &error))?
    };
    for (name, value) in added {
        head.insert_header(name, value).map_err(|_| Refusal::internal())?;
    }
    Ok(())
}

/// Whether there will be one for this request of a client.
pub(super) async fn ready(
    signing: &Signing,
    credential: &AccountCredential,
    target: &Target,
    sent: &RequestHeader,
    whole: Option<&[u8]>,
) -> Result<(), Refusal> {
    let head = HeadToSign {
        method: sent.method.as_str(),
        origin: &target.origin,
        path_and_query: "/",
        headers: &[],
        body: body(sent, whole),
    };
    signing.headers(credential, &head).await.map(drop).map_err(|error| unsigned(target, &error))
}

fn body<'b>(head: &RequestHeader, whole: Option<&'b [u8]>) -> SignedBody<'b> {
    match whole {
        Some(whole) => SignedBody::Whole(whole),
        None if has_body(&head.method, &head.headers) => SignedBody::Unsigned,
        None => SignedBody::Whole(b""),
    }
}

fn has_body(method: &Method, headers: &HeaderMap) -> bool {
    let is_asking = matches!(*method, Method::GET | Method::HEAD | Method::DELETE);
    let length = headers.get(header::CONTENT_LENGTH).map(|length| length.as_bytes());
    match length {
        Some(length) => length != b"0",
        None => !is_asking || headers.contains_key(header::TRANSFER_ENCODING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn a_body_that_may_follow_is_not_signed_as_none() {
        for (method, headers, expected) in [
            (Method::GET, vec![], false),
            (Method::POST, vec![], true),
            (Method::POST, vec![("content-length", "0")], false),
            (Method::GET, vec![("content-length", "2")], true),
            (Method::DELETE, vec![("transfer-encoding", "chunked")], true),
        ] {
            let headers = headers.into_iter();
            let headers: HeaderMap =
                headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect();
            assert_eq!(has_body(&method, &headers), expected, "{method} {headers:?}");
        }
    }
}
