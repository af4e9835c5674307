//! Requests that are no conversations: one object there, one back, never a stream. The client's side is always OpenAI's
//! embeddings, the common form of rerank (contract 7.11) or Anthropic's count of tokens; each codec here is one provider's
//! form of these.

mod count_tokens;
mod embeddings;
mod rerank;

use super::error::CodecError;
use super::options::Dropped;
use serde_json::{Map, Value};

pub trait ObjectCodec: Sync {
    fn name(&self) -> &'static str;
    /// A provider's body from a client's, and what it could not say.
    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError>;
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
];

pub fn by_name(name: &str) -> Option<&'static dyn ObjectCodec> {
    OBJECT_CODECS.iter().copied().find(|codec| codec.name() == name)
}
