//! Requests that are no conversations: one object there, one back, never a stream. The client's side is always OpenAI's
//! embeddings or images, the common form of rerank (contract 7.11) or Anthropic's count of tokens; each codec here is one
//! provider's form of these.

mod count_tokens;
mod embeddings;
pub mod form;
mod images;
mod rerank;

#[cfg(test)]
mod golden;

use super::base64_text;
use super::error::CodecError;
use super::options::Dropped;
use serde_json::{Map, Value};

pub trait ObjectCodec: Sync {
    fn name(&self) -> &'static str;
    /// A provider's body from a client's, and what it could not say.
    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError>;
    /// Whether the fields of its bodies are sent as a form.
    fn is_form(&self) -> bool {
        false
    }
    /// A client's answer from a provider's.
    fn read_answer(&self, answer: Value, asked: &AskedObject) -> Result<Value, CodecError>;
}

/// What an answer depends on besides the provider's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedObject {
    pub id: String,
    pub model: String,
    pub provider: String,
    /// Vectors are written as base64 of little-endian floats.
    pub is_base64: bool,
    /// Seconds since 1970.
    pub created: u64,
}

/// What a provider answered that sent an image in place of an object.
pub fn from_bytes(bytes: &[u8]) -> Value {
    base64_text::encode(bytes).into()
}

/// Without the fields that nobody said.
fn without_nulls(fields: Value) -> Value {
    match fields {
        Value::Object(fields) => Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        other => other,
    }
}

pub static OBJECT_CODECS: &[&dyn ObjectCodec] = &[
    &embeddings::GeminiEmbeddings,
    &embeddings::VertexEmbeddings,
    &embeddings::CohereEmbeddings,
    &embeddings::TitanEmbeddings,
    &embeddings::BedrockCohereEmbeddings,
    &embeddings::NomicEmbeddings,
    &embeddings::PineconeEmbeddings,
    &rerank::VoyageRerank,
    &rerank::PineconeRerank,
    &count_tokens::GeminiCount,
    &count_tokens::ConverseCount,
    &images::STABILITY_FIRST,
    &images::STABILITY_SECOND,
    &images::STABILITY_SD3,
    &images::SEGMIND,
    &images::FIREWORKS,
    &images::FIREWORKS_WORKFLOW,
    &images::SILICONFLOW,
    &images::HYPERBOLIC,
    &images::FAL,
    &images::WORKERS,
    &images::BedrockImages,
    &images::VertexImages,
    &rerank::CohereRerank,
    &rerank::BedrockRerank,
    &rerank::VertexRerank,
    &count_tokens::VertexCount,
    &count_tokens::VertexClaudeCount,
    &embeddings::Ai21Embeddings,
];

pub fn by_name(name: &str) -> Option<&'static dyn ObjectCodec> {
    OBJECT_CODECS.iter().copied().find(|codec| codec.name() == name)
}
