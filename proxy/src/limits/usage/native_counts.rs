//! Usage of servers that people run themselves, which stands in no object of its own: Ollama counts beside its answer, and
//! TGI (Text Generation Inference) in the details that it gives on wish. Both are written as a report like any other.

use super::outermost::OuterField;
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::LazyLock;

/// The end of both of Ollama's names.
static EVALUATED: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("eval_count\""));
static GENERATED: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("\"generated_tokens\""));

/// What Ollama counts.
#[derive(Debug, Default)]
pub struct NativeCounts {
    prompt: u64,
    completion: u64,
}

impl NativeCounts {
    pub fn note(&mut self, field: OuterField, digits: &[u8]) {
        let count = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        match field {
            OuterField::PromptEvalCount => self.prompt = count,
            _ => self.completion = count,
        }
    }

    pub fn report(&self) -> String {
        format!(r#"{{"prompt_eval_count":{},"eval_count":{}}}"#, self.prompt, self.completion)
    }
}

/// Whether Ollama may have written this answer, whose counts stand at its end.
pub fn ends_as_ollamas(body: &[u8]) -> bool {
    const END: usize = 256;
    EVALUATED.find(&body[body.len().saturating_sub(END)..]).is_some()
}

/// Whether TGI may have written this answer.
pub fn may_have_details(body: &[u8]) -> bool {
    GENERATED.find(body).is_some()
}

#[derive(Deserialize)]
struct Details {
    generated_tokens: u64,
    /// Where a stream ends.
    input_length: Option<u64>,
    /// The tokens that were read, where they were asked for.
    #[serde(default)]
    prefill: Vec<IgnoredAny>,
}

/// None where they do not say how much was read: then all of it is estimated.
pub fn usage_of_details(details: &[u8]) -> Option<String> {
    let details: Details = serde_json::from_slice(details).ok()?;
    let read = details.input_length.unwrap_or(details.prefill.len() as u64);
    (read > 0).then(|| format!(r#"{{"input_tokens":{read},"generated_tokens":{}}}"#, details.generated_tokens))
}
