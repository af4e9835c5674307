//! The `x-gateway-` headers of a request, gathered in one pass over its head. Operators may accept further prefixes as
//! aliases; in whichever spelling a header arrives, the rest of the proxy sees one name, and none goes upstream.

use super::refusal::Refusal;
use crate::request::realtime_head;
use http::{HeaderMap, HeaderValue, header};
use shared::config::placement_fields;
use shared::headers::gateway_headers;
pub use shared::headers::header_prefix::{Aliases, PREFIX};
use shared::nearest::nearest;

/// What a client may not say about itself: set by the gateway between its own stages only.
const INTERNAL: &[&str] = &["default-input-guardrails", "default-output-guardrails", "gateway-exception"];

/// Whether a client's header pretends to come from one of the gateway's own stages.
pub fn is_internal(suffix: &str) -> bool {
    INTERNAL.contains(&suffix)
}

/// How many headers that nobody reads are told of: guessing what was meant takes time.
const MAX_UNKNOWN: usize = 8;

/// How headers begin that say where an account is.
const PLACEMENT: &[&str] = &[
    "azure-",
    "aws-",
    "vertex-",
    "workers-ai-",
    "huggingface-",
    "snowflake-",
    "oracle-",
    "databricks-",
    "byteplus-",
    "fireworks-",
    "stability-client-",
    "amz-server-side-encryption",
    "amzn-sagemaker-",
    "anthropic-aws-",
    "mistral-",
    "provider-file-name",
    "provider-model",
    "provider-responses-proxy",
];

fn is_placement(suffix: &str) -> bool {
    PLACEMENT.iter().any(|beginning| suffix.starts_with(beginning))
}

/// Whether a header has the name of this field of a config: `aws-region` is `aws_region`.
fn is_field(suffix: &str, field: &str) -> bool {
    let written = suffix.bytes().map(|byte| if byte == b'-' { b'_' } else { byte });
    suffix.len() == field.len() && written.eq(field.bytes())
}

/// What the stages read from a request's head.
#[derive(Debug, Default)]
pub struct GatewayHeaders<'a> {
    pub api_key: Option<&'a HeaderValue>,
    pub provider: Option<&'a HeaderValue>,
    pub virtual_key: Option<&'a HeaderValue>,
    /// `proxy openai`: how older clients name a provider.
    pub mode: Option<&'a HeaderValue>,
    /// The token of the deployment that a request came through.
    pub client_auth: Option<&'a HeaderValue>,
    pub config: Option<&'a HeaderValue>,
    pub custom_host: Option<&'a HeaderValue>,
    pub trace_id: Option<&'a HeaderValue>,
    pub metadata: Option<&'a HeaderValue>,
    pub request_timeout: Option<&'a HeaderValue>,
    pub retry_count: Option<&'a HeaderValue>,
    pub forward_headers: Option<&'a HeaderValue>,
    pub fetch_integrated_models: Option<&'a HeaderValue>,
    /// `false`: translated answers may have more than OpenAI's own fields.
    pub strict_openai_compliance: Option<&'a HeaderValue>,
    /// `true`: streams and long answers tell what they cost.
    pub include_cost: Option<&'a HeaderValue>,
    /// `false`: what the request says is not kept.
    pub debug: Option<&'a HeaderValue>,
    /// Whether an answer may come from the cache, and how long one is kept.
    pub cache: Option<&'a HeaderValue>,
    /// Whether one that is kept is to be replaced.
    pub cache_force_refresh: Option<&'a HeaderValue>,
    /// What keeps answers apart in place of metadata.
    pub cache_namespace: Option<&'a HeaderValue>,
    /// Names of headers that are masked in logs.
    pub sensitive_headers: Option<&'a HeaderValue>,
    pub openai_organization: Option<&'a HeaderValue>,
    pub openai_project: Option<&'a HeaderValue>,
    pub openai_beta: Option<&'a HeaderValue>,
    pub anthropic_beta: Option<&'a HeaderValue>,
    pub anthropic_version: Option<&'a HeaderValue>,
    pub authorization: Option<&'a HeaderValue>,
    pub x_api_key: Option<&'a HeaderValue>,
    pub x_goog_api_key: Option<&'a HeaderValue>,
    pub content_type: Option<&'a HeaderValue>,
    /// The subprotocols a websocket client offers, when a key is among them.
    pub websocket_key: Option<&'a HeaderValue>,
    pub traceparent: Option<&'a HeaderValue>,
    /// The bare spellings of what may also be sent to us by its full name.
    pub bare_openai_beta: Option<&'a HeaderValue>,
    pub bare_anthropic_beta: Option<&'a HeaderValue>,
    pub bare_anthropic_version: Option<&'a HeaderValue>,
    /// Where a provider's account is and how it is laid out, by the names without the prefix.
    pub placement: Vec<(&'a str, &'a HeaderValue)>,
    /// Under our own prefix, and read by nobody: a slip, or of another version. Names without the prefix.
    pub unknown: Vec<&'a str>,
    /// The alias prefix the caller used; the answer repeats our headers under it.
    pub alias: Option<String>,
}

impl<'a> GatewayHeaders<'a> {
    /// A header that decides who is asking or where to go must not be sent twice: two readers could pick differently.
    pub fn from_headers(headers: &'a HeaderMap, aliases: &Aliases) -> Result<Self, Refusal> {
        let mut found = Self::default();
        let mut unknown = Vec::new();
        for (name, value) in headers {
            let slot = match aliases.suffix(name.as_str()) {
                Some((suffix, alias)) => {
                    if found.alias.is_none() {
                        found.alias = alias.map(str::to_owned);
                    }
                    if is_placement(suffix) {
                        found.placement.push((suffix, value));
                        if alias.is_none() && !placement_fields().any(|field| is_field(suffix, field)) {
                            unknown.push(suffix);
                        }
                        continue;
                    }
                    let slot = found.ours(suffix);
                    if slot.is_none() && alias.is_none() && !gateway_headers::RECORDED.contains(&suffix) {
                        unknown.push(suffix);
                    }
                    slot
                }
                None if *name == header::SEC_WEBSOCKET_PROTOCOL => {
                    realtime_head::key(value).and(Some(&mut found.websocket_key))
                }
                None => found.standard(name.as_str()),
            };
            let Some(slot) = slot else { continue };
            if slot.is_some_and(|earlier| earlier != value) {
                return Err(Refusal::repeated_header(name.as_str()));
            }
            *slot = Some(value);
        }
        unknown.truncate(MAX_UNKNOWN);
        Ok(Self { unknown, ..found })
    }

    /// What each header says in vain, for whoever wrote it.
    pub fn slips(&self) -> impl Iterator<Item = (String, String)> {
        let known = || gateway_headers::REQUEST.iter().map(|header| header.suffix);
        self.unknown.iter().map(move |suffix| {
            let meant = match is_placement(suffix) {
                true => nearest(suffix, placement_fields()).map(|field| field.replace('_', "-")),
                false => nearest(suffix, known()).map(str::to_owned),
            };
            let guess = meant.map(|meant| format!(": did you mean {PREFIX}{meant}?")).unwrap_or_default();
            (format!("{PREFIX}{suffix}"), format!("is no header that the gateway reads{guess}"))
        })
    }

    fn ours(&mut self, suffix: &str) -> Option<&mut Option<&'a HeaderValue>> {
        Some(match suffix {
            "api-key" => &mut self.api_key,
            "provider" => &mut self.provider,
            "virtual-key" => &mut self.virtual_key,
            "mode" => &mut self.mode,
            "client-auth" => &mut self.client_auth,
            "config" => &mut self.config,
            "custom-host" => &mut self.custom_host,
            "trace-id" => &mut self.trace_id,
            "metadata" => &mut self.metadata,
            "request-timeout" => &mut self.request_timeout,
            "retry-count" => &mut self.retry_count,
            "forward-headers" => &mut self.forward_headers,
            "fetch-integrated-models" => &mut self.fetch_integrated_models,
            "strict-open-ai-compliance" | "strict-openai-compliance" => &mut self.strict_openai_compliance,
            "debug" => &mut self.debug,
            "include-cost" => &mut self.include_cost,
            "sensitive-headers" => &mut self.sensitive_headers,
            "cache" => &mut self.cache,
            "cache-force-refresh" => &mut self.cache_force_refresh,
            "cache-namespace" => &mut self.cache_namespace,
            "openai-organization" => &mut self.openai_organization,
            "openai-project" => &mut self.openai_project,
            "openai-beta" => &mut self.openai_beta,
            "anthropic-beta" => &mut self.anthropic_beta,
            "anthropic-version" => &mut self.anthropic_version,
            _ => return None,
        })
    }

    fn standard(&mut self, name: &str) -> Option<&mut Option<&'a HeaderValue>> {
        Some(match name {
            "authorization" => &mut self.authorization,
            "x-api-key" => &mut self.x_api_key,
            "x-goog-api-key" => &mut self.x_goog_api_key,
            "content-type" => &mut self.content_type,
            "traceparent" => &mut self.traceparent,
            "openai-beta" => &mut self.bare_openai_beta,
            "anthropic-beta" => &mut self.bare_anthropic_beta,
            "anthropic-version" => &mut self.bare_anthropic_version,
            _ => return None,
        })
    }

    /// The same with a provider of the workspace by its slug, if the request names none.
    #[must_use]
    pub fn or_provider(mut self, slug: Option<&'a HeaderValue>) -> Self {
        if self.virtual_key.is_none() && self.provider.is_none() && self.named_by_mode().is_none() {
            self.virtual_key = slug;
        }
        self
    }

    /// A plain provider name, as opposed to `@slug`, which names stored credentials.
    pub fn names_plain_provider(&self) -> bool {
        match self.provider {
            Some(value) => !value.as_bytes().starts_with(b"@") && !self.names_gateway(),
            None => self.named_by_mode().is_some_and(|name| !name.starts_with('@')),
        }
    }

    /// Whether the gateway itself is named where a provider could be: what it keeps is asked for.
    pub fn names_gateway(&self) -> bool {
        self.provider.is_some_and(|value| value.as_bytes().trim_ascii() == b"gateway")
    }

    /// Whether what the request says may be kept, as far as the caller is concerned.
    pub fn is_debug(&self) -> bool {
        !self.debug.is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"false"))
    }

    /// Whether the caller wants to know what streams and long answers cost.
    pub fn includes_cost(&self) -> bool {
        self.include_cost.is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"true"))
    }

    /// What a header says that has the name of this field of a config: `aws_region` is `aws-region`.
    pub fn placement(&self, field: &str) -> Option<&'a str> {
        let (_, value) = self.placement.iter().find(|(suffix, _)| is_field(suffix, field))?;
        value.to_str().ok()
    }

    /// Whether its headers name a provider of the workspace's own.
    pub fn names_stored(&self) -> bool {
        let is_stored = |value: &HeaderValue| value.as_bytes().trim_ascii().starts_with(b"@");
        self.virtual_key.is_some() || self.provider.is_some_and(is_stored)
    }

    /// Whether translated answers keep to OpenAI's own fields, as far as the caller is concerned.
    pub fn is_strict(&self) -> bool {
        let value = self.strict_openai_compliance.map(HeaderValue::as_bytes).unwrap_or_default();
        !value.trim_ascii().eq_ignore_ascii_case(b"false")
    }

    /// The provider of an older client's `proxy openai`.
    pub fn named_by_mode(&self) -> Option<&'a str> {
        let mode = self.mode?.to_str().ok()?.trim();
        let name = mode.strip_prefix("proxy")?;
        name.starts_with(' ').then_some(name.trim()).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn head(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn an_alias_is_read_like_our_own_name_and_remembered() {
        let aliases = Aliases::new(&["X-Acme-".into()]).unwrap();
        let head = head(&[("x-acme-api-key", "k"), ("x-other-provider", "p")]);
        let found = GatewayHeaders::from_headers(&head, &aliases).unwrap();
        assert_eq!(found.api_key.unwrap(), "k");
        assert_eq!(found.alias.as_deref(), Some("x-acme-"));
        assert!(found.provider.is_none());
    }

    #[test]
    fn an_older_client_names_its_provider_in_the_mode() {
        for (pairs, name, is_plain) in [
            (vec![("x-gateway-mode", "proxy openai")], Some("openai"), true),
            (vec![("x-gateway-mode", "proxy @prod")], Some("@prod"), false),
            (vec![("x-gateway-mode", "proxy")], None, false),
            (vec![("x-gateway-mode", "proxyopenai")], None, false),
            (vec![("x-gateway-mode", "single")], None, false),
            (vec![("x-gateway-mode", "proxy openai"), ("x-gateway-provider", "@prod")], Some("openai"), false),
        ] {
            let head = head(&pairs);
            let aliases = Aliases::default();
            let headers = GatewayHeaders::from_headers(&head, &aliases).unwrap();
            assert_eq!((headers.named_by_mode(), headers.names_plain_provider()), (name, is_plain), "{pairs:?}");
        }
    }

    #[test]
    fn two_different_values_of_one_deciding_header_are_refused_and_equal_ones_pass() {
        let aliases = Aliases::new(&["x-acme-".into()]).unwrap();
        for (pairs, accepted) in [
            (vec![("x-gateway-api-key", "a"), ("x-gateway-api-key", "b")], false),
            (vec![("x-gateway-api-key", "a"), ("x-acme-api-key", "b")], false),
            (vec![("x-gateway-api-key", "a"), ("x-gateway-api-key", "a")], true),
            (vec![("authorization", "Bearer a"), ("authorization", "Bearer b")], false),
            (vec![("accept", "a"), ("accept", "b")], true),
        ] {
            assert_eq!(GatewayHeaders::from_headers(&head(&pairs), &aliases).is_ok(), accepted, "{pairs:?}");
        }
    }

    #[test]
    fn a_header_under_our_prefix_that_nobody_reads_is_told_what_was_meant() {
        let aliases = Aliases::new(&["x-acme-".into()]).unwrap();
        for (name, told) in [
            ("x-gateway-metdata", Some("is no header that the gateway reads: did you mean x-gateway-metadata?")),
            ("x-gateway-timeout", Some("is no header that the gateway reads: did you mean x-gateway-request-timeout?")),
            ("x-gateway-aws-regoin", Some("is no header that the gateway reads: did you mean x-gateway-aws-region?")),
            ("x-gateway-something-else", Some("is no header that the gateway reads")),
            ("x-gateway-aws-region", None),
            ("x-gateway-metadata", None),
            ("x-gateway-span-id", None),
            ("x-gateway-audio-file-duration", None),
            ("x-gateway-span-nam", Some("is no header that the gateway reads: did you mean x-gateway-span-name?")),
            ("x-acme-metdata", None),
            ("x-metdata", None),
        ] {
            let head = head(&[(name, "v")]);
            let headers = GatewayHeaders::from_headers(&head, &aliases).unwrap();
            let slips: Vec<(String, String)> = headers.slips().collect();
            let expected: Vec<(String, String)> = told.iter().map(|told| (name.into(), (*told).into())).collect();
            assert_eq!(slips, expected);
        }
    }

    /// So that the document lists every header that is read, and no other.
    #[test]
    fn the_published_list_of_headers_is_what_is_read() {
        let (_, rest) = include_str!("headers.rs").split_once("fn ours(").unwrap();
        let (arms, _) = rest.split_once("fn standard(").unwrap();
        let arms = arms.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" =>"));
        let recorded = gateway_headers::RECORDED.into_iter();
        let mut read: Vec<&str> = arms.flat_map(|(names, _)| names.split("\" | \"")).chain(recorded).collect();
        let mut listed: Vec<&str> = gateway_headers::REQUEST.iter().map(|header| header.suffix).collect();
        read.sort_unstable();
        listed.sort_unstable();
        assert_eq!(read, listed);
    }
}
