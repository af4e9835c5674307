//! Lists of what a server offers, without what is switched off and what is told otherwise than it was approved. A list of
//! which everything may be seen passes as it came.

use super::visible::Visible;
use crate::guardrails::parse_unique;
use bytes::Bytes;
use serde_json::{Value, json};
use shared::mcp::{Capability, INSTRUCTIONS, Kind};

/// The longest message that is a list.
pub const MAX_LIST: usize = 4 << 20;
/// Entries of one page.
pub const MAX_ENTRIES: usize = 5000;

/// Why a list cannot be passed on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadList {
    #[error("its list has more than {MAX_LIST} bytes")]
    TooLong,
    #[error("its list has more than {MAX_ENTRIES} entries")]
    TooMany,
    #[error("its list cannot be read")]
    Unreadable,
}

/// The message as it may be passed on; none when it may be as it is. `kind` is what was asked for; a stream that is
/// resumed says answers without saying to what, so there each list is taken for what it looks like.
pub fn filtered(kind: Option<Kind>, message: &[u8], visible: &Visible) -> Result<Option<Bytes>, BadList> {
    if kind.is_some() && message.len() > MAX_LIST {
        return Err(BadList::TooLong);
    }
    if visible.is_everything() {
        return Ok(None);
    }
    let mut answer = parse_unique(message).map_err(|_| BadList::Unreadable)?;
    let Some(Value::Object(result)) = answer.get_mut("result") else { return Ok(None) };
    // Some clients would take such a field for the list.
    let is_near = |name: &String| Kind::ALL.iter().any(|kind| name != kind.field() && is_alike(name, kind.field()));
    if result.keys().any(is_near) {
        return Err(BadList::Unreadable);
    }
    let mut is_changed = false;
    for kind in kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]) {
        let entries = match result.get_mut(kind.field()) {
            None => continue,
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(BadList::Unreadable),
        };
        if entries.len() > MAX_ENTRIES {
            return Err(BadList::TooMany);
        }
        let before = entries.len();
        entries.retain(|entry| may_be_seen(kind, entry, visible));
        is_changed |= entries.len() != before;
    }
    Ok(is_changed.then(|| Bytes::from(answer.to_string())))
}

/// The answer to a greeting without instructions that are switched off, or told otherwise than they were approved; none when
/// it may pass as it is. Models are told them before anything else.
pub fn filtered_greeting(message: &[u8], visible: &Visible) -> Result<Option<Bytes>, BadList> {
    if visible.is_everything() {
        return Ok(None);
    }
    let mut answer = parse_unique(message).map_err(|_| BadList::Unreadable)?;
    let Some(Value::Object(result)) = answer.get_mut("result") else { return Ok(None) };
    let is_near = |name: &String| name != INSTRUCTIONS && is_alike(name, INSTRUCTIONS);
    if result.keys().any(is_near) {
        return Err(BadList::Unreadable);
    }
    let is_allowed = match result.get(INSTRUCTIONS) {
        None => return Ok(None),
        Some(Value::String(text)) => may_be_seen(Kind::Instructions, &Capability::instructions_entry(text), visible),
        Some(_) => false,
    };
    if is_allowed {
        return Ok(None);
    }
    result.shift_remove(INSTRUCTIONS);
    Ok(Some(Bytes::from(answer.to_string())))
}

/// The answer to a greeting without its instructions.
pub fn without_instructions(message: &[u8]) -> Result<Bytes, BadList> {
    let mut answer = parse_unique(message).map_err(|_| BadList::Unreadable)?;
    if let Some(Value::Object(result)) = answer.get_mut("result") {
        result.shift_remove(INSTRUCTIONS);
    }
    Ok(Bytes::from(answer.to_string()))
}

/// The instructions of an answer to a greeting, as a message of their own.
pub fn instructions_of(message: &[u8]) -> Option<Bytes> {
    let answer = parse_unique(message).ok()?;
    let text = answer.get("result")?.get(INSTRUCTIONS)?;
    Some(Bytes::from(json!({ "result": { INSTRUCTIONS: text } }).to_string()))
}

fn is_alike(one: &str, other: &str) -> bool {
    one.to_uppercase() == other.to_uppercase()
}

/// Whether an entry of a list of this kind may be shown.
pub fn may_be_seen(kind: Kind, entry: &Value, visible: &Visible) -> bool {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let is_named = text("name").is_none_or(|name| visible.has(kind, name));
    let is_there = is_named && (kind != Kind::Resource || text("uri").is_none_or(|uri| visible.has_uri(uri)));
    is_there && visible.allows(kind, entry)
}

#[cfg(test)]
mod tests {
    use super::super::visible::without;
    use super::*;
    use crate::snapshot::SwitchedOff;
    use serde_json::json;

    #[test]
    fn a_list_loses_what_is_switched_off_and_nothing_else() {
        let mut off = SwitchedOff::default();
        off.push(Kind::Tool, "b", None);
        off.push(Kind::Resource, "r", Some("x://r"));
        let visible = without(off);
        let list = |field: &str, entries: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": { field: entries, "nextCursor": "2" } });
        let (a, b) = (json!({ "name": "a", "inputSchema": { "z": 1, "a": 2 } }), json!({ "name": "b" }));
        for (kind, answer, expected) in [
            (Some(Kind::Tool), list("tools", json!([a, b])), Some(list("tools", json!([a])))),
            (Some(Kind::Tool), list("tools", json!([a])), None),
            (Some(Kind::Prompt), list("prompts", json!([b])), None),
            (None, list("tools", json!([b])), Some(list("tools", json!([])))),
            (
                Some(Kind::Resource),
                list("resources", json!([{ "name": "other", "uri": "x://r" }, { "name": "q", "uri": "x://q" }])),
                Some(list("resources", json!([{ "name": "q", "uri": "x://q" }]))),
            ),
            (Some(Kind::Tool), json!({ "id": 1, "error": { "code": 1 } }), None),
        ] {
            let passed = filtered(kind, answer.to_string().as_bytes(), &visible).unwrap();
            assert_eq!(passed.map(|text| serde_json::from_slice::<Value>(&text).unwrap()), expected, "{answer}");
        }
    }

    #[test]
    fn a_list_that_could_be_read_otherwise_is_refused() {
        let mut off = SwitchedOff::default();
        off.push(Kind::Tool, "b", None);
        let visible = without(off);
        for message in [
            r#"{"id":1,"result":{"tools":[],"tools":[{"name":"b"}]}}"#,
            r#"{"id":1,"result":{"Tools":[{"name":"b"}]}}"#,
            r#"{"id":1,"result":{"tools":{"name":"b"}}}"#,
            r#"{"id":1,"result":{"tools":[{"name":"b","description":"\ud800"}]}}"#,
        ] {
            for kind in [None, Some(Kind::Tool)] {
                assert_eq!(filtered(kind, message.as_bytes(), &visible), Err(BadList::Unreadable), "{message}");
            }
        }
    }

    #[test]
    fn a_list_without_end_is_refused_even_if_everything_may_be_seen() {
        let long = vec![b' '; MAX_LIST + 1];
        assert_eq!(filtered(Some(Kind::Tool), &long, &Visible::default()), Err(BadList::TooLong));
        let many = json!({ "result": { "tools": vec![json!({ "name": "a" }); MAX_ENTRIES + 1] } }).to_string();
        let mut off = SwitchedOff::default();
        off.push(Kind::Tool, "b", None);
        assert_eq!(filtered(Some(Kind::Tool), many.as_bytes(), &without(off)), Err(BadList::TooMany));
    }
}
