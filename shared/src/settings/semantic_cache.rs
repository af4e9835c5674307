//! How requests that ask the same in other words are recognised.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Semantic cache")]
pub struct SemanticCache {
    /// Who turns texts into vectors: openai, azure-openai, google, vertex-ai or local.
    ///
    /// `openai` with SEMANTIC_CACHE_EMBEDDINGS_URL is any service that is compatible with it. Without one, semantic caching
    /// is exact caching.
    #[arg(long, env = "SEMANTIC_CACHE_EMBEDDING_PROVIDER", value_parser = ["openai", "azure-openai", "google", "vertex-ai", "local"])]
    pub semantic_cache_embedding_provider: Option<String>,
    /// Whole address for embeddings; needed for azure-openai and vertex-ai.
    #[arg(long, env = "SEMANTIC_CACHE_EMBEDDINGS_URL")]
    pub semantic_cache_embeddings_url: Option<String>,
    /// Model that makes the vectors.
    #[arg(long, env = "SEMANTIC_CACHE_EMBEDDING_MODEL", default_value = "text-embedding-3-small")]
    pub semantic_cache_embedding_model: String,
    /// Its key.
    #[arg(long, env = "SEMANTIC_CACHE_EMBEDDING_API_KEY", hide_env_values = true)]
    pub semantic_cache_embedding_api_key: Option<String>,
    /// Length of vectors to ask for; the model's own when absent.
    #[arg(long, env = "SEMANTIC_CACHE_EMBEDDING_DIMENSIONS", value_parser = dimensions)]
    pub semantic_cache_embedding_dimensions: Option<usize>,
    /// Folder of the local embedder: model.safetensors and tokenizer.json.
    ///
    /// `make setup-embedder` fetches a small model.
    #[arg(long, env = "SEMANTIC_CACHE_EMBEDDER_DIR")]
    pub semantic_cache_embedder_dir: Option<PathBuf>,
    /// Cosine from which on two questions are one, from 0 to 1.
    ///
    /// 0.95 when absent; 0.80 for the local embedder, whose guard compares the words too. A config or a request may name
    /// its own (`cache.similarity`).
    #[arg(long, env = "SEMANTIC_CACHE_SIMILARITY_THRESHOLD", value_parser = similarity)]
    pub semantic_cache_similarity_threshold: Option<f32>,
    /// Longest that a request waits for its vector and the search, in milliseconds; then it is a miss.
    #[arg(long, env = "SEMANTIC_CACHE_WAIT_MS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub semantic_cache_wait_ms: u64,
    /// Whose budgets pay for vectors: those of the workspace that asked, or none (`operator`).
    ///
    /// Each call for a vector has a row in the logs of the workspace either way.
    #[arg(long, env = "SEMANTIC_CACHE_PAID_BY", default_value = "workspace", value_parser = ["workspace", "operator"])]
    pub semantic_cache_paid_by: String,
    /// Postgres with the extension pgvector that proxies share their vectors in; in memory when absent.
    ///
    /// DATABASE_URL's or another, with the same DB_SSL. Of use where answers are shared too. The table is made if the role
    /// may.
    #[arg(long, env = "SEMANTIC_CACHE_INDEX_URL", hide_env_values = true)]
    pub semantic_cache_index_url: Option<String>,
    /// Most memory that vectors may take in a proxy, in bytes.
    ///
    /// Each workspace is sure of an equal part when there is not enough for all.
    #[arg(long, env = "SEMANTIC_CACHE_MAX_BYTES", default_value_t = 67_108_864, value_parser = clap::value_parser!(u64).range(1_048_576..))]
    pub semantic_cache_max_bytes: u64,
}

/// The key must not be printed.
impl fmt::Debug for SemanticCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemanticCache")
            .field("semantic_cache_embedding_provider", &self.semantic_cache_embedding_provider)
            .field("semantic_cache_embeddings_url", &self.semantic_cache_embeddings_url.as_ref().map(|_| "…"))
            .field("semantic_cache_embedding_model", &self.semantic_cache_embedding_model)
            .field("semantic_cache_embedding_api_key", &self.semantic_cache_embedding_api_key.as_ref().map(|_| "…"))
            .field("semantic_cache_embedding_dimensions", &self.semantic_cache_embedding_dimensions)
            .field("semantic_cache_embedder_dir", &self.semantic_cache_embedder_dir)
            .field("semantic_cache_similarity_threshold", &self.semantic_cache_similarity_threshold)
            .field("semantic_cache_wait_ms", &self.semantic_cache_wait_ms)
            .field("semantic_cache_paid_by", &self.semantic_cache_paid_by)
            .field("semantic_cache_index_url", &self.semantic_cache_index_url.as_ref().map(|_| "…"))
            .field("semantic_cache_max_bytes", &self.semantic_cache_max_bytes)
            .finish()
    }
}

fn dimensions(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=8192).contains(count)).ok_or_else(|| "expected 1 to 8192".into())
}

fn similarity(text: &str) -> Result<f32, String> {
    text.parse().ok().filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| "expected a number from 0 to 1".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_ranges_are_refused() {
        for text in ["-0.1", "1.1", "NaN", "inf", "x", ""] {
            assert!(similarity(text).is_err(), "{text}");
        }
        assert_eq!(similarity("0.85"), Ok(0.85));
        assert_eq!((dimensions("256"), dimensions("0").is_err(), dimensions("8193").is_err()), (Ok(256), true, true));
    }
}
