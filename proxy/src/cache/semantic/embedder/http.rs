//! Embeddings over HTTP: OpenAI's way (also of all that are compatible with it, and of Azure), Google's and Vertex'. An answer
//! is believed only in the form that was asked for.

use super::{Embedded, Embedder, EmbeddingCall, MAX_DIMENSIONS, NotEmbedded, normalised};
use crate::cache::semantic::lexical::Guard;
use crate::net::dial::Dialer;
use crate::net::own_call::OwnCall;
use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use shared::settings::SemanticCache;
use std::sync::Arc;
use std::time::Instant;

/// Of an answer: some thousand numbers as text.
const MAX_ANSWER: usize = 1 << 20;
/// The contract's default.
const THRESHOLD: f32 = 0.95;

/// Whose way of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmbeddingWire {
    OpenAi,
    Azure,
    Google,
    Vertex,
}

pub struct HttpEmbedder {
    wire: EmbeddingWire,
    provider: String,
    model: String,
    dimensions: Option<usize>,
    call: OwnCall,
}

impl HttpEmbedder {
    pub fn new(settings: &SemanticCache, provider: &str, dialer: Arc<Dialer>) -> anyhow::Result<Self> {
        let wire = match provider {
            "openai" => EmbeddingWire::OpenAi,
            "azure-openai" => EmbeddingWire::Azure,
            "google" => EmbeddingWire::Google,
            "vertex-ai" => EmbeddingWire::Vertex,
            other => anyhow::bail!(
                "SEMANTIC_CACHE_EMBEDDING_PROVIDER: `{other}` is none of openai, azure-openai, google, vertex-ai, local"
            ),
        };
        let model = settings.semantic_cache_embedding_model.clone();
        let url = match (&settings.semantic_cache_embeddings_url, wire) {
            (Some(url), _) => url.clone(),
            (None, EmbeddingWire::OpenAi) => "https://api.openai.com/v1/embeddings".into(),
            (None, EmbeddingWire::Google) => {
                format!("https://generativelanguage.googleapis.com/v1beta/models/{model}:embedContent")
            }
            (None, _) => anyhow::bail!("SEMANTIC_CACHE_EMBEDDINGS_URL: {provider} needs one"),
        };
        let key = settings.semantic_cache_embedding_api_key.as_deref();
        let headers = key.map(|key| credential(wire, key)).transpose()?.into_iter().collect();
        let call = OwnCall::new(dialer, &url, headers)
            .map_err(|rule| anyhow::anyhow!("SEMANTIC_CACHE_EMBEDDINGS_URL: {rule}"))?;
        let dimensions = settings.semantic_cache_embedding_dimensions;
        Ok(Self { wire, provider: provider.to_owned(), model, dimensions, call })
    }

    fn question(&self, text: &str) -> Value {
        let mut question = match self.wire {
            EmbeddingWire::OpenAi | EmbeddingWire::Azure => {
                json!({ "model": self.model, "input": text, "encoding_format": "float" })
            }
            EmbeddingWire::Google => {
                json!({ "content": { "parts": [{ "text": text }] }, "taskType": "SEMANTIC_SIMILARITY" })
            }
            EmbeddingWire::Vertex => json!({ "instances": [{ "content": text, "task_type": "SEMANTIC_SIMILARITY" }] }),
        };
        if let Some(dimensions) = self.dimensions {
            match self.wire {
                EmbeddingWire::OpenAi | EmbeddingWire::Azure => question["dimensions"] = json!(dimensions),
                EmbeddingWire::Google => question["outputDimensionality"] = json!(dimensions),
                EmbeddingWire::Vertex => question["parameters"] = json!({ "outputDimensionality": dimensions }),
            }
        }
        question
    }

    fn vector(&self, answer: &Value) -> Option<Vec<f32>> {
        let place = match self.wire {
            EmbeddingWire::OpenAi | EmbeddingWire::Azure => "/data/0/embedding",
            EmbeddingWire::Google => "/embedding/values",
            EmbeddingWire::Vertex => "/predictions/0/embeddings/values",
        };
        let values = answer.pointer(place)?.as_array()?;
        if values.len() > MAX_DIMENSIONS || self.dimensions.is_some_and(|dimensions| dimensions != values.len()) {
            return None;
        }
        // Vectors are kept in less than this precision.
        let values =
            values.iter().map(|value| value.as_f64().map(|value| value as f32)).collect::<Option<Vec<f32>>>()?;
        normalised(values)
    }

    fn usage(&self, answer: &Value) -> Option<String> {
        let tokens = match self.wire {
            EmbeddingWire::OpenAi | EmbeddingWire::Azure => answer.pointer("/usage/prompt_tokens")?.as_u64()?,
            EmbeddingWire::Google => answer.pointer("/usageMetadata/promptTokenCount")?.as_u64()?,
            EmbeddingWire::Vertex => answer.pointer("/predictions/0/embeddings/statistics/token_count")?.as_u64()?,
        };
        Some(json!({ "prompt_tokens": tokens, "total_tokens": tokens }).to_string())
    }
}

fn credential(wire: EmbeddingWire, key: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let (name, value) = match wire {
        EmbeddingWire::OpenAi | EmbeddingWire::Vertex => (header::AUTHORIZATION, format!("Bearer {key}")),
        EmbeddingWire::Azure => (HeaderName::from_static("api-key"), key.to_owned()),
        EmbeddingWire::Google => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
    };
    let value = HeaderValue::try_from(value).ok().context("SEMANTIC_CACHE_EMBEDDING_API_KEY is no header value")?;
    Ok((name, value))
}

#[async_trait]
impl Embedder for HttpEmbedder {
    async fn embed(&self, text: &str) -> Result<Embedded, NotEmbedded> {
        let asked = Instant::now();
        let body = Bytes::from(self.question(text).to_string());
        let answer = self.call.post(body, MAX_ANSWER).await.map_err(NotEmbedded::new)?;
        let millis = u32::try_from(asked.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut call = EmbeddingCall { status: answer.status, usage: None, millis };
        if answer.status != 200 {
            return Err(NotEmbedded::answered(call));
        }
        let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        call.usage = self.usage(&reply);
        match self.vector(&reply) {
            Some(values) => Ok(Embedded { values, call: Some(call) }),
            None => {
                let not = NotEmbedded::new("the embedder answered no vector");
                Err(NotEmbedded { call: Some(call), ..not })
            }
        }
    }

    fn threshold(&self) -> f32 {
        THRESHOLD
    }

    fn guard(&self) -> Guard {
        Guard::Marks
    }

    fn identity(&self) -> String {
        format!("{} {} {}", self.provider, self.model, self.dimensions.unwrap_or(0))
    }

    fn billed_as(&self) -> Option<(&str, &str)> {
        Some((&self.provider, &self.model))
    }
}
