//! Why the gateway answered a request itself: status, machine-readable code, sentence, and the label it is counted
//! under. One shape for all of them that the SDKs of the route's vendor and the control plane's clients can each parse.

mod astray;
mod batches;
mod code;
mod files;
mod mcp;
mod parameter;
mod prompt;
mod vendor_words;
mod write;

pub use code::{RefusalCode, RefusalKind};
pub use write::JSON_RPC_REFUSED;

use self::{RefusalCode as Code, RefusalKind as Kind};
use crate::request::limit_headers::LimitHit;
use crate::runtime::memory::NoRoom;
use serde_json::Value;
use shared::config::Fault;
use shared::headers::header_prefix::PREFIX;
use shared::identity::jwt::Rejection;
use std::borrow::Cow;

/// What a request says itself in place of something that is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline<'r> {
    Config,
    Provider,
    CustomHost,
    /// A header that is a part of a provider's address, without its prefix.
    ProviderUrl(&'r str),
    ForwardHeaders,
}

/// Which error body the route's clients expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    #[default]
    OpenAi,
    /// OpenAI's too, but its streams end in events of their own.
    Responses,
    Anthropic,
    Google,
    /// Of Bedrock: the kind of an error stands in a header.
    Aws,
    ControlPlane,
    /// JSON-RPC, of MCP clients.
    Mcp,
    /// Outside `/v1`: there is no API there to speak for.
    Plain,
}

#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: u16,
    pub kind: RefusalKind,
    pub code: RefusalCode,
    pub message: Cow<'static, str>,
    /// In a box: a refusal is what many functions may return, and must not be large.
    pub param: Option<Box<str>>,
    pub retry_after_s: Option<u32>,
    /// Everything that is wrong with a config, each with its own code and place.
    pub errors: Box<[Fault]>,
    /// The limit that was reached.
    pub hit: Option<Box<LimitHit>>,
    /// What guardrails said, of a denial by one.
    pub hook_results: Option<Box<Value>>,
}

/// What a denial by a guardrail says, unless the guardrail has words of its own.
pub const DENIED: &str = "blocked by a guardrail, see hook_results";

impl From<NoRoom> for Refusal {
    fn from(why: NoRoom) -> Self {
        Self::no_room(why)
    }
}

impl Refusal {
    fn new(status: u16, kind: Kind, code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            kind,
            code,
            message: message.into(),
            param: None,
            retry_after_s: None,
            errors: Box::default(),
            hit: None,
            hook_results: None,
        }
    }

    fn invalid(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, Kind::InvalidRequest, code, message)
    }

    fn about(mut self, param: &'static str) -> Self {
        self.param = Some(param.into());
        self
    }

    fn retry_in(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    pub fn missing_api_key() -> Self {
        let message = "no API key was sent: send the gateway's key as x-gateway-api-key, Authorization: Bearer, x-api-key or \
                       x-goog-api-key";
        Self::new(401, Kind::Authentication, Code::MissingApiKey, message)
    }

    pub fn invalid_api_key() -> Self {
        Self::new(401, Kind::Authentication, Code::InvalidApiKey, "the API key is not valid")
    }

    pub fn expired_api_key() -> Self {
        Self::new(401, Kind::Authentication, Code::ExpiredApiKey, "the API key has expired")
    }

    pub fn insufficient_scope(scope: &str) -> Self {
        let message = format!("this API key may not do that: it needs the scope {scope} in a workspace");
        Self::new(403, Kind::Permission, Code::InsufficientScope, message)
    }

    /// The words are the rejection's own; the codes are those of keys, which clients know.
    pub fn rejected_token(rejection: &Rejection) -> Self {
        let code = match rejection {
            Rejection::MissingScope(scope) => return Self::insufficient_scope(scope),
            Rejection::Expired(_) => Code::ExpiredApiKey,
            Rejection::Workspace(_) => Code::WorkspaceMismatch,
            other if other.is_forbidden() => Code::InsufficientScope,
            _ => Code::InvalidApiKey,
        };
        let kind = if rejection.is_forbidden() { Kind::Permission } else { Kind::Authentication };
        Self::new(rejection.status(), kind, code, rejection.to_string())
    }

    pub fn workspace_mismatch() -> Self {
        let message = "this gateway does not serve the workspace of this API key";
        Self::new(403, Kind::Permission, Code::WorkspaceMismatch, message)
    }

    /// Also the answer for workspaces of others.
    pub fn unknown_workspace() -> Self {
        Self::new(404, Kind::NotFound, Code::NotFound, "there is no such workspace").about("workspace_id")
    }

    pub fn missing_provider() -> Self {
        let message = "no provider selected: send x-gateway-provider, x-gateway-config or a @slug/model model";
        Self::invalid(Code::MissingProvider, message).about("x-gateway-provider")
    }

    pub fn invalid_provider(name: &str) -> Self {
        Self::invalid(Code::InvalidProvider, format!("unknown provider `{name}`")).about("x-gateway-provider")
    }

    /// Something that a request says itself, where its organisation wants what is saved.
    pub fn inline_blocked(what: Inline<'_>) -> Self {
        const WHY: &str = "this organisation accepts saved configs and providers alone (block_inline_config)";
        let (code, header) = match what {
            Inline::Config => (Code::InlineConfigBlocked, "x-gateway-config"),
            Inline::Provider => (Code::InlineProviderBlocked, "x-gateway-provider"),
            Inline::CustomHost => (Code::InlineCustomHostBlocked, "x-gateway-custom-host"),
            Inline::ProviderUrl(header) => {
                let param = Some([PREFIX, header].concat().into());
                return Self { param, ..Self::invalid(Code::InlineProviderUrlBlocked, WHY) };
            }
            Inline::ForwardHeaders => (Code::InlineForwardHeadersBlocked, "x-gateway-forward-headers"),
        };
        Self::invalid(code, WHY).about(header)
    }

    /// A slug that the caller's workspace does not have.
    pub fn unknown_slug(slug: &str) -> Self {
        let message = format!("there is no provider `@{slug}` in this workspace");
        Self::invalid(Code::InvalidProvider, message).about("x-gateway-provider")
    }

    pub fn provider_not_available(slug: &str, why: &str) -> Self {
        let message = format!("the provider `@{slug}` cannot be used: {why}");
        Self::new(403, Kind::Permission, Code::ProviderNotAvailable, message)
    }

    /// The account's own words for it are enough: what a secret manager said of itself, never a value.
    pub fn secret_unavailable(integration: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("a secret of the integration `{integration}` could not be resolved: {why}");
        Self::new(500, Kind::Server, Code::SecretUnavailable, message)
    }

    /// A credential that must be computed or fetched could not be. `retry_s`: its login service is away, and is asked
    /// again then.
    pub fn credential_unavailable(provider: &str, why: impl std::fmt::Display, retry_s: Option<u32>) -> Self {
        let message = format!("no credential for {provider} could be had: {why}");
        match retry_s {
            Some(seconds) => Self::new(503, Kind::Upstream, Code::CredentialUnavailable, message).retry_in(seconds),
            None => Self::new(502, Kind::Upstream, Code::CredentialUnavailable, message),
        }
    }

    /// What an account says makes no credential. `why` names the field and no value.
    pub fn bad_account(provider: &str, why: impl std::fmt::Display) -> Self {
        Self::invalid(Code::CredentialUnavailable, format!("no credential for {provider} can be made: {why}"))
    }

    /// Whether it is our own fault, which another target would meet too. A secret that one lacks another may not need.
    pub fn is_fault(&self) -> bool {
        self.status == 500 && self.code != Code::SecretUnavailable
    }

    pub fn secret_not_allowed(integration: &str, why: &str) -> Self {
        let message = format!("the integration `{integration}` cannot be used: {why}");
        Self::new(403, Kind::Permission, Code::ProviderNotAvailable, message)
    }

    pub fn model_not_allowed(model: &str, slug: &str) -> Self {
        let message = format!("model not allowed for this provider: `{model}` at `@{slug}`");
        Self::new(403, Kind::Permission, Code::ModelNotAllowed, message).about("model")
    }

    /// A relayed body whose model cannot be told, where it decides whether the request may pass.
    pub fn unknown_model(why: &str) -> Self {
        let message =
            format!("which model this request asks for decides whether it may pass, and cannot be told: {why}");
        Self::invalid(Code::ModelUnknown, message).about("model")
    }

    pub fn invalid_config(why: String) -> Self {
        Self::invalid(Code::InvalidConfig, format!("the config is not valid: {why}")).about("x-gateway-config")
    }

    /// An inline config with everything that is wrong with it.
    pub fn faulty_config(faults: &[Fault]) -> Self {
        let why = faults.first().map(ToString::to_string).unwrap_or_default();
        Self { errors: faults.into(), ..Self::invalid_config(why) }
    }

    /// A config that leads nowhere for this request.
    pub fn router_error(why: &'static str) -> Self {
        Self::invalid(Code::RouterError, format!("the config leads to no target: {why}")).about("x-gateway-config")
    }

    pub fn invalid_custom_host(why: impl std::fmt::Display) -> Self {
        Self::invalid(Code::InvalidCustomHost, format!("custom host refused: {why}")).about("x-gateway-custom-host")
    }

    pub fn endpoint_not_supported(provider: &str, why: impl std::fmt::Display) -> Self {
        Self::invalid(Code::EndpointNotSupported, format!("`{provider}` cannot be asked for this: {why}"))
    }

    /// What a provider would make, where a credential of ours or a limit is involved.
    pub fn leads_past_the_gateway() -> Self {
        let message = "it would hand out a credential, or open a session, that no limit and no guardrail holds for: a \
                       stored credential or a limit on tokens or money is involved, so use /v1/realtime over a websocket";
        Self::invalid(Code::EndpointNotSupported, message)
    }

    /// A websocket that nobody can read, where what is said on it must be counted.
    pub fn upgrade_refused() -> Self {
        let message = "websockets are served at /v1/realtime alone where a stored credential or a limit is involved: \
                       send this call over HTTP";
        Self::new(426, Kind::InvalidRequest, Code::UpgradeRefused, message)
    }

    pub fn invalid_forward_headers(name: &str) -> Self {
        let message = format!("x-gateway-forward-headers may not name `{name}`");
        Self::invalid(Code::InvalidForwardHeaders, message).about("x-gateway-forward-headers")
    }

    pub fn invalid_metadata(why: &str) -> Self {
        Self::invalid(Code::InvalidMetadata, format!("x-gateway-metadata: {why}")).about("x-gateway-metadata")
    }

    pub fn invalid_header(name: &'static str, why: &str) -> Self {
        Self::invalid(Code::InvalidHeader, format!("{name}: {why}")).about(name)
    }

    pub fn invalid_query(name: &'static str, why: &str) -> Self {
        Self::invalid(Code::InvalidQuery, format!("the parameter {name} must be {why}")).about(name)
    }

    /// Also the answer for what other workspaces have.
    pub fn model_not_found(name: &str) -> Self {
        let message = format!("this workspace has no model `{name}`");
        Self::new(404, Kind::NotFound, Code::ModelNotFound, message).about("model")
    }

    pub fn repeated_header(name: &str) -> Self {
        Self::invalid(Code::InvalidHeader, format!("the header {name} was sent with two different values"))
    }

    pub fn invalid_content_type() -> Self {
        let message = "this endpoint takes JSON: send content-type: application/json";
        Self::invalid(Code::InvalidContentType, message).about("content-type")
    }

    pub fn unknown_content_encoding(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        let message = format!("a body encoded as `{name}` cannot be read: send zstd, gzip or br, or none");
        Self::new(415, Kind::InvalidRequest, Code::UnsupportedContentEncoding, message).about("content-encoding")
    }

    pub fn damaged_encoding(why: impl std::fmt::Display) -> Self {
        let message = format!("the body is not what its content-encoding says: {why}");
        Self::invalid(Code::InvalidContentEncoding, message).about("content-encoding")
    }

    pub fn invalid_json(why: impl std::fmt::Display) -> Self {
        Self::invalid(Code::InvalidJson, format!("the body is not the JSON object this endpoint takes: {why}"))
    }

    pub fn invalid_form() -> Self {
        Self::invalid(Code::InvalidForm, "the body is not a whole form with the boundary that its content type names")
    }

    pub fn body_too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(413, Kind::InvalidRequest, Code::BodyTooLarge, message)
    }

    pub fn headers_too_large(limit: usize) -> Self {
        let message = format!("the headers are larger than {limit} bytes");
        Self::new(431, Kind::InvalidRequest, Code::HeadersTooLarge, message)
    }

    pub fn body_timeout() -> Self {
        Self::new(408, Kind::Timeout, Code::BodyTimeout, "the body did not arrive in time")
    }

    pub fn body_too_slow() -> Self {
        Self::new(408, Kind::Timeout, Code::BodyTimeout, "the body came too slowly")
    }

    pub fn method_not_allowed(method: &str) -> Self {
        let message = format!("the method {method} is not supported");
        Self::new(405, Kind::InvalidRequest, Code::MethodNotAllowed, message)
    }

    pub fn not_found() -> Self {
        Self::new(404, Kind::NotFound, Code::NotFound, "Not Found")
    }

    /// A path that a provider could take for that of an endpoint which is served here under another spelling.
    pub fn ambiguous_path(path: &str) -> Self {
        let message = format!("this path may be read as {path}; send that one, spelled like this");
        Self::new(404, Kind::NotFound, Code::NotFound, message)
    }

    /// What the contract has and this release does not do yet. Saying so beats ignoring it.
    pub fn not_implemented(what: &'static str) -> Self {
        Self::new(501, Kind::NotImplemented, Code::NotImplemented, format!("{what} is not supported yet"))
    }

    pub fn not_ready() -> Self {
        let message = "the gateway has not loaded its keys yet";
        Self::new(503, Kind::Server, Code::NotReady, message).retry_in(1)
    }

    pub fn journal_full() -> Self {
        let message = "the gateway has no room left to note what requests do; try again later";
        Self::new(503, Kind::Server, Code::Overloaded, message).retry_in(5)
    }

    pub fn no_room(why: NoRoom) -> Self {
        let message = match why {
            NoRoom::ForAnybody => "the gateway holds as many request bodies as it may; try again",
            NoRoom::ForThisOrganisation => {
                "the organisation's calls hold as much memory as the gateway has left for others; try again"
            }
            NoRoom::ForThisWorkspace => {
                "the workspace's calls hold as much memory as its organisation has left for its other workspaces; try again"
            }
        };
        Self::new(503, Kind::Server, Code::Overloaded, message).retry_in(1)
    }

    pub fn rate_limited(message: String, wait_s: u32, hit: LimitHit) -> Self {
        Self::new(429, Kind::RateLimit, Code::RateLimitExceeded, message).retry_in(wait_s).at(hit)
    }

    pub fn budget_exhausted(message: String, hit: LimitHit) -> Self {
        Self::new(412, Kind::UsageLimitExceeded, Code::BudgetExhausted, message).at(hit)
    }

    /// A budget of money that does not let calls pass whose price nobody knows.
    pub fn price_unknown(message: String, hit: LimitHit) -> Self {
        Self::new(412, Kind::UsageLimitExceeded, Code::PriceUnknown, message).at(hit)
    }

    /// The store of limits does not answer, and requests do not pass unlimited.
    pub fn limits_unknown(message: String, hit: LimitHit) -> Self {
        Self::new(503, Kind::Server, Code::LimitsUnavailable, message).retry_in(1).at(hit)
    }

    fn at(mut self, hit: LimitHit) -> Self {
        self.hit = Some(Box::new(hit));
        self
    }

    /// A guardrail denies the request, or what was answered.
    pub fn denied_by_guardrail(message: Option<String>, hook_results: &str) -> Self {
        let message = message.map_or(Cow::Borrowed(DENIED), Cow::Owned);
        let denied = Self::new(446, Kind::HooksFailed, Code::HooksFailed, message);
        let mut hook_results: Value = serde_json::from_str(hook_results).unwrap_or_default();
        strip_denial_details(&mut hook_results);
        Self { hook_results: Some(Box::new(hook_results)), ..denied }
    }

    /// Guardrails of the organisation or the workspace must judge something that nobody here can read.
    pub fn unreadable(why: impl std::fmt::Display) -> Self {
        let message = format!(
            "guardrails must judge this, and cannot: {why}; the organisation may let its path pass (relay_with_guardrails)"
        );
        Self::new(403, Kind::Permission, Code::GuardrailUnreadable, message)
    }

    pub fn timeout(ms: u128) -> Self {
        let message = format!("the provider did not answer within {ms} ms");
        Self::new(408, Kind::Timeout, Code::Timeout, message)
    }

    /// The same at the gateway's own limit, which no caller chose.
    pub fn gateway_timeout(ms: u128) -> Self {
        let message = format!("the provider did not answer within {ms} ms, the most that the gateway waits");
        Self::new(504, Kind::Timeout, Code::GatewayTimeout, message)
    }

    /// The time that the config gives the whole request is over.
    pub fn out_of_time() -> Self {
        Self::new(408, Kind::Timeout, Code::Timeout, "the time for the whole request is over")
    }

    pub fn upstream_unreachable(provider: &str, why: impl std::fmt::Display) -> Self {
        Self::new(503, Kind::Upstream, Code::UpstreamUnreachable, format!("{provider} cannot be reached: {why}"))
    }

    pub fn invalid_upstream_response(provider: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("{provider} sent an answer that cannot be used: {why}");
        Self::new(502, Kind::Upstream, Code::InvalidUpstreamResponse, message)
    }

    /// An error the provider reported inside an answer whose status said success.
    pub fn upstream_error(status: u16, message: String) -> Self {
        Self::new(status, Kind::Upstream, Code::UpstreamError, message)
    }

    pub fn control_plane_unavailable() -> Self {
        let message = "the control plane is not available";
        Self::new(503, Kind::Server, Code::ControlPlaneUnavailable, message).retry_in(1)
    }

    pub fn internal() -> Self {
        Self::new(500, Kind::Server, Code::InternalError, "the gateway failed")
    }
}

/// Leaves of what hooks said what the client of a denied call is told: which check, its verdict and its explanation. What a check
/// found (matches, excerpts, documents) is what is withheld; it stands in the log.
pub fn strip_denial_details(hook_results: &mut Value) {
    let sides = hook_results.as_object_mut().into_iter().flat_map(|sides| sides.values_mut());
    for hook in sides.filter_map(Value::as_array_mut).flatten() {
        for check in hook.get_mut("checks").and_then(Value::as_array_mut).into_iter().flatten() {
            let explanation = check.pointer("/data/explanation").filter(|text| text.is_string()).cloned();
            if let Some(data) = check.get_mut("data") {
                *data = explanation.map_or(Value::Null, |text| serde_json::json!({ "explanation": text }));
            }
            if let Some(error) = check.get_mut("error").and_then(Value::as_object_mut) {
                error.retain(|field, _| field == "name");
            }
        }
    }
}

#[cfg(test)]
mod tests;
