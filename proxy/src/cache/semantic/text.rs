//! What a request asks, as one text: the words of all messages that are no system prompt. Requests that words alone do not
//! describe (pictures, sounds, tool calls) have none, nor have long conversations: they are looked up exactly only.

use serde_json::Value;

/// Of all roles.
const MAX_MESSAGES: usize = 4;
const MAX_TOKENS: usize = 8191;
/// For want of the model's own vocabulary.
const CHARS_PER_TOKEN: usize = 4;

/// The routes whose requests can be alike without being equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedRoute {
    Chat,
    Completions,
}

/// None when only an equal request may have the same answer.
pub fn asked_text(route: AskedRoute, body: &Value) -> Option<String> {
    let text = match route {
        AskedRoute::Chat => chat(body)?,
        AskedRoute::Completions => prompt(body.get("prompt")?)?.to_owned(),
    };
    // Of scripts other than ours a character is a token or more.
    let (plain, other) = text.chars().fold((0_usize, 0_usize), |(plain, other), char| match char.is_ascii() {
        true => (plain + 1, other),
        false => (plain, other + 1),
    });
    let tokens = plain.div_ceil(CHARS_PER_TOKEN) + other;
    (!text.trim().is_empty() && tokens < MAX_TOKENS).then_some(text)
}

/// Whether a message only sets the scene, and so belongs to what must be equal.
pub(super) fn is_scene(message: &Value) -> bool {
    matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

fn chat(body: &Value) -> Option<String> {
    let messages = body.get("messages")?.as_array()?;
    if messages.len() > MAX_MESSAGES {
        return None;
    }
    let (mut text, mut has_user) = (String::new(), false);
    for message in messages.iter().filter(|message| !is_scene(message)) {
        match message.get("role").and_then(Value::as_str)? {
            "user" => has_user = true,
            "assistant" => {}
            _ => return None,
        }
        if calls_tools(message) {
            return None;
        }
        append(&mut text, message.get("content")?)?;
    }
    has_user.then_some(text)
}

fn calls_tools(message: &Value) -> bool {
    ["tool_calls", "function_call", "audio"].iter().any(|key| {
        message.get(key).is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|calls| !calls.is_empty()))
    })
}

/// None for content with anything but text.
fn append(text: &mut String, content: &Value) -> Option<()> {
    match content {
        Value::String(words) => line(text, words),
        Value::Array(parts) => {
            for part in parts {
                let is_text = part.get("type").and_then(Value::as_str) == Some("text");
                line(text, part.get("text").and_then(Value::as_str).filter(|_| is_text)?);
            }
        }
        _ => return None,
    }
    Some(())
}

fn line(text: &mut String, words: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(words);
}

/// Several prompts have several answers, and tokens are no words.
fn prompt(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(prompts) if prompts.len() == 1 => prompts[0].as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(messages: Value) -> Option<String> {
        asked_text(AskedRoute::Chat, &json!({ "model": "m", "messages": messages }))
    }

    #[test]
    fn system_prompts_are_left_out_and_the_rest_is_joined() {
        let text = asked(json!([
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "two", "tool_calls": [] },
            { "role": "user", "content": [{ "type": "text", "text": "three" }, { "type": "text", "text": "four" }] },
        ]));
        assert_eq!(text.as_deref(), Some("one\ntwo\nthree\nfour"));
    }

    #[test]
    fn what_words_do_not_describe_has_no_text() {
        let user = json!({ "role": "user", "content": "a" });
        for (why, messages) in [
            ("no user", json!([{ "role": "system", "content": "a" }])),
            ("only an assistant", json!([{ "role": "assistant", "content": "a" }])),
            ("five messages", json!([user, user, user, user, user])),
            (
                "a picture",
                json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "u" } }] }]),
            ),
            ("a sound", json!([{ "role": "user", "content": [{ "type": "input_audio", "input_audio": {} }] }])),
            ("a tool call", json!([user, { "role": "assistant", "content": "a", "tool_calls": [{ "id": "1" }] }])),
            ("no content", json!([user, { "role": "assistant", "content": null }])),
            ("a tool's result", json!([user, { "role": "tool", "content": "a" }])),
            ("blank", json!([{ "role": "user", "content": "  " }])),
            ("no role", json!([{ "content": "a" }])),
            ("no messages", json!([])),
            ("no list", json!("a")),
        ] {
            assert_eq!(asked(messages), None, "{why}");
        }
    }

    #[test]
    fn a_text_is_shorter_than_8191_tokens() {
        let of = |char: &str, chars: usize| asked(json!([{ "role": "user", "content": char.repeat(chars) }]));
        assert!(of("e", 8190 * 4).is_some());
        assert!(of("e", 8190 * 4 + 1).is_none());
        assert!(of("語", 8190).is_some());
        assert!(of("語", 8191).is_none());
    }

    #[test]
    fn a_prompt_is_one_text() {
        for (prompt, text) in [
            (json!("a"), Some("a")),
            (json!(["a"]), Some("a")),
            (json!(["a", "b"]), None),
            (json!([1, 2]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let found = asked_text(AskedRoute::Completions, &json!({ "prompt": prompt }));
            assert_eq!(found.as_deref(), text, "{prompt}");
        }
    }
}
