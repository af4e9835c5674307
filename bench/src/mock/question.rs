//! What a request asks in no vendor's words. The wires that are read into it are never measured, so it owns its
//! texts; OpenAI's and Anthropic's are (see `ask`).

use serde_json::Value;

use super::ask::tokens;
use super::fault::{BadFault, Fault};
use super::reply::Reply;
use super::sample::JsonFormat;
use super::tools::{self, Choice, Tool, ToolCall};

/// Longer vectors are not made.
const MAX_DIMENSIONS: u64 = 4_096;

#[derive(Default)]
pub struct Question {
    pub model: String,
    pub is_streaming: bool,
    pub prompt_tokens: u64,
    /// The texts of the last message of the user.
    pub last_user: Vec<String>,
    pub tools: Vec<Tool>,
    pub choice: Choice,
    pub format: Option<JsonFormat>,
    /// The texts of an embeddings request, one for each embedding wanted.
    pub inputs: Vec<String>,
    dimensions: Option<u64>,
}

impl Question {
    pub fn new(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    /// Counts what the model reads.
    pub fn reads<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        self.prompt_tokens += texts.into_iter().map(tokens).sum::<u64>();
    }

    pub fn embeds<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>, dimensions: &Value) {
        self.inputs = texts.into_iter().map(str::to_owned).collect();
        self.prompt_tokens = self.inputs.iter().map(|text| tokens(text)).sum();
        self.dimensions = dimensions.as_u64();
    }

    pub fn fault(&self) -> Result<Option<Fault>, BadFault> {
        if let Some(fault) = Fault::from_model(&self.model)? {
            return Ok(Some(fault));
        }
        let mut found = None;
        for text in &self.last_user {
            found = Fault::from_message(text)?.or(found);
        }
        Ok(found)
    }

    pub fn calls(&self, fault: &Fault) -> Vec<ToolCall> {
        tools::calls(&self.tools, &self.choice, fault)
    }

    pub fn reply<'f>(&self, fault: &'f Fault) -> Reply<'f> {
        Reply::in_format(fault, self.format.as_ref())
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions.map_or(8, |dimensions| dimensions.min(MAX_DIMENSIONS) as usize)
    }
}

/// The items of a list; none when it is something else.
pub fn list(value: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The `text` of each part, or the text itself.
pub fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}
