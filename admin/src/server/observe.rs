//! Around every request: its id, the client's address, one log line, metrics, and a 500 in shape when a handler
//! panics. Errors get their body here, because only here their request has an id.

use crate::app::App;
use crate::http::ErrorExtension;
use crate::identity::call::ClientInfo;
use crate::server::gate::{DryRunExtension, GateOutcome, WarningsExtension};
use crate::server::panics::shielded;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus::IntGauge;
use shared::headers::client_ip::{COUNTRY, client_ip, is_trusted};
use shared::headers::header_prefix::{Aliases, PREFIX};
use shared::telemetry::Brief;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;
use tracing::Instrument as _;
use uuid::Uuid;

const REQUEST_ID: &str = "request-id";
const TRACE_ID: &str = "trace-id";
const WARNINGS: &str = "warnings";
const DRY_RUN: &str = "dry-run";
/// Clients and proxies refuse heads that are longer than a few of these.
const MAX_WARNINGS: usize = 2048;

const PROVIDERS_OWN: &str = "this path is the gateway's own although the request names a provider; the provider's own path of \
                             this name begins with /v1/proxy/ in place of /v1/";

/// Facts about a request that outlive it.
struct ObservedRequest {
    id: Uuid,
    trace: HeaderValue,
    alias: Option<String>,
    client: IpAddr,
    country: Option<String>,
    method: Method,
    path: String,
    /// It names a provider, as only calls of models do.
    names_provider: bool,
    start: Instant,
}

pub async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let observed = ObservedRequest::from_request(&request, &app);
    request.extensions_mut().insert(observed.seen());
    let span = tracing::info_span!("request", request_id = %observed.id);
    let in_flight = InFlight::enter(&app.metrics.in_flight);
    let answer = shielded(next.run(request)).instrument(span).await;
    drop(in_flight);
    let response = answer.unwrap_or_else(|bug| {
        app.metrics.panics.inc();
        bug.into_response()
    });
    let response = observed.completed(response);
    observed.recorded(&app, &response);
    response
}

/// Counts a request also when its client leaves and the future is dropped.
struct InFlight<'a>(&'a IntGauge);

impl<'a> InFlight<'a> {
    fn enter(gauge: &'a IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl ObservedRequest {
    fn from_request(request: &Request, app: &App) -> Self {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        // Without a socket (in tests) there is nobody to trust.
        let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let headers = request.headers();
        let is_trusted = is_trusted(peer, &app.trusted_proxies);
        let id = is_trusted.then(|| given_id(headers)).flatten().unwrap_or_else(Uuid::new_v4);
        Self {
            trace: trace_id(headers).unwrap_or_else(|| value(&id.to_string())),
            alias: app.aliases.used_in(headers).map(str::to_owned),
            client: client_ip(peer, headers, &app.trusted_proxies),
            country: is_trusted.then(|| country(headers)).flatten(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            names_provider: names_provider(headers, &app.aliases),
            start: Instant::now(),
            id,
        }
    }

    fn seen(&self) -> ClientInfo {
        ClientInfo { request_id: self.id, client_ip: self.client, country: self.country.clone() }
    }

    /// Adds the body of an error and our headers, also under the alias the caller used.
    fn completed(&self, mut response: Response) -> Response {
        if let Some(ErrorExtension(refused)) = response.extensions().get().cloned() {
            let (body, kind) = match is_scim(&self.path) {
                true => (refused.scim_body(), "application/scim+json"),
                false => (refused.body(&self.id.to_string(), self.hint(response.status())), "application/json"),
            };
            let body = body.to_string();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            // The inner router measured the empty body that an error travels with.
            headers.remove(header::CONTENT_LENGTH);
            *response.body_mut() = Body::from(body);
        }
        let warnings =
            response.extensions().get::<WarningsExtension>().and_then(|WarningsExtension(all)| in_header(all));
        let mut ours = vec![(REQUEST_ID, value(&self.id.to_string())), (TRACE_ID, self.trace.clone())];
        ours.extend(warnings.map(|warnings| (WARNINGS, warnings)));
        let is_dry_run = response.extensions().get::<DryRunExtension>().is_some();
        ours.extend(is_dry_run.then_some((DRY_RUN, HeaderValue::from_static("true"))));
        for prefix in [Some(PREFIX), self.alias.as_deref()].into_iter().flatten() {
            for (name, value) in &ours {
                if let Ok(name) = HeaderName::try_from(format!("{prefix}{name}")) {
                    response.headers_mut().insert(name, value.clone());
                }
            }
        }
        response
    }

    /// For whoever meant the provider's own path of the same name.
    fn hint(&self, status: StatusCode) -> Option<&'static str> {
        use StatusCode as Status;
        let may_be_meant =
            [Status::BAD_REQUEST, Status::FORBIDDEN, Status::NOT_FOUND, Status::METHOD_NOT_ALLOWED].contains(&status);
        (self.names_provider && may_be_meant && self.path.starts_with("/v1/")).then_some(PROVIDERS_OWN)
    }

    fn recorded(&self, app: &App, response: &Response) {
        let passage = response.extensions().get::<GateOutcome>();
        let refusal = response.extensions().get::<ErrorExtension>();
        let operation = passage.map_or("none", |passage| passage.operation.path);
        let key = passage.and_then(|passage| passage.key.as_ref());
        let (status, method) = (response.status().as_u16(), known(&self.method));
        let elapsed = self.start.elapsed();
        app.metrics.requests.with_label_values(&[method, operation, response.status().as_str()]).inc();
        app.metrics.duration.with_label_values(&[method]).observe(elapsed.as_secs_f64());
        if let Some(ErrorExtension(refused)) = refusal {
            app.metrics.refused.with_label_values(&[refused.code()]).inc();
        }
        tracing::info!(
            request_id = %self.id,
            method = %Brief(self.method.as_str()),
            path = %Brief(&self.path),
            status,
            duration_ms = elapsed.as_secs_f64() * 1000.0,
            client_ip = %self.client,
            operation,
            api_key_id = key.map(|key| tracing::field::display(key.id)),
            organisation_id = key.map(|key| tracing::field::display(key.organisation_id)),
            error_code = refusal.map(|refusal| refusal.0.code()),
            reason = refusal.map(|refusal| tracing::field::display(Brief(&refusal.0))),
            "request"
        );
    }
}

/// Whether a path is the protocol's: below `/scim` only the mappings and the list of groups are ours.
fn is_scim(path: &str) -> bool {
    let first = path.strip_prefix("/v1/scim/").and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| !matches!(first, "workspaces" | "groups"))
}

/// The id our own proxy gave the request (it replaces a client's), so that one id finds it in both logs.
fn given_id(headers: &HeaderMap) -> Option<Uuid> {
    headers.get("x-request-id")?.to_str().ok()?.parse().ok()
}

/// The two letters that some proxies add.
fn country(headers: &HeaderMap) -> Option<String> {
    let given = COUNTRY.iter().find_map(|name| headers.get(*name));
    let country = given?.to_str().ok()?;
    (country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_alphabetic())).then(|| country.to_ascii_uppercase())
}

fn names_provider(headers: &HeaderMap, aliases: &Aliases) -> bool {
    headers.keys().any(|name| {
        aliases.suffix(name.as_str()).is_some_and(|(suffix, _)| ["provider", "virtual-key"].contains(&suffix))
    })
}

fn trace_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get("x-gateway-trace-id")?;
    let is_plain = (1..=128).contains(&given.len()) && given.as_bytes().iter().all(u8::is_ascii_graphic);
    is_plain.then(|| given.clone())
}

/// Warnings in one line of plain ASCII; none when there are none.
fn in_header(warnings: &[String]) -> Option<HeaderValue> {
    let line = warnings.join(" | ");
    let plain = line.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' });
    let plain: String = plain.take(MAX_WARNINGS).collect();
    (!plain.is_empty()).then(|| HeaderValue::from_str(&plain).ok()).flatten()
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
}

/// A client may invent methods; a metric's label may not.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ApiError;
    use http_body_util::BodyExt as _;

    fn observed(alias: Option<&str>) -> ObservedRequest {
        ObservedRequest {
            id: "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11".parse().unwrap(),
            trace: HeaderValue::from_static("trace-1"),
            alias: alias.map(str::to_owned),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            country: None,
            method: Method::GET,
            path: "/v1/configs".into(),
            names_provider: false,
            start: Instant::now(),
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_with_a_500_in_shape() {
        let bug = shielded(async { panic!("a bug") }).await.unwrap_err();
        let response = observed(None).completed(bug.into_response());
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()["content-type"], "application/json");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["data"]["errorCode"], "AB04");
        assert_eq!(body["request_id"], "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11");
        assert!(!body.to_string().contains("a bug"), "{body}");
    }

    #[test]
    fn our_headers_are_repeated_under_the_alias_that_was_used() {
        let response = observed(Some("x-acme-")).completed(ApiError::NotBuilt.into_response());
        for prefix in ["x-gateway-", "x-acme-"] {
            assert_eq!(response.headers()[format!("{prefix}trace-id")], "trace-1");
            assert_eq!(response.headers()[format!("{prefix}request-id")], "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11");
        }
    }

    #[test]
    fn warnings_are_one_bounded_line_under_both_prefixes() {
        let mut response = ApiError::NotBuilt.into_response();
        let all = ["a: unknown\r\nx: 1".to_owned(), "ä".to_owned()];
        response.extensions_mut().insert(WarningsExtension(all.into()));
        let response = observed(Some("x-acme-")).completed(response);
        for prefix in ["x-gateway-", "x-acme-"] {
            assert_eq!(response.headers()[format!("{prefix}warnings")], "a: unknown??x: 1 | ?");
        }
        assert!(in_header(&[]).is_none());
        assert_eq!(in_header(&["x".repeat(1 << 20)]).unwrap().len(), MAX_WARNINGS);
    }

    #[test]
    fn a_trace_id_is_kept_only_when_it_is_short_and_plain() {
        let long = "x".repeat(129);
        for (given, kept) in [("trace-1", true), ("with space", false), ("", false), (long.as_str(), false)] {
            let mut headers = HeaderMap::new();
            headers.insert("x-gateway-trace-id", HeaderValue::from_str(given).unwrap());
            assert_eq!(trace_id(&headers).is_some(), kept, "{given}");
        }
    }

    #[test]
    fn only_a_uuid_is_taken_as_a_given_id() {
        for (given, kept) in [("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", true), ("forged\u{a0}", false), ("1", false)] {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", HeaderValue::from_str(given).unwrap());
            assert_eq!(given_id(&headers).is_some(), kept, "{given}");
        }
    }
}
