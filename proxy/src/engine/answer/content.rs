//! What an event of a stream means before any content has come: nothing yet, content, or a failure inside a 200.

use crate::request::refusal::Refusal;
use crate::wire::json;
use crate::wire::json::Member;
use serde::Deserialize;

#[derive(Debug)]
pub enum Meaning {
    /// Says that an answer begins: a role, a ping, an empty block.
    Preamble,
    Content,
    Error(Box<Refusal>),
    /// Claims to be JSON and is not.
    Malformed,
}

/// An empty text, as it is written.
const EMPTY: &str = r#""""#;

/// Events that only announce, by the `type` they carry. Those of other names are content.
const PREAMBLES: &[&str] = &[
    "ping",
    "message_start",
    "content_block_start",
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
];

#[derive(Deserialize)]
#[serde(untagged)]
enum Reported {
    Words(String),
    Details {
        #[serde(default)]
        message: Option<String>,
        #[serde(default, rename = "type")]
        kind: Option<String>,
        #[serde(default)]
        code: serde_json::Value,
    },
}

/// Tells content from preamble in the dialects of chat, completions, messages and responses. An event of another shape
/// is content: it is not ours to withhold.
pub fn meaning(data: &[u8]) -> Meaning {
    if !data.starts_with(b"{") {
        return Meaning::Content;
    }
    let Ok(members) = json::members(data) else { return Meaning::Malformed };
    let of_response = || error_of(member(&members, r#""response""#)?);
    if let Some(error) = member(&members, r#""error""#).or_else(of_response) {
        return match serde_json::from_str(error) {
            Ok(error) => Meaning::Error(Box::new(refusal(error))),
            Err(_) => Meaning::Content,
        };
    }
    let is_preamble = match (member(&members, r#""choices""#), member(&members, r#""type""#)) {
        (Some(choices), _) => json::items(choices).is_ok_and(|choices| !choices.into_iter().any(says_something)),
        (None, Some(kind)) => PREAMBLES.contains(&kind.trim_matches('"')),
        (None, None) => false,
    };
    if is_preamble { Meaning::Preamble } else { Meaning::Content }
}

/// The value of a member, unless it is null. The name stands in its quotes.
fn member<'t>(members: &[Member<'t>], name: &str) -> Option<&'t str> {
    members.iter().find(|member| member.key == name && member.value != "null").map(|member| member.value)
}

fn error_of(response: &str) -> Option<&str> {
    member(&json::members(response.as_bytes()).ok()?, r#""error""#)
}

/// What a whole plain answer with a success status means. Only an object that is nothing but an error is one: some
/// answers keep an `error` field of their own.
pub fn meaning_of_answer(body: &[u8]) -> Meaning {
    if !body.trim_ascii_start().starts_with(b"{") {
        return if json::check(body).is_ok() { Meaning::Content } else { Meaning::Malformed };
    }
    let Ok(members) = json::members(body) else { return Meaning::Malformed };
    let member = |name| member(&members, name);
    let error = match (member(r#""error""#), member(r#""id""#), member(r#""object""#)) {
        (Some(error), None, None) => serde_json::from_str::<Reported>(error).ok(),
        _ => None,
    };
    error.map_or(Meaning::Content, |error| Meaning::Error(Box::new(refusal(error))))
}

fn says_something(choice: &str) -> bool {
    let Ok(members) = json::members(choice.as_bytes()) else { return true };
    let has_text = member(&members, r#""text""#).is_some_and(|text| text != EMPTY);
    let has_ended = member(&members, r#""finish_reason""#).is_some();
    has_text || has_ended || member(&members, r#""delta""#).is_some_and(speaks)
}

/// Reasoning goes by several names, so everything but the role and empty texts counts.
fn speaks(delta: &str) -> bool {
    let Ok(members) = json::members(delta.as_bytes()) else { return true };
    members.iter().any(|member| match member.value {
        EMPTY | "null" => false,
        _ => member.key != r#""role""#,
    })
}

/// Some providers answer 200 and report the failure as an event; its words tell the status it should have had.
fn refusal(error: Reported) -> Refusal {
    let (message, kind, code) = match error {
        Reported::Words(words) => (Some(words), None, serde_json::Value::Null),
        Reported::Details { message, kind, code } => (message, kind, code),
    };
    let kind = kind.unwrap_or_default();
    let word = code.as_str().unwrap_or_default();
    let says = |part| kind.contains(part) || word.contains(part);
    let status = match code.as_u64().or_else(|| word.parse().ok()) {
        Some(code @ 400..=599) => code as u16,
        _ if says("rate_limit") => 429,
        _ if says("overloaded") => 529,
        _ => 502,
    };
    Refusal::upstream_error(status, message.unwrap_or_else(|| "the provider reported an error".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_a_success_keeps_the_status_it_names() {
        for (data, status) in [
            (r#"{"error":{"message":"m","type":"x","code":503}}"#, Some(503)),
            (r#"{"error":{"type":"rate_limit_error"}}"#, Some(429)),
            (r#"{"error":{"type":"requests","code":"rate_limit_exceeded"}}"#, Some(429)),
            (r#"{"error":{"message":"m","code":"404"}}"#, Some(404)),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, Some(529)),
            (r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}"#, Some(502)),
            (r#"{"error":{"message":"m","code":"weird"}}"#, Some(502)),
            (r#"{"error":"in words"}"#, Some(502)),
            (r#"{"choices":[{"delta":{"content":"an \"error\" in prose"}}]}"#, None),
            (r#"{"error":null,"choices":[]}"#, None),
            ("[DONE]", None),
        ] {
            let found = match meaning(data.as_bytes()) {
                Meaning::Error(refusal) => Some(refusal.status),
                _ => None,
            };
            assert_eq!(found, status, "{data}");
        }
    }

    #[test]
    fn a_whole_answer_is_an_error_only_when_it_is_nothing_else() {
        for (body, expected) in [
            (r#"{"error":{"message":"m","code":503}}"#, "error 503"),
            (r#"{"error":null,"choices":[]}"#, "content"),
            (r#"{"id":"resp_1","object":"response","status":"failed","error":{"code":"x","message":"m"}}"#, "content"),
            ("[1,2]", "content"),
            (r#"{"choices":["#, "malformed"),
            ("<html>", "malformed"),
            ("", "malformed"),
        ] {
            let found = match meaning_of_answer(body.as_bytes()) {
                Meaning::Error(refusal) => format!("error {}", refusal.status),
                Meaning::Malformed => "malformed".into(),
                Meaning::Content | Meaning::Preamble => "content".into(),
            };
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn only_what_a_reader_could_use_is_content() {
        for (data, is_content) in [
            (r#"{"choices":[{"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}"#, false),
            (r#"{"choices":[],"prompt_filter_results":[]}"#, false),
            (r#"{"choices":[{"delta":{}}]}"#, false),
            (r#"{"choices":[{"delta":{"content":"a"}}]}"#, true),
            (r#"{"choices":[{"delta":{"reasoning_content":"a"}}]}"#, true),
            (r#"{"choices":[{"delta":{"role":"assistant","tool_calls":[{"index":0}]}}]}"#, true),
            (r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, true),
            (r#"{"choices":[{"text":"","finish_reason":null}]}"#, false),
            (r#"{"choices":[{"text":"a"}]}"#, true),
            (r#"{"type":"message_start","message":{}}"#, false),
            (r#"{"type":"ping"}"#, false),
            (r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, false),
            (r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#, true),
            (r#"{"type":"response.created","response":{"error":null}}"#, false),
            (r#"{"type":"response.output_text.delta","delta":"a"}"#, true),
            (r#"{"choices":"of another kind"}"#, true),
            (r#"{"a":1}"#, true),
            ("[DONE]", true),
            ("plain text", true),
        ] {
            assert_eq!(matches!(meaning(data.as_bytes()), Meaning::Content), is_content, "{data}");
        }
        assert!(matches!(meaning(br#"{"choices":[{"delta":"#), Meaning::Malformed));
    }
}
