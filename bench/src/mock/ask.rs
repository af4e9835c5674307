//! The fields of a JSON request that the mock acts on, borrowed from the body; everything else is skipped unread.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fault::{BadFault, Fault};
use super::sample::JsonFormat;
use super::tools::{self, Choice, Tool, ToolCall};

#[derive(Default, Deserialize)]
pub struct Ask<'a> {
    /// Kept as JSON text: answers repeat it unchanged.
    #[serde(borrow)]
    pub model: Option<&'a RawValue>,
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    pub messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub system: Option<&'a RawValue>,
    #[serde(borrow)]
    pub prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    pub dimensions: Option<usize>,
    #[serde(borrow)]
    pub encoding_format: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    response_format: Option<&'a RawValue>,
    /// Where responses say their format.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    /// Where messages say theirs.
    #[serde(borrow)]
    output_config: Option<&'a RawValue>,
    #[serde(borrow)]
    output_format: Option<&'a RawValue>,
    /// Stands in the body where Vertex serves Anthropic's models.
    #[serde(borrow)]
    pub anthropic_version: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub struct StreamOptions {
    pub include_usage: Option<bool>,
}

#[derive(Deserialize)]
pub struct Message<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'a> Ask<'a> {
    pub fn parse(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    pub fn is_streaming(&self) -> bool {
        self.stream == Some(true)
    }

    pub fn wants_usage_chunk(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage == Some(true))
    }

    /// The model as JSON text.
    pub fn model_json(&self) -> &'a str {
        self.model.map_or("\"mock-model\"", RawValue::get)
    }

    /// Tokens of everything the model would read.
    pub fn prompt_tokens(&self) -> u64 {
        let messages = self.messages.iter().flatten().filter_map(|message| message.content);
        let mut count = 0;
        for raw in messages.chain(self.system).chain(self.prompt).chain(self.input) {
            each_text(raw, &mut |text| count += tokens(text));
        }
        count
    }

    /// The fault named by the model or by the last user message.
    pub fn fault(&self) -> Result<Option<Fault>, BadFault> {
        if let Some(model) = self.model.filter(|model| model.get().starts_with("\"fault/")) {
            let Text(model) = serde_json::from_str(model.get()).map_err(|error| BadFault(error.to_string()))?;
            return Fault::from_model(&model);
        }
        let last_user = self.messages.iter().flatten().rev().find(|message| message.role == "user");
        let Some(content) = last_user.and_then(|message| message.content) else { return Ok(None) };
        let mut found = Ok(None);
        each_text(content, &mut |text| {
            if let Some(fault) = Fault::from_message(text).transpose() {
                found = fault.map(Some);
            }
        });
        found
    }

    /// The texts of an embeddings request, one per embedding wanted.
    pub fn inputs(&self) -> Vec<String> {
        let Some(raw) = self.input else { return Vec::new() };
        let is_one = !raw.get().starts_with('[') || serde_json::from_str::<Vec<i64>>(raw.get()).is_ok();
        if is_one {
            return vec![raw.get().to_owned()];
        }
        let items = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default();
        items.into_iter().map(|item| item.get().to_owned()).collect()
    }

    /// The tools that are called, most often none.
    pub fn calls(&self, fault: &Fault) -> Vec<ToolCall> {
        if self.tool_choice.is_none() && fault.tool_calls.is_none() && fault.call.is_none() {
            return Vec::new();
        }
        let choice = match self.tool_choice.map(value_of).unwrap_or_default() {
            Value::String(word) if word == "required" => Choice::Any,
            choice if choice["type"] == "any" => Choice::Any,
            choice => match named(&choice)["name"].as_str() {
                Some(name) => Choice::Named(name.to_owned()),
                None => Choice::Free,
            },
        };
        let offered = self.tools.map(value_of).unwrap_or_default();
        let read = |tool: &Value| Tool::read(named(tool), &["parameters", "input_schema"]);
        let tools: Vec<Tool> = offered.as_array().into_iter().flatten().filter_map(read).collect();
        tools::calls(&tools, &choice, fault)
    }

    /// The JSON that is asked for, in the words of chats, responses or messages.
    pub fn format(&self) -> Option<JsonFormat> {
        let places = [self.response_format, self.text, self.output_config, self.output_format];
        places.into_iter().flatten().find_map(|raw| {
            let value = value_of(raw);
            let format = if value["format"].is_object() { &value["format"] } else { &value };
            match format["type"].as_str() {
                Some("json_object") => Some(JsonFormat::Object),
                Some("json_schema") => {
                    let schema = [&format["schema"], &format["json_schema"]["schema"]];
                    schema.into_iter().find(|schema| schema.is_object()).cloned().map(JsonFormat::Schema)
                }
                _ => None,
            }
        })
    }

    pub fn wants_base64(&self) -> bool {
        self.encoding_format.is_some_and(|format| format.get() == "\"base64\"")
    }
}

fn value_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// What has the name: chats put it one level lower than responses and messages.
fn named(tool: &Value) -> &Value {
    if tool["function"].is_object() { &tool["function"] } else { tool }
}

/// The mock's own rule: a quarter of the characters, rounded up.
pub fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Calls `found` for a string, or for the `text` of each part and each string of an array.
fn each_text(raw: &RawValue, found: &mut dyn FnMut(&str)) {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
    }
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            if let Ok(Text(text)) = serde_json::from_str(raw.get()) {
                found(&text);
            }
        }
        Some(b'[') => {
            for item in serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default() {
                each_text(item, found);
            }
        }
        Some(b'{') => {
            if let Ok(Part { text: Some(text) }) = serde_json::from_str(raw.get()) {
                each_text(text, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_a_quarter_of_the_characters_of_each_text() {
        for (body, expected) in [
            (r#"{"messages":[{"role":"user","content":"12345"}]}"#, 2),
            (r#"{"messages":[{"role":"system","content":"1234"},{"role":"user","content":"ääää"}]}"#, 2),
            (r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}]}"#, 1),
            (r#"{"system":"abcd","messages":[]}"#, 1),
            (r#"{"input":["a","b","abcde"]}"#, 4),
            (r#"{"prompt":"\n\n\n\n"}"#, 1),
            (r#"{"messages":[{"role":"assistant","content":null}]}"#, 0),
        ] {
            assert_eq!(Ask::parse(body.as_bytes()).unwrap().prompt_tokens(), expected, "{body}");
        }
    }

    #[test]
    fn only_the_last_user_message_can_carry_a_fault() {
        for (body, status) in [
            (r#"{"messages":[{"role":"user","content":"{\"mock\":{\"status\":500}}"}]}"#, Some(500)),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"{\"mock\":{\"status\":503}}"}]},
                   {"role":"assistant","content":"x"}]}"#,
                Some(503),
            ),
            (
                r#"{"messages":[{"role":"user","content":"{\"mock\":{\"status\":500}}"},{"role":"user","content":"x"}]}"#,
                None,
            ),
            (r#"{"messages":[{"role":"system","content":"{\"mock\":{\"status\":500}}"}]}"#, None),
            (r#"{"model":"fault/status=429","messages":[]}"#, Some(429)),
        ] {
            let fault = Ask::parse(body.as_bytes()).unwrap().fault().unwrap();
            assert_eq!(fault.and_then(|fault| fault.status), status, "{body}");
        }
    }

    #[test]
    fn json_is_asked_for_in_three_ways() {
        let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
        for (body, text) in [
            (r#"{"response_format":{"type":"text"}}"#.to_owned(), None),
            (r#"{"response_format":{"type":"json_object"}}"#.to_owned(), Some("This is the mock provider.")),
            (
                format!(
                    r#"{{"response_format":{{"type":"json_schema","json_schema":{{"name":"x","schema":{schema}}}}}}}"#
                ),
                Some(r#"{"city":"Paris"}"#),
            ),
            (
                format!(r#"{{"text":{{"format":{{"type":"json_schema","name":"x","schema":{schema}}}}}}}"#),
                Some(r#"{"city":"Paris"}"#),
            ),
            (
                format!(r#"{{"output_config":{{"format":{{"type":"json_schema","schema":{schema}}}}}}}"#),
                Some(r#"{"city":"Paris"}"#),
            ),
        ] {
            let format = Ask::parse(body.as_bytes()).unwrap().format().map(|format| format.text());
            assert_eq!(format.is_some(), text.is_some(), "{body}");
            assert!(format.unwrap_or_default().contains(text.unwrap_or_default()), "{body}");
        }
    }

    #[test]
    fn an_array_of_token_numbers_is_one_input() {
        for (body, count) in [
            (r#"{"input":"one"}"#, 1),
            (r#"{"input":["one","two"]}"#, 2),
            (r#"{"input":[1,2,3]}"#, 1),
            (r#"{"input":[[1,2],[3]]}"#, 2),
        ] {
            assert_eq!(Ask::parse(body.as_bytes()).unwrap().inputs().len(), count, "{body}");
        }
    }
}
