//! A Converse request → the model. The model's name and the wish for a stream stand in the path; whoever took them from
//! there says them as other formats do.

use super::blocks::{read_cache, read_content};
use super::tools;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_PARTS, MAX_TURNS};
use crate::wire::conversation::{
    Extra, JsonSchemaFormat, Request, ResponseFormat, Role, Settings, SystemText, Turn, WireFormat,
};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Converse;

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let model = body.string("model")?.or(body.string("modelId")?);
    let mut request = Request { model, ..Request::default() };
    let is_streaming = body.boolean("stream")?.unwrap_or(false);
    read_system(&mut body, &mut request)?;
    read_messages(&mut body, &mut request)?;
    tools::read(&mut body, &mut request)?;
    request.settings = Settings { is_streaming, ..read_settings(&mut body)? };
    request.response_format = read_format(&mut body)?;
    request.extra = Extra::new(FORMAT, body.rest());
    Ok(request)
}

fn read_system(body: &mut Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = body.path;
    let path = path.field("system");
    for (index, value) in body.bounded_list("system", MAX_PARTS)?.into_iter().enumerate() {
        let mut block = Fields::new(value, path.item(index))?;
        if let Some(point) = block.object("cachePoint")? {
            if let Some(last) = request.system.last_mut() {
                last.cache = Some(read_cache(point));
            }
        } else if let Some(text) = block.string("text")? {
            request.system.push(SystemText { text, ..SystemText::default() });
        }
    }
    Ok(())
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
        let content = message.bounded_list("content", MAX_PARTS)?;
        request.turns.push(Turn::new(role, read_content(content, &item.field("content"))?));
    }
    Ok(())
}

/// Claude's own fields are understood and put back with the rest of theirs.
fn read_settings(body: &mut Fields<'_>) -> Result<Settings, CodecError> {
    let path = body.path;
    let mut settings = Settings::default();
    if let Some(object) = body.object("inferenceConfig")? {
        let mut config = Fields::from_map(object, path.field("inferenceConfig"));
        settings.max_tokens = config.integer("maxTokens")?;
        settings.temperature = config.number("temperature")?;
        settings.top_p = config.number("topP")?;
        settings.stop = config.strings("stopSequences")?;
    }
    if let Some(object) = body.object("additionalModelRequestFields")? {
        let inner = path.field("additionalModelRequestFields");
        let mut fields = Fields::from_map(object, inner);
        settings.top_k = fields.integer("top_k")?;
        if let Some(thinking) = fields.object("thinking")? {
            let thinking = Fields::from_map(thinking, inner.field("thinking"));
            crate::wire::codecs::reasoning::read_thinking(thinking, &mut settings.reasoning)?;
        }
        settings.user = fields.inner("metadata").string("user_id")?;
        let rest = fields.rest();
        if !rest.is_empty() {
            body.put("additionalModelRequestFields", Value::Object(rest));
        }
    }
    settings.metadata = body.object("requestMetadata")?;
    settings.service_tier = body.inner("serviceTier").string("type")?;
    Ok(settings)
}

/// The schema is JSON in a string there.
fn read_format(body: &mut Fields<'_>) -> Result<Option<ResponseFormat>, CodecError> {
    let path = body.path;
    let mut config = body.inner("outputConfig");
    let mut definition = config.inner("textFormat").inner("structure").inner("jsonSchema");
    let Some(text) = definition.string("schema")? else { return Ok(None) };
    let path = path.field("outputConfig.textFormat.structure.jsonSchema.schema");
    let schema = serde_json::from_str(&text).map_err(|_| path.problem("is not JSON"))?;
    Ok(Some(ResponseFormat::JsonSchema(JsonSchemaFormat {
        name: definition.string("name")?,
        description: definition.string("description")?,
        schema,
        strict: None,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{}"#, "`messages` is missing"),
            (r#"{"messages":[{"role":"tool"}]}"#, "`messages[0].role` is not a known role"),
            (
                r#"{"messages":[{"role":"user","content":[{"toolResult":{}}]}]}"#,
                "`messages[0].content[0].toolResult.toolUseId` is missing",
            ),
            (
                r#"{"messages":[],"inferenceConfig":{"maxTokens":"9"}}"#,
                "`inferenceConfig.maxTokens` must be an integer that is not negative",
            ),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }
}
