//! The headers that every answer carries, whoever wrote its body: which request it was, who answered and after how many
//! tries, what is left of its limits, how long it took.

use super::server_timing::{millis, timing};
use super::{RoutingState, Visit};
use crate::net::head_lines::HeadLines;
use crate::net::header_text::HeaderText;
use crate::net::own_cookies::drop_own_cookies;
use crate::request::headers::PREFIX;
use crate::routing::warnings::joined;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;

/// Read once at compile time: a name costs as much to read as to insert.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-gateway-request-id");
static TRACE_ID: HeaderName = HeaderName::from_static("x-gateway-trace-id");
static PROVIDER: HeaderName = HeaderName::from_static("x-gateway-provider");
/// The name that load balancers, log systems and SDKs look for.
static COMMON_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-gateway-attempt-count");
static WARNINGS: HeaderName = HeaderName::from_static("x-gateway-warnings");
/// Obeyed by the SDKs of OpenAI and Anthropic.
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
static RETRY_COUNT: HeaderName = HeaderName::from_static("x-gateway-retry-attempt-count");
static OPTION: HeaderName = HeaderName::from_static("x-gateway-last-used-option-index");
static CACHE_STATUS: HeaderName = HeaderName::from_static("x-gateway-cache-status");
static GUARDRAILS: HeaderName = HeaderName::from_static("x-gateway-guardrails");
static COST: HeaderName = HeaderName::from_static("x-gateway-cost");
static COST_STATE: HeaderName = HeaderName::from_static("x-gateway-cost-state");
static OVERHEAD: HeaderName = HeaderName::from_static("x-gateway-overhead-ms");
static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// About as many as there are, without those of limits.
const STAMPS: usize = 15;
/// What names of headers about rate limits begin with.
const LIMITS: &str = "x-ratelimit-";

impl Visit {
    /// The headers every answer of ours carries, whoever wrote its body.
    pub fn stamp(&mut self, head: &mut ResponseHeader) {
        self.stamps(|name, text| drop(head.insert_header(name, text.to_value())));
    }

    /// The same for a provider's own head on the relay lane, which keeps what it says of its limits and times: ours stand
    /// beside them under our prefix, and under the common names only where it says nothing. How the provider spells its
    /// names is given up: as plain parts, each header costs half.
    pub(super) fn stamp_relayed(&mut self, head: &mut ResponseHeader, is_provider: bool) {
        let reason = own_reason(head);
        let (empty, ()) = http::Response::new(()).into_parts();
        let mut parts: Parts = std::mem::replace(head, empty.into()).into();
        self.stamp_relayed_headers(&mut parts.headers);
        if is_provider {
            drop_own_cookies(&mut parts.headers);
        }
        *head = parts.into();
        if reason.is_some() {
            // It was one when it came, so it is one now.
            let _ = head.set_reason_phrase(reason.as_deref());
        }
    }

    fn stamp_relayed_headers(&mut self, headers: &mut HeaderMap) {
        headers.reserve(STAMPS);
        let has_limits = headers.keys().any(|name| name.as_str().starts_with(LIMITS));
        let has_timing = headers.contains_key(&SERVER_TIMING);
        let has_id = headers.contains_key(&COMMON_REQUEST_ID);
        let alias = self.request.alias.clone();
        self.stamps(|name, text| {
            let is_limit = name.as_str().starts_with(LIMITS);
            let is_timing = *name == SERVER_TIMING;
            if is_limit || is_timing {
                let suffix = name.as_str().strip_prefix("x-").unwrap_or(name.as_str());
                for prefix in [Some(PREFIX), alias.as_deref()].into_iter().flatten() {
                    if let Ok(prefixed) = HeaderName::try_from([prefix, suffix].concat()) {
                        headers.insert(prefixed, text.to_value());
                    }
                }
            }
            let is_id = *name == COMMON_REQUEST_ID;
            if !(is_limit && has_limits || is_timing && has_timing || is_id && has_id) {
                headers.insert(name, text.to_value());
            }
        });
    }

    /// The same for a head that is still plain parts. A provider's own `x-request-id` stays: its support asks for it.
    pub fn stamp_map(&mut self, head: &mut HeaderMap) {
        let has_id = head.contains_key(&COMMON_REQUEST_ID);
        head.reserve(STAMPS);
        self.stamps(|name, text| {
            if !(has_id && *name == COMMON_REQUEST_ID) {
                head.insert(name, text.to_value());
            }
        });
    }

    /// The same for an answer that has none of them.
    pub fn stamp_lines(&mut self, lines: &mut HeadLines) {
        self.stamps(|name, text| lines.push(name, text));
    }

    fn stamps(&mut self, mut put: impl FnMut(&HeaderName, HeaderText<'_>)) {
        let started = self.request.started;
        let own = self.answer.head_after.unwrap_or_else(|| started.elapsed()).saturating_sub(self.routing.upstream);
        self.request.trace_id();
        let request_id = HeaderText::Bytes(self.request.id().as_bytes());
        let alias = self.request.alias.as_deref();
        let mut ours = |name: &HeaderName, text: HeaderText<'_>| {
            if let Some(alias) = alias
                && let Ok(aliased) = HeaderName::try_from([alias, &name.as_str()[PREFIX.len()..]].concat())
            {
                put(&aliased, text);
            }
            put(name, text);
        };
        ours(&REQUEST_ID, request_id);
        if let Some(trace) = &self.request.trace_id {
            ours(&TRACE_ID, HeaderText::Value(trace));
        }
        if let Some(provider) = &self.routing.provider {
            ours(&PROVIDER, HeaderText::Value(provider));
            ours(&RETRY_COUNT, count(self.routing.retries));
            ours(&ATTEMPT_COUNT, attempts(self.routing.attempts));
            ours(&OPTION, HeaderText::Value(&self.routing.option));
            ours(&CACHE_STATUS, HeaderText::Static(self.routing.cache.status.name()));
        }
        // The status of what is relayed stays the provider's.
        if self.routing.is_marked || self.routing.is_body_marked {
            ours(&GUARDRAILS, HeaderText::Static("failed"));
        }
        if let Some(cost) = &self.answer.cost {
            if let Some(dollars) = cost.dollars() {
                ours(&COST, HeaderText::Bytes(dollars.written()));
            }
            ours(&COST_STATE, HeaderText::Static(cost.state()));
            ours(&OVERHEAD, HeaderText::Bytes(millis(own).written()));
        }
        if let Some(warnings) = warnings(&self.routing) {
            ours(&WARNINGS, HeaderText::Value(&warnings));
        }
        put(&COMMON_REQUEST_ID, request_id);
        if has_given_up(&self.routing, self.answer.status) {
            put(&SHOULD_RETRY, HeaderText::Static("false"));
        }
        if let Some(admission) = &self.observer.admission {
            admission.shown.stamp(&mut put);
        }
        put(&SERVER_TIMING, HeaderText::Bytes(timing(own, self.routing.upstream).written()));
        if self.request.is_from_browser {
            put(&header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderText::Static("*"));
            put(&header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderText::Static("*"));
        }
    }
}

/// The words beside the status, where they are not the usual ones.
fn own_reason(head: &ResponseHeader) -> Option<String> {
    let reason = head.get_reason_phrase()?;
    (head.status.canonical_reason() != Some(reason)).then(|| reason.to_owned())
}

/// With what the target could not be told.
fn warnings(routing: &RoutingState) -> Option<HeaderValue> {
    let warnings = routing.warnings.clone();
    match &routing.dropped {
        None => warnings,
        Some(names) => joined(warnings, &format!("not sent, as the provider's format has no place for it: {names}")),
    }
}

/// Whether the gateway tried in vain as often as it may: a client that tries again would multiply that.
fn has_given_up(routing: &RoutingState, status: u16) -> bool {
    status >= 400 && (routing.retries < 0 || routing.attempts > 1)
}

fn attempts(made: u8) -> HeaderText<'static> {
    match made {
        1 => HeaderText::Static("1"),
        other => HeaderText::Number(other.into()),
    }
}

fn count(retries: i8) -> HeaderText<'static> {
    match retries {
        0 => HeaderText::Static("0"),
        // Tried in vain as often as it may be.
        i8::MIN..=-1 => HeaderText::Static("-1"),
        other => HeaderText::Number(other.unsigned_abs().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_own_limits_and_times_stay_beside_ours() {
        let stamped = |sent: &[(&'static str, &'static str)]| {
            let mut head = ResponseHeader::build(200, None).unwrap();
            for (name, value) in sent {
                head.insert_header(*name, *value).unwrap();
            }
            let mut visit = Visit::begin();
            visit.request.alias = Some("x-acme-".into());
            visit.stamp_relayed(&mut head, true);
            head.headers.clone()
        };
        let own = stamped(&[("server-timing", "db;dur=1"), ("x-ratelimit-limit-requests", "7")]);
        assert_eq!(own["server-timing"], "db;dur=1");
        assert_eq!(own["x-ratelimit-limit-requests"], "7");
        assert!(own["x-gateway-server-timing"].to_str().unwrap().starts_with("gateway;dur="));
        assert_eq!(own["x-acme-server-timing"], own["x-gateway-server-timing"]);
        let plain = stamped(&[]);
        assert_eq!(plain["server-timing"], plain["x-gateway-server-timing"]);
        assert_eq!(plain["x-request-id"], plain["x-gateway-request-id"]);
        assert_eq!(stamped(&[("x-request-id", "req_1")])["x-request-id"], "req_1");
    }

    #[test]
    fn a_providers_status_line_and_repeated_headers_stay() {
        let mut head = ResponseHeader::build(429, None).unwrap();
        head.set_reason_phrase(Some("Slow Down")).unwrap();
        for cookie in ["a=1", "b=2"] {
            head.append_header("Set-Cookie", cookie).unwrap();
        }
        Visit::begin().stamp_relayed(&mut head, true);
        assert_eq!((head.status.as_u16(), head.get_reason_phrase()), (429, Some("Slow Down")));
        assert_eq!(head.headers.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert!(head.headers.contains_key("x-gateway-request-id"));
    }

    #[test]
    fn what_was_dropped_stands_beside_what_was_ignored() {
        let warnings = |warning: Option<&str>, dropped: &[&str]| {
            let mut visit = Visit::begin();
            warning.into_iter().for_each(|text| visit.routing.warn(text));
            visit.drops(&dropped.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            let mut head = HeaderMap::new();
            visit.stamp_map(&mut head);
            head.get("x-gateway-warnings").map(|value| value.to_str().unwrap().to_owned())
        };
        let dropped = "not sent, as the provider's format has no place for it: n, seed";
        assert_eq!(warnings(None, &[]), None);
        assert_eq!(warnings(None, &["n", "seed"]).as_deref(), Some(dropped));
        assert_eq!(warnings(Some("a: b"), &["n", "seed"]), Some(format!("a: b; {dropped}")));
    }

    #[test]
    fn a_client_is_told_not_to_try_again_what_was_tried_in_vain() {
        for (retries, attempts, status, has_given_up) in [
            (0, 1, 500, false),
            (0, 0, 429, false),
            (2, 3, 200, false),
            (-1, 3, 500, true),
            (-1, 1, 500, true),
            (0, 2, 503, true),
        ] {
            let mut visit = Visit::begin();
            (visit.routing.retries, visit.routing.attempts, visit.answer.status) = (retries, attempts, status);
            let mut head = HeaderMap::new();
            visit.stamp_map(&mut head);
            assert_eq!(head.contains_key("x-should-retry"), has_given_up, "{retries} {attempts} {status}");
        }
    }

    /// A header of answers that nobody documents is as bad as one that nobody sends.
    #[test]
    fn the_document_lists_the_headers_that_answers_have_and_no_others() {
        let sources = [include_str!("stamp.rs"), include_str!("../request/limit_headers.rs")];
        let code = sources.iter().map(|source| source.split("#[cfg(test)]").next().unwrap());
        let written = code.flat_map(|code| code.split("HeaderName::from_static(\"").skip(1));
        let mut written: Vec<&str> = written.map(|rest| rest.split('"').next().unwrap()).collect();
        let mut listed: Vec<&str> = shared::headers::gateway_headers::RESPONSE.iter().map(|one| one.suffix).collect();
        written.sort_unstable();
        listed.sort_unstable();
        assert_eq!(written, listed);
    }
}
