//! Which tiers of service may serve a request: those that it names, and where it names none those that its provider may choose
//! by itself. A strict budget reserves the dearest of them.

use super::expected::SentBody;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use shared::cost::PriceMode;
use std::borrow::Cow;

/// What a request says of the tier that it wants, by all the names that providers have for it. Of several that it names any may
/// serve it: which of them a provider heeds is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTiers {
    /// Each once, in the order in which they were named last.
    named: Vec<PriceMode>,
    /// The provider chooses.
    is_open: bool,
}

/// Providers whose accounts may be set to a dearer tier, which then serves what names none.
const CHOOSE_PRIORITY: [&str; 5] = ["openai", "azure-openai", "azure-ai", "anthropic", "claude-platform-aws"];

/// How Bedrock and Vertex are told beside the body.
pub const TIER_HEADERS: [&str; 2] = ["x-amzn-bedrock-service-tier", "x-vertex-ai-llm-shared-request-type"];

/// `"priority"`, or `{"type": "priority"}` as Bedrock has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum TierValue<'t> {
    Name(#[serde(borrow)] Cow<'t, str>),
    Typed {
        #[serde(borrow, rename = "type")]
        name: Cow<'t, str>,
    },
}

/// Of a request that says nothing.
impl Default for AskedTiers {
    fn default() -> Self {
        Self { named: Vec::new(), is_open: true }
    }
}

impl AskedTiers {
    /// `headers` are those of the account or the config.
    pub fn of_request(sent: &SentBody<'_>, headers: &[(HeaderName, HeaderValue)]) -> Self {
        let mut tiers = Self::default();
        let (mut named, mut chosen) = (0, 0);
        sent.each_field(|key, value| match key {
            "service_tier" => {
                named += 1;
                chosen += u32::from(tiers.read(value));
            }
            // In the words of Google and of Bedrock, which others pass over.
            "serviceTier" => {
                tiers.read(value);
            }
            // How Anthropic is told, whose faster answers have prices of their own.
            "speed" if serde_json::from_slice::<Cow<'_, str>>(value).is_ok_and(|speed| speed == "fast") => {
                tiers.add(PriceMode::Fast);
            }
            _ => {}
        });
        let of_request = TIER_HEADERS.iter().flat_map(|name| sent.header_values(name));
        let of_account =
            headers.iter().filter(|(name, _)| TIER_HEADERS.contains(&name.as_str())).map(|(_, value)| value);
        for value in of_request.chain(of_account) {
            tiers.name(value.to_str().unwrap_or_default());
        }
        tiers.is_open = chosen < named || named == 0;
        tiers
    }

    /// Whether a field leaves the provider no choice.
    fn read(&mut self, value: &[u8]) -> bool {
        match serde_json::from_slice(value) {
            Ok(Some(TierValue::Name(name) | TierValue::Typed { name })) => self.name(&name),
            Ok(None) => false,
            // It may mean any of them to somebody.
            Err(_) => {
                self.add(PriceMode::Priority);
                self.add(PriceMode::Fast);
                false
            }
        }
    }

    fn name(&mut self, name: &str) -> bool {
        let name = name.trim().to_ascii_lowercase();
        let name = name.strip_prefix("service_tier_").or_else(|| name.strip_prefix("on_demand_")).unwrap_or(&name);
        match PriceMode::of_service_tier(name) {
            PriceMode::Standard => matches!(name, "default" | "standard" | "standard_only"),
            mode => {
                self.add(mode);
                true
            }
        }
    }

    fn add(&mut self, mode: PriceMode) {
        self.named.retain(|named| *named != mode);
        self.named.push(mode);
    }

    /// Tiers that are asked for and have prices of their own; the last one is most likely heeded.
    pub fn named(&self) -> &[PriceMode] {
        &self.named
    }

    /// Every tier that may serve it: a provider that has no room in the tier that is asked for, or does not know it, serves it
    /// in its usual one. By itself it chooses only among tiers in which it offers the model, which are those with a rate.
    pub fn may_serve(&self, service: &str, has_rate: impl Fn(PriceMode) -> bool) -> Vec<PriceMode> {
        let mut modes = vec![PriceMode::Standard];
        modes.extend_from_slice(&self.named);
        let priority = PriceMode::Priority;
        if self.is_open && CHOOSE_PRIORITY.contains(&service) && !modes.contains(&priority) && has_rate(priority) {
            modes.push(priority);
        }
        modes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::body::Fields;
    use http::HeaderMap;

    #[test]
    fn a_request_is_served_in_the_tiers_that_it_leaves_to_its_provider() {
        use PriceMode::{Fast, Flex, Priority, Standard};
        for (service, body, header, modes) in [
            ("openai", "{}", None, &[Standard, Priority][..]),
            ("openai", r#"{"service_tier":"auto"}"#, None, &[Standard, Priority]),
            ("openai", r#"{"service_tier":null}"#, None, &[Standard, Priority]),
            ("openai", r#"{"service_tier":"default"}"#, None, &[Standard]),
            ("openai", r#"{"service_tier":"flex"}"#, None, &[Standard, Flex]),
            ("openai", r#"{"service_tier":"priority"}"#, None, &[Standard, Priority]),
            ("openai", r#"{"service_tier":"flex","service_tier":"priority"}"#, None, &[Standard, Flex, Priority]),
            ("openai", r#"{"service_tier":"auto","service_tier":"default"}"#, None, &[Standard, Priority]),
            ("openai", r#"{"serviceTier":"default"}"#, None, &[Standard, Priority]),
            ("openai", r#"{"service_tier":7}"#, None, &[Standard, Priority, Fast]),
            (
                "openai",
                r#"{"service_tier":"flex","service_tier":"priority","service_tier":"flex"}"#,
                None,
                &[Standard, Priority, Flex],
            ),
            ("openai", r#"{"service\u005ftier":"fle\u0078"}"#, None, &[Standard, Flex]),
            ("openai", r#"{"service_tier":"scale"}"#, None, &[Standard, Priority]),
            ("google", "{}", None, &[Standard]),
            ("google", r#"{"service_tier":"SERVICE_TIER_PRIORITY"}"#, None, &[Standard, Priority]),
            ("anthropic", "{}", None, &[Standard, Priority]),
            ("anthropic", r#"{"service_tier":"standard_only"}"#, None, &[Standard]),
            ("anthropic", r#"{"service_tier":"standard_only","speed":"fast"}"#, None, &[Standard, Fast]),
            ("bedrock", "{}", None, &[Standard]),
            ("bedrock", r#"{"serviceTier":{"type":"priority"}}"#, None, &[Standard, Priority]),
            ("bedrock", r#"{"serviceTier":{"\u0074ype":"pri\u006frity"}}"#, None, &[Standard, Priority]),
            ("bedrock", r#"{"serviceTier":{"type":"default"}}"#, None, &[Standard]),
            ("bedrock", "{}", Some(("x-amzn-bedrock-service-tier", "flex")), &[Standard, Flex]),
            ("vertex-ai", "{}", Some(("x-vertex-ai-llm-shared-request-type", "priority")), &[Standard, Priority]),
        ] {
            let mut headers = HeaderMap::new();
            headers
                .extend(header.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));
            let fields = Fields::parse_object(body.as_bytes()).unwrap();
            let tiers =
                AskedTiers::of_request(&SentBody::new(body.as_bytes(), &fields, None).with_headers(&headers), &[]);
            assert_eq!(tiers.may_serve(service, |_| true), modes, "{service} {body}");
            // What is asked for may serve it whether or not it has a rate.
            let others = tiers.may_serve(service, |_| false);
            assert_eq!(others[1..], *tiers.named(), "{service} {body}");
            let of_account: Vec<_> = headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
            let tiers = AskedTiers::of_request(&SentBody::new(body.as_bytes(), &fields, None), &of_account);
            assert_eq!(tiers.may_serve(service, |_| true), modes, "{service} {body} by the account");
        }
    }
}
