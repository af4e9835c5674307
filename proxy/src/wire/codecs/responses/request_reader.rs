//! A responses request → the model (contract 6.4).

use super::items::{read_content, read_item};
use super::known_tools;
use super::tools::{read_named_choice, read_tools};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_TURNS, check_count};
use crate::wire::conversation::{
    Effort, Extra, JsonSchemaFormat, Part, Reasoning, Request, ResponseFormat, Role, Settings, SystemText, ToolResult,
    Turn, WireFormat,
};
use serde_json::{Map, Value};
use std::collections::HashMap;

const FORMAT: WireFormat = WireFormat::Responses;
const LOGPROBS: &str = "message.output_text.logprobs";

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    let mut request = Request { model: body.string("model")?, ..Request::default() };
    if let Some(text) = body.string("instructions")? {
        request.system.push(SystemText { text, ..SystemText::default() });
    }
    read_input(body.take("input"), &path.field("input"), &mut request)?;
    read_tools(&mut body, &mut request)?;
    if let Some(choice) = body.take("tool_choice") {
        request.tool_choice = Some(read_named_choice(choice, &path.field("tool_choice"))?);
    }
    request.settings = read_settings(&mut body)?;
    let mut text = match body.object("text")? {
        Some(object) => Fields::from_map(object, path.field("text")),
        None => Fields::from_map(Map::new(), path.field("text")),
    };
    if let Some(format) = text.object("format")? {
        request.response_format = Some(read_format(Fields::from_map(format, path.field("text.format")))?);
    }
    let mut rest = body.rest();
    let unknown_text = text.rest();
    if !unknown_text.is_empty() {
        rest.insert("text".into(), Value::Object(unknown_text));
    }
    request.extra = Extra::new(FORMAT, rest);
    Ok(request)
}

fn read_input(input: Option<Value>, path: &FieldPath<'_>, request: &mut Request) -> Result<(), CodecError> {
    let list = match input {
        None => return Err(path.problem("is missing")),
        Some(Value::String(text)) => {
            request.turns.push(Turn::new(Role::User, vec![Part::text(text)]));
            return Ok(());
        }
        Some(Value::Array(list)) => list,
        Some(_) => return Err(path.problem("must be a string or a list of items")),
    };
    check_count(&list, MAX_TURNS, path)?;
    // Ids of items by those of their calls: the output of a shell may name the one or the other.
    let mut calls: HashMap<String, String> = HashMap::new();
    for (index, value) in list.into_iter().enumerate() {
        let place = path.item(index);
        let mut item = Fields::new(value, place)?;
        if item.peek_str("type").is_some_and(|kind| known_tools::by_call(kind).is_some())
            && let (Some(id), Some(call)) = (item.peek_str("id"), item.peek_str("call_id"))
        {
            calls.insert(id.to_owned(), call.to_owned());
        }
        match item.peek_str("type") {
            None | Some("message") => read_message(item, request)?,
            Some("function_call_output" | "custom_tool_call_output") => {
                let id = item.required_string("call_id")?;
                let parts = read_content(item.take("output"), &place.field("output"), &mut Vec::new())?;
                let result = Part::ToolResult(ToolResult { id, parts, ..ToolResult::default() });
                push_part(request, Role::User, result);
            }
            Some(kind) if known_tools::is_output(kind) => {
                let id = item.string("id")?.unwrap_or_default();
                let id = item.string("call_id")?.or_else(|| calls.get(&id).cloned()).unwrap_or(id);
                let is_error = item.peek_str("status").is_some_and(|status| matches!(status, "failed" | "incomplete"));
                let parts = read_content(item.take("output"), &place.field("output"), &mut Vec::new())?;
                let result = Part::ToolResult(ToolResult { id, parts, is_error, ..ToolResult::default() });
                push_part(request, Role::User, result);
            }
            _ => push_part(request, Role::Assistant, read_item(item)?),
        }
    }
    Ok(())
}

fn read_message(mut item: Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let place = item.path;
    let role = item.required_string("role")?;
    let parts = read_content(item.take("content"), &place.field("content"), &mut Vec::new())?;
    match role.as_str() {
        "system" | "developer" if request.turns.is_empty() => {
            let is_developer = role == "developer";
            request.system.extend(parts.into_iter().filter_map(|part| match part {
                Part::Text(text) => Some(SystemText { text: text.text, is_developer, cache: None }),
                _ => None,
            }));
        }
        "system" | "developer" => request.turns.push(Turn::new(Role::System, parts)),
        "user" => request.turns.push(Turn::new(Role::User, parts)),
        "assistant" => parts.into_iter().for_each(|part| push_part(request, Role::Assistant, part)),
        _ => return Err(place.field("role").problem("is not a known role")),
    }
    Ok(())
}

/// What a model said in several items is one turn, and so are the outputs of parallel calls.
fn push_part(request: &mut Request, role: Role, part: Part) {
    match request.turns.last_mut() {
        Some(turn) if turn.role == role && (role == Role::Assistant || is_result(turn.parts.last())) => {
            turn.parts.push(part);
        }
        _ => request.turns.push(Turn::new(role, vec![part])),
    }
}

fn is_result(part: Option<&Part>) -> bool {
    matches!(part, Some(Part::ToolResult(_)))
}

fn read_format(mut format: Fields<'_>) -> Result<ResponseFormat, CodecError> {
    let path = format.path;
    match format.required_string("type")?.as_str() {
        "text" => Ok(ResponseFormat::Text),
        "json_object" => Ok(ResponseFormat::JsonObject),
        "json_schema" => Ok(ResponseFormat::JsonSchema(JsonSchemaFormat {
            name: format.string("name")?,
            description: format.string("description")?,
            schema: format.take("schema").unwrap_or_else(|| Value::Object(Map::new())),
            strict: format.boolean("strict")?,
        })),
        _ => Err(path.field("type").problem("is not a known format")),
    }
}

fn read_settings(body: &mut Fields<'_>) -> Result<Settings, CodecError> {
    let path = body.path;
    let mut reasoning = Reasoning::default();
    if let Some(object) = body.object("reasoning")? {
        let mut fields = Fields::from_map(object, path.field("reasoning"));
        if let Some(word) = fields.string("effort")? {
            let unknown = || path.field("reasoning.effort").problem("is not a known effort");
            reasoning.effort = Some(Effort::from_name(&word).ok_or_else(unknown)?);
        }
        reasoning.summary = fields.string("summary")?;
    }
    let mut include = body.strings("include")?;
    let asked = include.len();
    include.retain(|name| name != LOGPROBS);
    let logprobs = (include.len() < asked).then_some(true);
    let settings = Settings {
        max_tokens: body.integer("max_output_tokens")?,
        temperature: body.number("temperature")?,
        top_p: body.number("top_p")?,
        top_logprobs: body.integer("top_logprobs")?,
        logprobs,
        parallel_tool_calls: body.boolean("parallel_tool_calls")?,
        user: body.string("user")?,
        metadata: body.object("metadata")?,
        service_tier: body.string("service_tier")?,
        is_streaming: body.boolean("stream")?.unwrap_or(false),
        reasoning,
        ..Settings::default()
    };
    if !include.is_empty() {
        body.put("include", Value::from(include));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{"model":"m"}"#, "`input` is missing"),
            (r#"{"input":7}"#, "`input` must be a string or a list of items"),
            (r#"{"input":[{"content":"x"}]}"#, "`input[0].role` is missing"),
            (r#"{"input":[{"type":"function_call_output"}]}"#, "`input[0].call_id` is missing"),
            (r#"{"input":"x","text":{"format":{"type":"xml"}}}"#, "`text.format.type` is not a known format"),
            (r#"{"input":"x","reasoning":{"effort":"vast"}}"#, "`reasoning.effort` is not a known effort"),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }
}
