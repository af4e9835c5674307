//! Searches of the web: what they find is put before the conversation. They judge nothing.

use super::super::remote::RemoteAnswer;
use super::super::subject::{Hook, Shape};
use super::super::verdict::Verdict;
use super::reading::{Judged, Reading};
use serde_json::{Value, json};

const PREFIX: &str = "\n<web_search_context>";
const SUFFIX: &str = "\n</web_search_context>";
/// Of one page that was found.
const MAX_TEXT: usize = 8000;

pub fn exa(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    with_found(reading, "text")
}

pub fn tavily(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    with_found(reading, "content")
}

fn with_found(reading: &Reading<'_>, field: &str) -> Result<Judged, Box<Verdict>> {
    let Some(results) = reading.json.get("results").and_then(Value::as_array) else {
        return Err(RemoteAnswer::senseless("it has no results").into());
    };
    let urls: Vec<&str> = results.iter().filter_map(|result| result["url"].as_str()).collect();
    let mut judged = Judged { passes: true, data: json!({ "found": urls }), ..Judged::default() };
    if !results.is_empty() && reading.subject.hook == Hook::BeforeRequest {
        judged.transformed = before(reading, &written(reading, results, field));
    }
    Ok(judged)
}

fn written(reading: &Reading<'_>, results: &[Value], field: &str) -> String {
    let or = |name: &str, usual: &str| reading.parameters.get(name).and_then(Value::as_str).unwrap_or(usual).to_owned();
    let mut text = or("prefix", PREFIX) + "\n";
    for (index, result) in results.iter().enumerate() {
        let field_text = |name: &str| result[name].as_str().unwrap_or_default();
        let page: String = field_text(field).chars().take(MAX_TEXT).collect();
        text += &format!("[{}] \"{}\"\nURL: {}\n{page}\n", index + 1, field_text("title"), field_text("url"));
    }
    text + &or("suffix", SUFFIX)
}

/// The request with a text before it; none where a request has no place for one.
fn before(reading: &Reading<'_>, text: &str) -> Option<Value> {
    let mut request = reading.subject.request.clone();
    match reading.subject.shape {
        Shape::Chat => {
            let messages = request.get_mut("messages")?.as_array_mut()?;
            let system = messages.iter_mut().find(|message| message["role"] == json!("system"));
            match system {
                Some(message) => append(message.get_mut("content")?, text)?,
                None => messages.insert(0, json!({ "role": "system", "content": text })),
            }
        }
        Shape::Messages => match request.get_mut("system") {
            Some(system) if !system.is_null() => append(system, text)?,
            _ => request["system"] = json!(text),
        },
        Shape::Responses => match request.get_mut("instructions") {
            Some(instructions) if !instructions.is_null() => append(instructions, text)?,
            _ => request["instructions"] = json!(text),
        },
        Shape::Gemini => {
            let name =
                ["systemInstruction", "system_instruction"].into_iter().find(|name| request.get(*name).is_some());
            let name = name.unwrap_or("systemInstruction");
            match request.get_mut(name).and_then(|system| system.get_mut("parts")).and_then(Value::as_array_mut) {
                Some(parts) => parts.push(json!({ "text": text })),
                None => request[name] = json!({ "parts": [{ "text": text }] }),
            }
        }
        Shape::Converse => match request.get_mut("system").and_then(Value::as_array_mut) {
            Some(parts) => parts.push(json!({ "text": text })),
            None => request["system"] = json!([{ "text": text }]),
        },
        Shape::Completions => {
            let prompt = request.get("prompt")?.as_str()?;
            request["prompt"] = json!(format!("{text}{prompt}"));
        }
        Shape::Embeddings | Shape::Other | Shape::Unread => return None,
    }
    Some(request)
}

/// After what stands there: a text, or parts.
fn append(content: &mut Value, text: &str) -> Option<()> {
    match content {
        Value::String(joined) => joined.push_str(text),
        Value::Array(parts) => parts.push(json!({ "type": "text", "text": text })),
        _ => return None,
    }
    Some(())
}
