//! Connections that a client wants to turn into something else. A realtime session is read while it passes, and its limits
//! are asked for each response; what is said on any other websocket nobody here can read. Where the gateway pays, or somebody
//! counts, such a connection is refused before it begins, with a status after which clients go on without it.

use crate::engine::KnownRequest;
use crate::limits::Unit;
use crate::limits::admission::ApplicableLimit;
use crate::request::headers::GatewayHeaders;
use crate::request::past_the_gateway::leads_past_the_gateway;
use crate::request::realtime_head;
use crate::request::refusal::Refusal;
use http::header;
use pingora_http::RequestHeader;

/// Whether this asks for a connection whose bytes nobody can read.
pub(super) fn is_opaque(head: &RequestHeader, path: &str) -> bool {
    is_websocket(head) && !realtime_head::is_session(path)
}

/// Other protocols are not passed on at all.
pub(super) fn is_websocket(head: &RequestHeader) -> bool {
    let asked = head.headers.get_all(header::UPGRADE).iter();
    let mut tokens = asked.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Where any of these limits counts what is used, and not calls alone, nothing may pass that nobody here can count: a
/// connection whose bytes nobody reads, a session beside the gateway, a credential for one.
pub(super) fn check_counted(head: &RequestHeader, path: &str, wanted: &[ApplicableLimit]) -> Result<(), Refusal> {
    if wanted.iter().all(|wanted| wanted.limit.counter.unit() == Unit::Requests) {
        return Ok(());
    }
    match () {
        () if is_opaque(head, path) => Err(Refusal::upgrade_refused()),
        () if leads_past_the_gateway(&head.method, path) => Err(Refusal::leads_past_the_gateway()),
        () => Ok(()),
    }
}

/// Before it is known where the request goes: a credential of the gateway's may be used for it.
pub fn check_upgrade(
    path: &str,
    head: &RequestHeader,
    headers: &GatewayHeaders<'_>,
    known: &KnownRequest,
) -> Result<(), Refusal> {
    match is_opaque(head, path) && crate::engine::router::may_be_stored(&known.plan, headers) {
        true => Err(Refusal::upgrade_refused()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_session_is_a_websocket_that_can_be_read() {
        for (path, upgrade, expected) in [
            ("/responses", Some("websocket"), true),
            ("/responses", Some("h2c, WebSocket"), true),
            ("/responses", Some("h2c"), false),
            ("/responses", None, false),
            ("/realtime", Some("websocket"), false),
            ("/realtime/", Some("websocket"), false),
            ("/realtime/x", Some("websocket"), true),
            ("/v1beta/models/m:streamGenerateContent", Some("websocket"), true),
        ] {
            let mut head = RequestHeader::build("GET", b"/x", None).unwrap();
            if let Some(upgrade) = upgrade {
                head.insert_header(header::UPGRADE, upgrade).unwrap();
            }
            assert_eq!(is_opaque(&head, path), expected, "{path} {upgrade:?}");
        }
    }
}
