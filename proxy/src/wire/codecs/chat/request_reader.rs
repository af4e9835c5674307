//! A chat request → the model. Leading system messages are system texts; later ones stay where they are.

use super::content::{self, read_cache};
use super::tools::{read_choice, read_function, read_tools};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_PARTS, MAX_TOOLS, MAX_TURNS};
use crate::wire::conversation::{
    Effort, Extra, JsonSchemaFormat, Media, MediaSource, Part, Reasoning, Request, ResponseFormat, Role, Settings,
    Signature, Signer, SystemText, TextPart, Thinking, Tool, ToolChoice, ToolResult, ToolUse, Turn, WireFormat,
};
use serde_json::Value;

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let mut request = Request { model: body.string("model")?, ..Request::default() };
    read_messages(&mut body, &mut request)?;
    request.tools = read_tools(&mut body, WireFormat::Chat)?;
    read_legacy_functions(&mut body, &mut request)?;
    let path = body.path;
    if let Some(choice) = body.take("tool_choice") {
        request.tool_choice = Some(read_choice(choice, &path.field("tool_choice"))?);
    }
    if let Some(format) = body.object("response_format")? {
        let path = path.field("response_format");
        request.response_format = Some(read_response_format(Fields::from_map(format, path))?);
    }
    request.settings = read_settings(&mut body)?;
    request.extra = Extra::new(WireFormat::Chat, body.rest());
    Ok(request)
}

fn read_messages(body: &mut Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = body.path;
    let path = path.field("messages");
    if !body.has("messages") {
        return Err(path.problem("is missing"));
    }
    for (index, value) in body.bounded_list("messages", MAX_TURNS)?.into_iter().enumerate() {
        let item = path.item(index);
        let mut message = Fields::new(value, item)?;
        let role = message.required_string("role")?;
        match role.as_str() {
            "system" | "developer" => read_system(message, role == "developer", request)?,
            "user" => {
                let turn = read_user(message)?;
                request.turns.push(turn);
            }
            "assistant" => {
                let turn = read_assistant(message)?;
                request.turns.push(turn);
            }
            "tool" | "function" => {
                let result = read_tool_message(&mut message)?;
                push_tool_result(request, result);
            }
            _ => return Err(item.field("role").problem("is not a known role")),
        }
    }
    Ok(())
}

fn read_system(mut message: Fields<'_>, is_developer: bool, request: &mut Request) -> Result<(), CodecError> {
    let path = message.path;
    let cache = read_cache(&mut message)?;
    let mut parts = content::read(message.take("content"), &path.field("content"))?;
    set_cache_of_last(&mut parts, cache);
    if !request.turns.is_empty() {
        request.turns.push(Turn::new(Role::System, parts));
        return Ok(());
    }
    request.system.extend(parts.into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(SystemText { text: text.text, is_developer, cache: text.cache }),
        _ => None,
    }));
    Ok(())
}

fn read_user(mut message: Fields<'_>) -> Result<Turn, CodecError> {
    let path = message.path;
    let cache = read_cache(&mut message)?;
    let mut parts = content::read(message.take("content"), &path.field("content"))?;
    set_cache_of_last(&mut parts, cache);
    let name = message.string("name")?;
    Ok(Turn { role: Role::User, parts, name, extra: Extra::new(WireFormat::Chat, message.rest()) })
}

fn read_assistant(mut message: Fields<'_>) -> Result<Turn, CodecError> {
    let path = message.path;
    let cache = read_cache(&mut message)?;
    let plain = content::read(message.take("content"), &path.field("content"))?;
    let blocks = content::read(message.take("content_blocks"), &path.field("content_blocks"))?;
    let thought = message.string("reasoning_content")?;
    let mut parts = if blocks.is_empty() { plain } else { blocks };
    if let Some(text) = thought
        && !parts.iter().any(|part| matches!(part, Part::Thinking(_)))
    {
        parts.insert(0, Part::Thinking(Thinking { text, ..Thinking::default() }));
    }
    parts.extend(message.string("refusal")?.map(Part::Refusal));
    if let Some(audio) = message.object("audio")? {
        let id = Fields::from_map(audio, path.field("audio")).required_string("id")?;
        parts.push(Part::Audio(Media::new(MediaSource::FileId(id), None)));
    }
    let calls = path.field("tool_calls");
    for (index, value) in message.bounded_list("tool_calls", MAX_PARTS)?.into_iter().enumerate() {
        parts.push(Part::ToolUse(read_call(Fields::new(value, calls.item(index))?)?));
    }
    if let Some(call) = message.object("function_call")? {
        let mut call = Fields::from_map(call, path.field("function_call"));
        let name = call.required_string("name")?;
        let arguments = call.string("arguments")?.unwrap_or_default();
        parts.push(Part::ToolUse(ToolUse { id: legacy_id(&name), name, arguments, ..ToolUse::default() }));
    }
    set_cache_of_last(&mut parts, cache);
    let name = message.string("name")?;
    Ok(Turn { role: Role::Assistant, parts, name, extra: Extra::new(WireFormat::Chat, message.rest()) })
}

pub(in crate::wire::codecs) fn read_call(mut call: Fields<'_>) -> Result<ToolUse, CodecError> {
    let path = call.path;
    let id = call.string("id")?.unwrap_or_default();
    let inner = path.field("function");
    let function = call.object("function")?.ok_or_else(|| inner.problem("is missing"))?;
    let mut function = Fields::from_map(function, inner);
    let name = function.required_string("name")?;
    let arguments = match function.take("arguments") {
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let signature = function.string("thought_signature")?.map(|value| Signature::new(Signer::Google, value));
    Ok(ToolUse { id, name, arguments, signature, cache: None })
}

fn read_tool_message(message: &mut Fields<'_>) -> Result<ToolResult, CodecError> {
    let path = message.path;
    let cache = read_cache(message)?;
    let name = message.string("name")?;
    let id = match (message.string("tool_call_id")?, &name) {
        (Some(id), _) => id,
        (None, Some(name)) => legacy_id(name),
        (None, None) => return Err(path.field("tool_call_id").problem("is missing")),
    };
    let parts = content::read(message.take("content"), &path.field("content"))?;
    Ok(ToolResult { id, name, parts, is_error: false, cache })
}

/// The results of parallel calls are one turn.
fn push_tool_result(request: &mut Request, result: ToolResult) {
    let result = Part::ToolResult(result);
    match request.turns.last_mut() {
        Some(Turn { role: Role::User, parts, .. })
            if parts.last().is_some_and(|part| matches!(part, Part::ToolResult(_))) =>
        {
            parts.push(result);
        }
        _ => request.turns.push(Turn::new(Role::User, vec![result])),
    }
}

/// The calls of before 2024 have no ids; there is one at a time, so its name will do.
fn legacy_id(name: &str) -> String {
    ["call_", name].concat()
}

fn read_legacy_functions(body: &mut Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = body.path;
    let list = path.field("functions");
    for (index, value) in body.bounded_list("functions", MAX_TOOLS)?.into_iter().enumerate() {
        let function = Fields::new(value, list.item(index))?;
        request.tools.push(Tool::Function(read_function(function, WireFormat::Chat)?));
    }
    match body.take("function_call") {
        None => {}
        Some(Value::Object(map)) => {
            let mut named = Fields::from_map(map, path.field("function_call"));
            request.tool_choice = Some(ToolChoice::Named(named.required_string("name")?));
        }
        Some(word) => request.tool_choice = Some(read_choice(word, &path.field("function_call"))?),
    }
    Ok(())
}

fn read_response_format(mut format: Fields<'_>) -> Result<ResponseFormat, CodecError> {
    let path = format.path;
    match format.required_string("type")?.as_str() {
        "text" => Ok(ResponseFormat::Text),
        "json_object" => Ok(ResponseFormat::JsonObject),
        "json_schema" => {
            let inner = path.field("json_schema");
            let object = format.object("json_schema")?.ok_or_else(|| inner.problem("is missing"))?;
            let mut inner = Fields::from_map(object, inner);
            Ok(ResponseFormat::JsonSchema(JsonSchemaFormat {
                name: inner.string("name")?,
                description: inner.string("description")?,
                schema: inner.take("schema").unwrap_or_else(|| Value::Object(serde_json::Map::new())),
                strict: inner.boolean("strict")?,
            }))
        }
        _ => Err(path.field("type").problem("is not a known response format")),
    }
}

fn read_settings(body: &mut Fields<'_>) -> Result<Settings, CodecError> {
    let path = body.path;
    // Both are taken; the newer name wins (contract 7.0).
    let (newer, older) = (body.integer("max_completion_tokens")?, body.integer("max_tokens")?);
    let stream_options = body.object("stream_options")?;
    let include_usage = stream_options.as_ref().and_then(|options| options.get("include_usage")?.as_bool());
    let seed = match body.take("seed") {
        None => None,
        Some(value) => Some(value.as_i64().ok_or_else(|| path.field("seed").problem("must be an integer"))?),
    };
    Ok(Settings {
        max_tokens: newer.or(older),
        temperature: body.number("temperature")?,
        top_p: body.number("top_p")?,
        top_k: body.integer("top_k")?,
        stop: body.strings("stop")?,
        seed,
        n: body.integer("n")?,
        presence_penalty: body.number("presence_penalty")?,
        frequency_penalty: body.number("frequency_penalty")?,
        logit_bias: body.object("logit_bias")?,
        logprobs: body.boolean("logprobs")?,
        top_logprobs: body.integer("top_logprobs")?,
        parallel_tool_calls: body.boolean("parallel_tool_calls")?,
        reasoning: read_reasoning(body)?,
        user: body.string("user")?,
        metadata: body.object("metadata")?,
        service_tier: body.string("service_tier")?,
        modalities: body.strings("modalities")?,
        audio: body.object("audio")?,
        safety_settings: body.list("safety_settings")?,
        is_streaming: body.boolean("stream")?.unwrap_or(false),
        include_usage,
    })
}

/// `reasoning_effort` of OpenAI and the contract's `thinking`, which is Anthropic's.
fn read_reasoning(body: &mut Fields<'_>) -> Result<Reasoning, CodecError> {
    let path = body.path;
    let mut reasoning = Reasoning::default();
    if let Some(word) = body.string("reasoning_effort")? {
        let unknown = || path.field("reasoning_effort").problem("is not a known effort");
        reasoning.effort = Some(Effort::from_name(&word).ok_or_else(unknown)?);
    }
    if let Some(thinking) = body.object("thinking")? {
        crate::wire::codecs::reasoning::read_thinking(
            Fields::from_map(thinking, path.field("thinking")),
            &mut reasoning,
        )?;
    }
    Ok(reasoning)
}

fn set_cache_of_last(parts: &mut [Part], cache: Option<crate::wire::conversation::CacheControl>) {
    if cache.is_none() {
        return;
    }
    match parts.last_mut() {
        Some(Part::Text(TextPart { cache: own, .. })) => *own = cache,
        Some(Part::Image(media) | Part::File(media) | Part::Audio(media)) => media.cache = cache,
        Some(Part::ToolUse(call)) => call.cache = cache,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{"model":"m"}"#, "`messages` is missing"),
            (r#"{"messages":{}}"#, "`messages` must be a list"),
            (r#"{"messages":[{"content":"x"}]}"#, "`messages[0].role` is missing"),
            (r#"{"messages":[{"role":"judge"}]}"#, "`messages[0].role` is not a known role"),
            (r#"{"messages":[{"role":"tool","content":"x"}]}"#, "`messages[0].tool_call_id` is missing"),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#,
                "`messages[0].content[0].image_url` is missing",
            ),
            (r#"{"messages":[],"tool_choice":"maybe"}"#, "`tool_choice` is not a known choice of tools"),
            (r#"{"messages":[],"max_tokens":-1}"#, "`max_tokens` must be an integer that is not negative"),
            (r#"{"messages":[],"tools":[{"type":"function"}]}"#, "`tools[0].function` is missing"),
            (r#"{"messages":[],"reasoning_effort":"huge"}"#, "`reasoning_effort` is not a known effort"),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }
}
