//! What the relay lane changes on the way: the address, the credential, and the headers that are ours. Bodies,
//! encodings and the order of everything else stay as they came, both ways.

use super::upgrade;
use crate::catalog::target::Target;
use crate::engine::prepare::{Unsigned, authenticate};
use crate::request::headers::{Aliases, is_internal};
use crate::request::realtime_head;
use crate::request::refusal::Refusal;
use http::{HeaderName, HeaderValue, header};
use ipnet::IpNet;
use pingora_http::RequestHeader;
use shared::headers::client_ip::{COUNTRY, is_trusted};
use std::net::IpAddr;

/// Edits a copy of the client's head for the provider.
pub fn towards_provider(
    head: &mut RequestHeader,
    target: &Target,
    path_and_query: &str,
    aliases: &Aliases,
) -> Result<Unsigned, Refusal> {
    let base = target.origin.base_path();
    let uri = format!("{base}{path_and_query}");
    head.set_uri(uri.parse().map_err(|_| Refusal::not_found())?);
    let meant = meant_for_providers(head, aliases);
    let ours: Vec<HeaderName> = head.headers.keys().filter(|name| aliases.is_ours(name)).cloned().collect();
    for name in ours {
        head.remove_header(&name);
    }
    for (name, value) in meant {
        put(head, name, value)?;
    }
    head.remove_header(&header::COOKIE);
    if !upgrade::is_websocket(head) {
        head.remove_header(&header::UPGRADE);
    }
    // A compressed session could not be listened to.
    head.remove_header(&header::SEC_WEBSOCKET_EXTENSIONS);
    without_key(head)?;
    one_length(head)?;
    put(head, header::HOST, target.origin.authority_value().clone())?;
    for (name, value) in target.headers.iter().chain(&target.provider.row.headers) {
        if !head.headers.contains_key(name) {
            put(head, name.clone(), value.clone())?;
        }
    }
    authenticate(head, target)
}

/// What the provider is told by a header of ours, under its own name for it.
fn meant_for_providers(head: &RequestHeader, aliases: &Aliases) -> Vec<(HeaderName, HeaderValue)> {
    const PROVIDER_HEADERS: [&str; 5] =
        ["openai-organization", "openai-project", "openai-beta", "anthropic-beta", "anthropic-version"];
    let named = head.headers.iter().filter_map(|(name, value)| {
        let (suffix, _) = aliases.suffix(name.as_str())?;
        let name = PROVIDER_HEADERS.into_iter().find(|known| *known == suffix)?;
        Some((HeaderName::from_static(name), value.clone()))
    });
    named.collect()
}

/// Of what is asked for without a body: one that a client sends all the same was judged by nobody, and goes nowhere.
pub(super) fn without_body(head: &mut RequestHeader) {
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONTENT_TYPE, header::EXPECT] {
        head.remove_header(&name);
    }
}

/// A key among a websocket's subprotocols is the gateway's, or has become the credential.
fn without_key(head: &mut RequestHeader) -> Result<(), Refusal> {
    let sent: Vec<HeaderValue> = head.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().cloned().collect();
    if sent.iter().all(|value| realtime_head::key(value).is_none()) {
        return Ok(());
    }
    head.remove_header(&header::SEC_WEBSOCKET_PROTOCOL);
    for value in sent.iter().filter_map(realtime_head::without_key) {
        head.append_header(header::SEC_WEBSOCKET_PROTOCOL, value).map_err(|_| Refusal::internal())?;
    }
    Ok(())
}

/// Edits a copy of the client's head for the admin service, which authenticates by itself. Only this process may say
/// where the request came from and what its id is.
pub fn towards_admin(
    head: &mut RequestHeader,
    client: Option<IpAddr>,
    trusted: &[IpNet],
    request_id: &HeaderValue,
    aliases: &Aliases,
) -> Result<(), Refusal> {
    let pretended = |name: &HeaderName| aliases.suffix(name.as_str()).is_some_and(|(suffix, _)| is_internal(suffix));
    let internal: Vec<HeaderName> = head.headers.keys().filter(|name| pretended(name)).cloned().collect();
    for name in internal {
        head.remove_header(&name);
    }
    if !client.is_some_and(|client| is_trusted(client, trusted)) {
        for name in COUNTRY {
            head.remove_header(name);
        }
    }
    one_length(head)?;
    if let Some(client) = client {
        put(head, HeaderName::from_static("x-forwarded-for"), forwarded_for(head, client)?)?;
    }
    put(head, HeaderName::from_static("x-request-id"), request_id.clone())
}

/// Pingora takes `56, 56` and two equal lines for what they mean, and would pass them on; another reader may not.
fn one_length(head: &mut RequestHeader) -> Result<(), Refusal> {
    let Some(sent) = head.headers.get(header::CONTENT_LENGTH) else { return Ok(()) };
    let first = sent.to_str().ok().and_then(|text| text.split(',').next()).and_then(|text| text.trim().parse().ok());
    let length: u64 = first.ok_or_else(Refusal::internal)?;
    put(head, header::CONTENT_LENGTH, length.into())
}

/// A body that has a length gets another.
pub fn set_length(head: &mut RequestHeader, length: impl Fn(u64) -> u64) -> Result<(), Refusal> {
    let sent = head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match sent.and_then(|text| text.parse().ok()) {
        Some(before) => put(head, header::CONTENT_LENGTH, length(before).into()),
        None => Ok(()),
    }
}

fn forwarded_for(head: &RequestHeader, client: IpAddr) -> Result<HeaderValue, Refusal> {
    let given = head.headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let hops: Vec<String> = given.map(str::to_owned).chain([client.to_string()]).collect();
    HeaderValue::from_str(&hops.join(", ")).map_err(|_| Refusal::internal())
}

fn put(head: &mut RequestHeader, name: HeaderName, value: HeaderValue) -> Result<(), Refusal> {
    head.insert_header(name, value).map(drop).map_err(|_| Refusal::internal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_learns_the_peer_behind_what_the_client_claims_and_no_internal_header() {
        let mut head = RequestHeader::build("GET", b"/v1/x", None).unwrap();
        for (name, value) in [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-request-id", "forged"),
            ("x-gateway-default-input-guardrails", "[]"),
            ("x-acme-default-input-guardrails", "[]"),
            ("x-gateway-api-key", "k"),
        ] {
            head.append_header(name, value).unwrap();
        }
        let aliases = Aliases::new(&["x-acme-".into()]).unwrap();
        let id = HeaderValue::from_static("id");
        towards_admin(&mut head, Some("10.0.0.9".parse().unwrap()), &[], &id, &aliases).unwrap();
        assert_eq!(head.headers["x-forwarded-for"], "6.6.6.6, 10.0.0.9");
        assert_eq!(head.headers["x-request-id"], "id");
        assert_eq!(head.headers["x-gateway-api-key"], "k");
        assert!(!head.headers.contains_key("x-gateway-default-input-guardrails"));
        assert!(!head.headers.contains_key("x-acme-default-input-guardrails"));
    }

    #[test]
    fn a_country_is_passed_on_from_trusted_peers_alone() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        for (peer, is_believed) in [(Some("10.0.0.9"), true), (Some("192.0.2.1"), false), (None, false)] {
            for name in COUNTRY {
                let mut head = RequestHeader::build("GET", b"/v1/x", None).unwrap();
                head.insert_header(name, "DE").unwrap();
                let peer = peer.map(|peer| peer.parse().unwrap());
                towards_admin(&mut head, peer, &trusted, &HeaderValue::from_static("id"), &Aliases::default()).unwrap();
                assert_eq!(head.headers.contains_key(name), is_believed, "{name} from {peer:?}");
            }
        }
    }
}
