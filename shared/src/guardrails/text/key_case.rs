//! Names of fields in other letters. Some readers take `Messages` for `messages`, and of both the last: what a check judged would
//! not be what such a provider reads.

use super::every_text::is_own_part;
use serde_json::Value;

/// Fields that hold texts, or lead to them. Vendors that write a name in two ways have both here.
const KNOWN: &[&str] = &[
    "args",
    "arguments",
    "candidates",
    "code",
    "content",
    "contents",
    "context",
    "custom",
    "data",
    "document",
    "documents",
    "functionCall",
    "functionDeclarations",
    "functionResponse",
    "function",
    "function_call",
    "functions",
    "generationConfig",
    "guardContent",
    "input",
    "input_schema",
    "inputSchema",
    "instructions",
    "json",
    "json_schema",
    "message",
    "messages",
    "model",
    "output",
    "parameters",
    "parts",
    "prediction",
    "prompt",
    "promptVariables",
    "query",
    "reasoning_content",
    "refusal",
    "response_format",
    "role",
    "schema",
    "source",
    "stream",
    "suffix",
    "system",
    "systemInstruction",
    "system_instruction",
    "text",
    "thinking",
    "tool_calls",
    "toolConfig",
    "toolResult",
    "toolSpec",
    "toolUse",
    "tools",
    "type",
    "variables",
];

/// The first name of a body that is a known one in other letters. The caller's own parts have names of their own.
pub fn other_letters(body: &Value) -> Option<&str> {
    match body {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            if is_other_spelling(key) {
                return Some(key.as_str());
            }
            if is_own_part(key, value) { None } else { other_letters(value) }
        }),
        Value::Array(items) => items.iter().find_map(other_letters),
        _ => None,
    }
}

fn is_other_spelling(key: &str) -> bool {
    // Most names are written as they should be, and a name that has no capital and is ASCII is no other's.
    if !key.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) || KNOWN.contains(&key) {
        return false;
    }
    let folded = fold(key);
    KNOWN.iter().any(|known| fold(known) == folded)
}

/// As readers compare that pass over case: `ſ` is an s to them, and the sign of kelvin a k.
fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_names_in_other_letters_are_found_but_in_parts_of_the_callers_own() {
        for (body, expected) in [
            (json!({ "messages": [{ "role": "user", "content": "x" }], "max_tokens": 1 }), None),
            (json!({ "messages": [], "Messages": [] }), Some("Messages")),
            (json!({ "MESSAGES": [] }), Some("MESSAGES")),
            (json!({ "me\u{17f}sages": [] }), Some("me\u{17f}sages")),
            (json!({ "messages": [{ "role": "user", "Content": "x" }] }), Some("Content")),
            (json!({ "tools": [{ "function": { "Parameters": {} } }] }), Some("Parameters")),
            (json!({ "tools": [{ "function": { "parameters": { "properties": { "Content": {} } } } }] }), None),
            (json!({ "messages": [{ "content": [{ "type": "tool_use", "input": { "Text": "x" } }] }] }), None),
            (json!({ "systemInstruction": {}, "generationConfig": { "Temperature": 1 } }), None),
            (json!({ "toolConfig": {}, "inferenceConfig": {}, "X-Own": 1, "é": 1 }), None),
            (json!([{ "Prompt": "x" }]), Some("Prompt")),
        ] {
            assert_eq!(other_letters(&body), expected, "{body}");
        }
    }
}
