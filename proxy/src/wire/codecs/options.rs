//! What a codec is told besides the conversation: facts of the model, the provider and the request.

use super::error::CodecError;
use crate::wire::conversation::{Request, Settings, WireFormat};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// For a request to a provider. What a model accepts is a row of the model catalogue (decision 76), never a name here.
#[derive(Debug, Clone)]
pub struct RequestOptions<'a> {
    /// What the provider calls the model; absent where it stands in the path.
    pub model: Option<&'a str>,
    /// Where a format demands `max_tokens` and the caller said none.
    pub default_max_tokens: u64,
    /// Whether the model takes `temperature`, `top_p` and `top_k`.
    pub has_sampling: bool,
    pub thinking: ThinkingStyle,
    pub gemini_thinking: GeminiThinking,
    /// A field of the body on Vertex and on Bedrock's invoke.
    pub anthropic_version: Option<&'a str>,
    /// Anthropic's betas, where they are a field of the body, as the provider calls them.
    pub betas: &'a [&'a str],
    /// `max_completion_tokens`, or `max_tokens` for the many that know only the older name.
    pub chat_max_tokens: &'static str,
    /// Whether a streaming provider of chat is asked for its usage; some refuse the question.
    pub asks_for_usage: bool,
    /// Whether Converse may pass on Claude's own fields: thinking, `top_k`, the user.
    pub is_claude: bool,
    /// No `content_blocks` in messages, which OpenAI itself refuses.
    pub is_strict: bool,
    /// The answer is kept at the vendor only if the request says so. Only responses are kept without being asked to.
    pub is_unstored: bool,
    /// What an account says that some formats have in their bodies.
    pub placed: &'a [(String, String)],
}

impl RequestOptions<'_> {
    /// The field `anthropic_beta`, with those that the request has in its own; none where there are none.
    pub fn body_betas(&self, own: Option<&Value>) -> Option<Value> {
        let mut betas: Vec<Value> = match own {
            None => Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            // Whoever reads it says what is wrong with it.
            Some(other) if self.betas.is_empty() => return Some(other.clone()),
            Some(other) => vec![other.clone()],
        };
        for beta in self.betas {
            if !betas.iter().any(|known| known == beta) {
                betas.push(Value::from(*beta));
            }
        }
        (own.is_some() || !betas.is_empty()).then_some(Value::Array(betas))
    }

    pub fn placed(&self, place: &str) -> Option<&str> {
        self.placed.iter().find(|(name, _)| name == place).map(|(_, value)| value.as_str())
    }
}

impl Default for RequestOptions<'_> {
    fn default() -> Self {
        Self {
            model: None,
            default_max_tokens: 4096,
            has_sampling: true,
            thinking: ThinkingStyle::Budget,
            gemini_thinking: GeminiThinking::Budget,
            anthropic_version: None,
            betas: &[],
            chat_max_tokens: "max_completion_tokens",
            asks_for_usage: true,
            is_claude: true,
            is_strict: true,
            is_unstored: false,
            placed: &[],
        }
    }
}

/// How a Claude model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingStyle {
    /// `thinking: {type: enabled, budget_tokens}`.
    Budget,
    /// `thinking: {type: adaptive}` and `output_config.effort`, after the 4.6 line.
    Adaptive,
}

/// How a Gemini model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeminiThinking {
    /// `thinkingBudget`, the 2.5 line.
    Budget,
    /// `thinkingLevel`, from 3 on.
    Level,
}

/// For an answer to a client.
#[derive(Debug, Clone)]
pub struct AnswerOptions<'a> {
    /// Strict OpenAI compliance: no native extras.
    pub is_strict: bool,
    /// Used where the provider gave none.
    pub id: Cow<'a, str>,
    pub created: u64,
    pub model: Cow<'a, str>,
    /// Named in answers and errors; not in answers where it is empty.
    pub provider: Cow<'a, str>,
    /// Whether a stream of chat shall tell its usage.
    pub include_usage: bool,
    /// What was asked, for formats that repeat it.
    pub request: Option<Arc<Request>>,
}

impl AnswerOptions<'_> {
    /// An id for a call whose vendor gave none: the same for each piece of it, another for each call and answer.
    pub fn tool_id(&self, choice: u32, part: u32) -> String {
        let letters: String = self.id.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("call_{}_{choice}_{part}", &letters[letters.len().saturating_sub(24)..])
    }
}

/// Without these the answer would be to another question (contract 6.4): the conversation is kept elsewhere.
static INDISPENSABLE: &[&str] = &["previous_response_id", "conversation", "prompt", "background", "cachedContent"];

/// More names than these, and letters of one, nobody reads.
pub const MAX_DROPPED: usize = 32;
const MAX_NAME: usize = 64;

/// Names of parameters that a format could not say, in the caller's words, each once and the first of them alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped(Vec<Cow<'static, str>>);

impl Dropped {
    pub fn note(&mut self, name: impl Into<Cow<'static, str>>) {
        if self.0.len() >= MAX_DROPPED {
            return;
        }
        let name: Cow<'static, str> = name.into();
        let name = match name {
            long if long.len() > MAX_NAME => Cow::Owned(long.chars().take(MAX_NAME).collect()),
            name => name,
        };
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    pub fn note_if(&mut self, is_dropped: bool, name: &'static str) {
        if is_dropped {
            self.note(name);
        }
    }

    /// Those of the named settings that the caller made.
    pub fn note_settings(&mut self, settings: &Settings, names: &[&'static str]) {
        names.iter().filter(|name| settings.is_set(name)).for_each(|name| self.note(*name));
    }

    /// What only another format can say: noted, or refused where the answer would be to another question.
    pub fn note_extra(&mut self, request: &Request, format: WireFormat) -> Result<(), CodecError> {
        self.note_extra_but(request, format, &[])
    }

    /// The same, some fields having been written after all.
    pub fn note_extra_but(&mut self, request: &Request, format: WireFormat, taken: &[&str]) -> Result<(), CodecError> {
        if let Some(block) = request.foreign_user_block(format) {
            let kind = block.get("type").and_then(Value::as_str);
            let key = || block.as_object().and_then(|map| map.keys().next()).map(String::as_str);
            let field = ["messages.", kind.or_else(key).unwrap_or("content")].concat();
            return Err(CodecError::unsupported(field, format));
        }
        if let Some(kind) = request.foreign_file_id(format) {
            return Err(CodecError::unsupported(["messages.", kind, ".file_id"].concat(), format));
        }
        for name in request.extra.names_lost_in(format).filter(|name| !taken.contains(name)) {
            if INDISPENSABLE.contains(&name) {
                return Err(CodecError::unsupported(name, format));
            }
            self.note(name.to_owned());
        }
        Ok(())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_long_names_the_beginnings_of_the_first_are_kept() {
        let mut dropped = Dropped::default();
        for number in 0..100 {
            dropped.note(format!("{number:02}{}", "ö".repeat(1000)));
        }
        assert_eq!(dropped.names().count(), MAX_DROPPED);
        assert!(dropped.names().all(|name| name.chars().count() == MAX_NAME));
        let mut once = Dropped::default();
        once.note("seed");
        once.note("seed");
        assert_eq!(once.names().collect::<Vec<_>>(), ["seed"]);
    }
}
