//! What a provider reports of an answer in its outermost object, and nothing that stands further in: arguments of tool
//! calls are objects in some formats, and a model writes there what its caller asks for, also a `usage` of its own.

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::LazyLock;

/// The words of formats whose tool calls hold objects: Gemini, Converse, Anthropic (also `server_tool_use` and the like).
static TOOL_CALLS: LazyLock<[memmem::Finder<'static>; 3]> =
    LazyLock::new(|| ["\"functionCall\"", "\"toolUse\"", "tool_use\""].map(memmem::Finder::new));

pub fn has_tool_objects(body: &[u8]) -> bool {
    TOOL_CALLS.iter().any(|word| word.find(body).is_some())
}

/// As they are written.
#[derive(Debug, Default)]
pub struct Report<'b> {
    pub usage: Option<&'b str>,
    /// Without its quotes, as the next.
    pub model: Option<&'b str>,
    pub service_tier: Option<&'b str>,
    pub is_background: bool,
}

#[derive(Deserialize)]
struct Outermost<'b> {
    #[serde(borrow)]
    usage: Option<&'b RawValue>,
    #[serde(borrow, rename = "usageMetadata")]
    usage_metadata: Option<&'b RawValue>,
    #[serde(borrow)]
    meta: Option<&'b RawValue>,
    #[serde(borrow)]
    model: Option<&'b RawValue>,
    #[serde(borrow, rename = "modelVersion")]
    model_version: Option<&'b RawValue>,
    #[serde(borrow)]
    service_tier: Option<&'b RawValue>,
    #[serde(borrow, rename = "serviceTier")]
    typed_tier: Option<&'b RawValue>,
    #[serde(borrow)]
    background: Option<&'b RawValue>,
}

/// Converse's.
#[derive(Deserialize)]
struct TypedTier<'b> {
    #[serde(borrow, rename = "type")]
    name: &'b RawValue,
}

#[derive(Deserialize)]
struct Tier<'b> {
    #[serde(borrow)]
    service_tier: Option<&'b RawValue>,
}

impl<'b> Report<'b> {
    /// Of what is no object, or says something twice, nothing.
    pub fn read(body: &'b [u8]) -> Self {
        let Ok(found) = serde_json::from_slice::<Outermost<'b>>(body) else { return Self::default() };
        // Cohere's; others keep other things there.
        let meta = found.meta.filter(|meta| meta.get().contains("\"billed_units\""));
        let usage = found.usage.or(found.usage_metadata).or(meta).map(RawValue::get);
        let usage = usage.filter(|usage| usage.starts_with('{'));
        let inner = usage.map(str::as_bytes).and_then(tier_of_usage);
        let typed = found.typed_tier.and_then(|tier| typed_tier(tier.get().as_bytes()));
        Self {
            usage,
            model: found.model.or(found.model_version).and_then(text),
            service_tier: found.service_tier.and_then(text).or(inner).or(typed),
            is_background: found.background.is_some_and(|value| value.get() == "true"),
        }
    }
}

/// Anthropic says it there, of a piece of usage. Without its quotes.
pub fn tier_of_usage(usage: &[u8]) -> Option<&str> {
    text(serde_json::from_slice::<Tier<'_>>(usage).ok()?.service_tier?)
}

/// The name in `{"type": "priority"}`, as Converse says it. Without its quotes.
pub fn typed_tier(tier: &[u8]) -> Option<&str> {
    text(serde_json::from_slice::<TypedTier<'_>>(tier).ok()?.name)
}

fn text(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_writes_into_a_tool_call_is_no_report() {
        let forged = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"usage":{"total_tokens":1},
            "model":"cheap","service_tier":"batch"}}}],"role":"model"}}],"usageMetadata":{"promptTokenCount":9},"modelVersion":"dear"}"#;
        assert!(has_tool_objects(forged.as_bytes()));
        let report = Report::read(forged.as_bytes());
        assert_eq!((report.usage, report.model), (Some(r#"{"promptTokenCount":9}"#), Some("dear")));
        assert_eq!(report.service_tier, None);
        let anthropic = r#"{"model":"m","content":[{"type":"tool_use","input":{"service_tier":"batch"}}],"usage":{"output_tokens":2,"service_tier":"priority"}}"#;
        let report = Report::read(anthropic.as_bytes());
        assert_eq!((report.model, report.service_tier), (Some("m"), Some("priority")));
        for nothing in ["", "[1]", "{", r#"{"usage":{},"usage":{}}"#, r#"{"usage":3,"model":[]}"#] {
            let report = Report::read(nothing.as_bytes());
            assert_eq!((report.usage, report.model), (None, None), "{nothing}");
        }
        assert!(has_tool_objects(br#"{"content":[{"type":"mcp_tool_use","input":{"usage":{}}}]}"#));
        assert!(!has_tool_objects(br#"{"content":"a \"tool_use\" in a text"}"#));
    }
}
