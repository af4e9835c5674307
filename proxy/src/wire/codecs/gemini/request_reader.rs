//! A generateContent request → the model. Calls without ids are given some, and results find their calls by name.

use super::{parts, tools};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS, MAX_TURNS};
use crate::wire::codecs::schema;
use crate::wire::conversation::{
    Effort, Extra, JsonSchemaFormat, Part, Reasoning, Request, ResponseFormat, Role, Settings, SystemText, Turn,
    WireFormat,
};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Gemini;

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    // The path names the model and the stream; whoever took them from there says them like this.
    let mut request = Request { model: body.string("model")?, ..Request::default() };
    let is_streaming = body.boolean("stream")?.unwrap_or(false);
    if let Some(value) = body.either("systemInstruction", "system_instruction") {
        read_system(value, path.field("systemInstruction"), &mut request)?;
    }
    read_contents(&mut body, &mut request)?;
    request.tools = tools::read_tools(&mut body)?;
    request.tool_choice = tools::read_choice(&mut body)?;
    let mut rest = Map::new();
    if let Some(value) = body.either("generationConfig", "generation_config") {
        let mut config = Fields::new(value, path.field("generationConfig"))?;
        request.settings = read_settings(&mut config)?;
        request.response_format = read_format(&mut config)?;
        let unknown = config.rest();
        if !unknown.is_empty() {
            rest.insert("generationConfig".into(), Value::Object(unknown));
        }
    }
    request.settings.is_streaming = is_streaming;
    if let Some(Value::Array(list)) = body.either("safetySettings", "safety_settings") {
        request.settings.safety_settings = Some(list);
    }
    rest.extend(body.rest());
    request.extra = Extra::new(FORMAT, rest);
    Ok(request)
}

fn read_system(value: Value, path: FieldPath<'_>, request: &mut Request) -> Result<(), CodecError> {
    if let Value::String(text) = value {
        request.system.push(SystemText { text, ..SystemText::default() });
        return Ok(());
    }
    let mut content = Fields::new(value, path)?;
    for (index, value) in content.bounded_list("parts", MAX_PARTS)?.into_iter().enumerate() {
        if let Part::Text(text) = parts::read(value, path.field("parts").item(index))? {
            request.system.push(SystemText { text: text.text, ..SystemText::default() });
        }
    }
    Ok(())
}

fn read_contents(body: &mut Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = body.path;
    let path = path.field("contents");
    let list = match body.take("contents") {
        None => return Err(path.problem("is missing")),
        Some(Value::Array(list)) if list.len() > MAX_TURNS => {
            return Err(CodecError::TooMany { field: "contents".into(), most: MAX_TURNS });
        }
        Some(Value::Array(list)) => list,
        Some(one) => vec![one],
    };
    // Calls that wait for a result: their name and id.
    let mut waiting: Vec<(String, String)> = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let item = path.item(index);
        let mut content = Fields::new(value, item)?;
        let role = match content.string("role")?.as_deref() {
            None | Some("user" | "function" | "tool") => Role::User,
            Some("model") => Role::Assistant,
            Some(_) => return Err(item.field("role").problem("is not user or model")),
        };
        let mut turn = Turn::new(role, Vec::new());
        for (place, value) in content.bounded_list("parts", MAX_PARTS)?.into_iter().enumerate() {
            let mut part = parts::read(value, item.field("parts").item(place))?;
            match &mut part {
                Part::ToolUse(call) => {
                    if call.id.is_empty() {
                        call.id = format!("call_{index}_{place}");
                    }
                    waiting.push((call.name.clone(), call.id.clone()));
                }
                Part::ToolResult(result) if result.id.is_empty() => {
                    let found = waiting.iter().position(|(name, _)| Some(name) == result.name.as_ref());
                    result.id = match found {
                        Some(found) => waiting.remove(found).1,
                        None => format!("call_{index}_{place}"),
                    };
                }
                Part::ToolResult(result) => waiting.retain(|(_, id)| *id != result.id),
                _ => {}
            }
            turn.parts.push(part);
        }
        request.turns.push(turn);
    }
    Ok(())
}

fn read_settings(config: &mut Fields<'_>) -> Result<Settings, CodecError> {
    let path = config.path;
    let mut alias = |camel: &'static str, snake: &'static str| {
        let value = config.either(camel, snake);
        if let Some(value) = value {
            config.put(camel, value);
        }
        config.number(camel)
    };
    let count = |number: Option<f64>| number.filter(|number| *number >= 0.0).map(|number| number as u64);
    let (max_tokens, top_p) = (alias("maxOutputTokens", "max_output_tokens")?, alias("topP", "top_p")?);
    let (top_k, n) = (alias("topK", "top_k")?, alias("candidateCount", "candidate_count")?);
    let presence_penalty = alias("presencePenalty", "presence_penalty")?;
    let frequency_penalty = alias("frequencyPenalty", "frequency_penalty")?;
    let (seed, top_logprobs) = (alias("seed", "seed")?, alias("logprobs", "logprobs")?);
    let stop = match config.either("stopSequences", "stop_sequences") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let modalities = match config.either("responseModalities", "response_modalities") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_ascii_lowercase).collect(),
        _ => Vec::new(),
    };
    let logprobs = match config.either("responseLogprobs", "response_logprobs") {
        Some(Value::Bool(wanted)) => Some(wanted),
        _ => None,
    };
    let mut reasoning = Reasoning::default();
    if let Some(value) = config.either("thinkingConfig", "thinking_config") {
        read_thinking(Fields::new(value, path.field("thinkingConfig"))?, &mut reasoning)?;
    }
    Ok(Settings {
        max_tokens: count(max_tokens),
        temperature: config.number("temperature")?,
        top_p,
        top_k: count(top_k),
        stop,
        seed: seed.map(|seed| seed as i64),
        n: count(n),
        presence_penalty,
        frequency_penalty,
        logprobs,
        top_logprobs: count(top_logprobs),
        modalities,
        reasoning,
        ..Settings::default()
    })
}

fn read_thinking(mut config: Fields<'_>, reasoning: &mut Reasoning) -> Result<(), CodecError> {
    if let Some(Value::Bool(is_shown)) = config.either("includeThoughts", "include_thoughts") {
        reasoning.is_shown = Some(is_shown);
    }
    // −1 leaves it to the model.
    match config.either("thinkingBudget", "thinking_budget").and_then(|value| value.as_i64()) {
        Some(0) => reasoning.is_disabled = true,
        Some(budget) if budget > 0 => reasoning.budget = Some(budget.unsigned_abs()),
        Some(_) => reasoning.is_adaptive = true,
        None => {}
    }
    if let Some(Value::String(level)) = config.either("thinkingLevel", "thinking_level") {
        reasoning.effort = Effort::from_name(&level);
    }
    Ok(())
}

fn read_format(config: &mut Fields<'_>) -> Result<Option<ResponseFormat>, CodecError> {
    let mime = config.either_string("responseMimeType", "response_mime_type");
    let json_schema = config.either("responseJsonSchema", "response_json_schema");
    let own_schema = config.either("responseSchema", "response_schema").map(schema::from_google);
    Ok(match (mime.as_deref(), json_schema.or(own_schema)) {
        (_, Some(schema)) => {
            Some(ResponseFormat::JsonSchema(JsonSchemaFormat { name: None, description: None, schema, strict: None }))
        }
        (Some("application/json"), None) => Some(ResponseFormat::JsonObject),
        (Some("text/plain"), None) => Some(ResponseFormat::Text),
        (Some(other), None) => {
            config.put("responseMimeType", other.into());
            None
        }
        (None, None) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{}"#, "`contents` is missing"),
            (r#"{"contents":[{"role":"judge"}]}"#, "`contents[0].role` is not user or model"),
            (
                r#"{"contents":[{"parts":[{"functionCall":{}}]}]}"#,
                "`contents[0].parts[0].functionCall.name` is missing",
            ),
            (r#"{"contents":[],"generationConfig":{"topP":"x"}}"#, "`generationConfig.topP` must be a number"),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }

    #[test]
    fn results_without_ids_answer_the_calls_of_their_name_in_order() {
        let body = br#"{"contents":[
            {"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f"}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"g"}},{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"f"}}]}
        ]}"#;
        let request = read(body).unwrap();
        let ids: Vec<&str> = request.turns[1]
            .parts
            .iter()
            .map(|part| match part {
                Part::ToolResult(result) => result.id.as_str(),
                _ => "",
            })
            .collect();
        assert_eq!(ids, ["call_0_1", "call_0_0", "call_0_2"]);
    }
}
