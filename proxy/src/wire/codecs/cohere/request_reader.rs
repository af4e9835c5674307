//! A Cohere request → the model.

use super::{read_calls, read_content};
use crate::wire::codecs::chat::tools::read_tools;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_TURNS};
use crate::wire::conversation::{
    Extra, JsonSchemaFormat, Part, Reasoning, Request, ResponseFormat, Role, Settings, SystemText, Thinking, Tool,
    ToolChoice, ToolResult, Turn, WireFormat,
};

const FORMAT: WireFormat = WireFormat::Cohere;

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    let mut request = Request { model: body.string("model")?, ..Request::default() };
    read_messages(&mut body, &mut request)?;
    request.tools = read_tools(&mut body, FORMAT)?;
    if let Some(strict) = body.boolean("strict_tools")? {
        for tool in &mut request.tools {
            if let Tool::Function(function) = tool {
                function.strict = Some(strict);
            }
        }
    }
    request.tool_choice = match body.string("tool_choice")?.as_deref() {
        None => None,
        Some("REQUIRED") => Some(ToolChoice::Required),
        Some("NONE") => Some(ToolChoice::None),
        Some(_) => return Err(path.field("tool_choice").problem("is not REQUIRED or NONE")),
    };
    if let Some(object) = body.object("response_format")? {
        let mut format = Fields::from_map(object, path.field("response_format"));
        let schema = format.take("json_schema").or_else(|| format.take("schema"));
        request.response_format = match (format.string("type")?.as_deref(), schema) {
            (Some("json_object"), Some(schema)) => Some(ResponseFormat::JsonSchema(JsonSchemaFormat {
                name: None,
                description: None,
                schema,
                strict: None,
            })),
            (Some("json_object"), None) => Some(ResponseFormat::JsonObject),
            (Some("text"), _) => Some(ResponseFormat::Text),
            _ => return Err(path.field("response_format.type").problem("is not text or json_object")),
        };
    }
    request.settings = read_settings(&mut body)?;
    request.extra = Extra::new(FORMAT, body.rest());
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
        let mut parts = read_content(message.take("content"), &item.field("content"))?;
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
            "assistant" => {
                if let Some(text) = message.string("tool_plan")? {
                    parts.insert(0, Part::Thinking(Thinking { text, ..Thinking::default() }));
                }
                read_calls(&mut message, &mut parts)?;
                let extra = Extra::new(FORMAT, message.rest());
                request.turns.push(Turn { role: Role::Assistant, parts, name: None, extra });
            }
            "tool" => {
                let id = message.required_string("tool_call_id")?;
                push_result(request, Part::ToolResult(ToolResult { id, parts, ..ToolResult::default() }));
            }
            _ => return Err(item.field("role").problem("is not a known role")),
        }
    }
    Ok(())
}

fn push_result(request: &mut Request, result: Part) {
    match request.turns.last_mut() {
        Some(turn) if matches!(turn.parts.last(), Some(Part::ToolResult(_))) => turn.parts.push(result),
        _ => request.turns.push(Turn::new(Role::User, vec![result])),
    }
}

fn read_settings(body: &mut Fields<'_>) -> Result<Settings, CodecError> {
    let mut reasoning = Reasoning::default();
    let mut thinking = body.inner("thinking");
    match thinking.string("type")?.as_deref() {
        Some("enabled") => {
            reasoning.budget = thinking.integer("token_budget")?;
            reasoning.is_adaptive = reasoning.budget.is_none();
        }
        Some("disabled") => reasoning.is_disabled = true,
        _ => {}
    }
    Ok(Settings {
        max_tokens: body.integer("max_tokens")?,
        temperature: body.number("temperature")?,
        top_p: body.number("p")?,
        top_k: body.integer("k")?,
        stop: body.strings("stop_sequences")?,
        seed: body.integer("seed")?.and_then(|seed| i64::try_from(seed).ok()),
        presence_penalty: body.number("presence_penalty")?,
        frequency_penalty: body.number("frequency_penalty")?,
        logprobs: body.boolean("logprobs")?,
        is_streaming: body.boolean("stream")?.unwrap_or(false),
        reasoning,
        ..Settings::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{"model":"m"}"#, "`messages` is missing"),
            (r#"{"messages":[{"role":"chatbot"}]}"#, "`messages[0].role` is not a known role"),
            (r#"{"messages":[],"tool_choice":"AUTO"}"#, "`tool_choice` is not REQUIRED or NONE"),
            (
                r#"{"messages":[],"response_format":{"type":"json_schema"}}"#,
                "`response_format.type` is not text or json_object",
            ),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }
}
