//! Calls of tools that a provider runs itself and takes a fee for, where its usage does not count them: items of a response of
//! OpenAI's, and the searches that ground an answer of Google's. They are noted in the report of the usage.

use super::scan::ScannedKey;
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::cost::TOOL_UNITS;
use std::sync::LazyLock;

/// Counts in the order of `TOOL_UNITS`.
pub type ToolCounts = [u64; TOOL_UNITS.len()];

pub const QUERIES: &[u8] = b"webSearchQueries";
pub const CHUNKS: &[u8] = b"groundingChunks";
static SEARCH_QUERIES: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("\"webSearchQueries\""));
static GROUNDING_CHUNKS: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("\"groundingChunks\""));
/// The member of a report that holds what was counted here.
const MEMBER: &str = ",\"gateway_units\":{";

/// The kinds of items, with the place of their unit.
pub(super) const ITEMS: [(&str, usize); 4] =
    [("web_search_call", 0), ("code_interpreter_call", 2), ("file_search_call", 3), ("image_generation_call", 7)];

/// Which unit an item of a response is.
pub fn unit_of_item(kind: &[u8]) -> Option<usize> {
    ITEMS.iter().find(|(name, _)| name.as_bytes() == kind).map(|(_, unit)| *unit)
}

/// The items of a whole response. An answer in another form has none.
pub fn in_response(body: &[u8]) -> ToolCounts {
    let mut counts = ToolCounts::default();
    const BEGINNING: usize = 256;
    if memmem::find(&body[..body.len().min(BEGINNING)], b"\"response\"").is_none() {
        return counts;
    }
    for (name, unit) in ITEMS {
        let quoted = format!("\"{name}\"");
        counts[unit] = memmem::find_iter(body, quoted.as_bytes()).filter(|at| is_value(body, *at)).count() as u64;
    }
    counts
}

/// Whether what stands here follows a colon: the name of a kind, and no key.
pub(super) fn is_value(body: &[u8], at: usize) -> bool {
    body[..at].iter().rev().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// A place that an answer rests on.
#[derive(Deserialize)]
struct GroundingChunk {
    /// It is one of a map.
    maps: Option<IgnoredAny>,
}

/// What grounds an answer: all searches and one for the answer, and one for the answer where it rests on maps.
pub fn grounding(body: &[u8]) -> ToolCounts {
    let mut counts = ToolCounts::default();
    let places = SEARCH_QUERIES.find_iter(body);
    let queries = places.map(|at| list_after::<IgnoredAny>(&body[at + QUERIES.len() + 2..]).len() as u64);
    let queries: u64 = queries.fold(0, u64::saturating_add);
    if queries > 0 {
        (counts[0], counts[6]) = (queries, 1);
    }
    let mut places = GROUNDING_CHUNKS.find_iter(body);
    let has_maps = |at: usize| {
        let chunks = list_after::<GroundingChunk>(&body[at + CHUNKS.len() + 2..]);
        chunks.iter().any(|chunk| chunk.maps.is_some())
    };
    counts[5] = places.any(has_maps).into();
    counts
}

/// Nothing of what is no list of these.
fn list_after<'b, T: Deserialize<'b>>(rest: &'b [u8]) -> Vec<T> {
    let Some(list) = rest.trim_ascii_start().strip_prefix(b":") else { return Vec::new() };
    let mut reader = serde_json::Deserializer::from_slice(list);
    Vec::deserialize(&mut reader).unwrap_or_default()
}

/// Notes counts in a report; those that were noted before are replaced.
pub fn note(report: &mut String, counts: &ToolCounts) {
    if let Some(at) = report.rfind(MEMBER) {
        report.truncate(at);
        report.push('}');
    }
    let used = TOOL_UNITS.iter().zip(counts).filter(|(_, count)| **count > 0);
    let members: Vec<String> = used.map(|(unit, count)| format!("\"{unit}\":{count}")).collect();
    let is_object = report.trim_end().ends_with('}') && report.trim() != "{}";
    if members.is_empty() || !is_object {
        return;
    }
    report.truncate(report.trim_end().len() - 1);
    report.push_str(MEMBER);
    report.push_str(&members.join(","));
    report.push_str("}}");
}

/// A tier of service that stands in the usage itself: Anthropic's fast mode, and Google's kinds of traffic.
pub fn tier_of_usage(usage: &[u8]) -> Option<&'static str> {
    static SPEED: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"speed\""));
    static TRAFFIC: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"trafficType\""));
    const MAX_WORD_LENGTH: usize = 32;
    if let Some(speed) = super::scan::name_after(usage, &SPEED, MAX_WORD_LENGTH) {
        return (speed == "fast").then_some("fast");
    }
    match super::scan::name_after(usage, &TRAFFIC, MAX_WORD_LENGTH)?.as_str() {
        "ON_DEMAND_PRIORITY" => Some("priority"),
        "ON_DEMAND_FLEX" => Some("flex"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_response_are_counted_and_texts_about_them_are_not() {
        let body = br#"{"id":"r","object":"response","output":[{"type": "web_search_call"},{"type":"web_search_call"},
            {"type":"message","content":[{"text":"a \"web_search_call\""}]},{"type":"file_search_call"},
            {"type":"image_generation_call"}],"x":{"web_search_call":1}}"#;
        assert_eq!(in_response(body), [2, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(in_response(br#"{"object":"chat.completion","x":{"type":"web_search_call"}}"#), [0; 8]);
        assert_eq!(unit_of_item(b"code_interpreter_call"), Some(2));
        let grounded = br#"{"groundingMetadata":{"webSearchQueries":["a","b]"]},"x":{"webSearchQueries" : ["c"]}}"#;
        assert_eq!(grounding(grounded), [3, 0, 0, 0, 0, 0, 1, 0]);
        for (body, maps) in [
            (&br#"{"groundingChunks": [{"web":{"uri":"u"}},{"maps":{"title":"t","x":[1]}},{"maps":{}}]}"#[..], 1),
            (br#"{"groundingChunks":[{"web":{"title":"maps","maps":{}}}]}"#, 0),
            (br#"{"groundingChunks":{"maps":{}}}"#, 0),
            (br#"{"text":"\"groundingChunks\":[{\"maps\":{}}]"}"#, 0),
            (br#"{"webSearchQueries":7}"#, 0),
        ] {
            assert_eq!(grounding(body), [0, 0, 0, 0, 0, maps, 0, 0]);
        }
        let both = br#"{"webSearchQueries":["a"],"groundingChunks":[{"maps":{}}]}"#;
        assert_eq!(grounding(both), [1, 0, 0, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn counts_are_noted_once_and_read_with_the_rest() {
        let mut report = r#"{"input_tokens":5,"output_tokens":1} "#.to_owned();
        note(&mut report, &[1, 0, 0, 0, 0, 0, 0, 0]);
        note(&mut report, &[2, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(report, r#"{"input_tokens":5,"output_tokens":1,"gateway_units":{"web_search":2,"file_search":1}}"#);
        let usage = shared::cost::Usage::from_reported(&[report]).unwrap();
        let units: Vec<(&str, String)> = usage.units.iter().map(|(name, count)| (&**name, count.to_string())).collect();
        assert_eq!(units, [("file_search", "1".into()), ("web_search", "2".into())]);
        for report in ["{}", "[]", ""] {
            let mut same = report.to_owned();
            note(&mut same, &[1, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(same, report);
        }
    }

    #[test]
    fn a_fast_mode_stands_in_the_usage() {
        for (usage, tier) in [
            (r#"{"input_tokens":1,"service_tier":"standard","speed":"fast"}"#, Some("fast")),
            (r#"{"speed":"standard"}"#, None),
            (r#"{"trafficType":"ON_DEMAND_PRIORITY"}"#, Some("priority")),
            (r#"{"trafficType":"ON_DEMAND"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(tier_of_usage(usage.as_bytes()), tier, "{usage}");
        }
    }
}
