//! A messages request → the model.

use super::block_reader::read_content;
use super::tools;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_TURNS};
use crate::wire::codecs::reasoning::read_thinking;
use crate::wire::conversation::{
    Effort, Extra, JsonSchemaFormat, Part, Reasoning, Request, ResponseFormat, Role, Settings, SystemText, Turn,
    WireFormat,
};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Messages;

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    let mut request = Request { model: body.string("model")?, ..Request::default() };
    let system = read_content(body.take("system"), &path.field("system"))?;
    request.system.extend(system.into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(SystemText { text: text.text, is_developer: false, cache: text.cache }),
        _ => None,
    }));
    read_messages(&mut body, &mut request)?;
    request.tools = tools::read_tools(&mut body)?;
    let (choice, is_parallel) = tools::read_choice(&mut body)?;
    request.tool_choice = choice;
    request.settings = read_settings(&mut body)?;
    request.settings.parallel_tool_calls = is_parallel;
    if let Some(object) = body.object("output_config")? {
        read_output_config(Fields::from_map(object, path.field("output_config")), &mut request)?;
    }
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
        let role = match message.required_string("role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => return Err(item.field("role").problem("is not a known role")),
        };
        let parts = read_content(message.take("content"), &item.field("content"))?;
        let extra = Extra::new(FORMAT, message.rest());
        request.turns.push(Turn { role, parts, name: None, extra });
    }
    Ok(())
}

fn read_settings(body: &mut Fields<'_>) -> Result<Settings, CodecError> {
    let path = body.path;
    let mut reasoning = Reasoning::default();
    if let Some(thinking) = body.object("thinking")? {
        read_thinking(Fields::from_map(thinking, path.field("thinking")), &mut reasoning)?;
    }
    let tier = body.string("service_tier")?.map(|tier| match tier.as_str() {
        "standard_only" => "default".to_owned(),
        _ => tier,
    });
    // Of the metadata only the user is known; anything else would be refused there.
    let user = body.inner("metadata").string("user_id")?;
    Ok(Settings {
        max_tokens: body.integer("max_tokens")?,
        temperature: body.number("temperature")?,
        top_p: body.number("top_p")?,
        top_k: body.integer("top_k")?,
        stop: body.strings("stop_sequences")?,
        is_streaming: body.boolean("stream")?.unwrap_or(false),
        user,
        service_tier: tier,
        reasoning,
        ..Settings::default()
    })
}

fn read_output_config(mut config: Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = config.path;
    if let Some(word) = config.string("effort")? {
        let unknown = || path.field("effort").problem("is not a known effort");
        request.settings.reasoning.effort = Some(Effort::from_name(&word).ok_or_else(unknown)?);
    }
    let Some(format) = config.object("format")? else { return Ok(()) };
    let inner = path.field("format");
    let mut format = Fields::from_map(format, inner);
    if format.required_string("type")? != "json_schema" {
        return Err(inner.field("type").problem("is not json_schema"));
    }
    request.response_format = Some(ResponseFormat::JsonSchema(JsonSchemaFormat {
        name: format.string("name")?,
        description: None,
        schema: format.take("schema").unwrap_or_else(|| Value::Object(Map::new())),
        strict: None,
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{"model":"m"}"#, "`messages` is missing"),
            (r#"{"messages":[{"role":"tool","content":"x"}]}"#, "`messages[0].role` is not a known role"),
            (r#"{"messages":[{"role":"user","content":[{"text":"x"}]}]}"#, "`messages[0].content[0].type` is missing"),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"image"}]}]}"#,
                "`messages[0].content[0].source` is missing",
            ),
            (r#"{"messages":[],"tool_choice":{"type":"most"}}"#, "`tool_choice.type` is not a known choice of tools"),
            (r#"{"messages":[],"thinking":{"type":"deep"}}"#, "`thinking.type` is not enabled, adaptive or disabled"),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }
}
