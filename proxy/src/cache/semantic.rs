//! Requests that ask the same in other words. After an exact lookup has missed, the words of a request become a vector, and
//! an answer to a question that is near enough, and that the lexical guard lets pass, is taken instead of a provider's.
//!
//! - `text`: what a request asks, as one text, if words alone say it
//! - `partition`: everything else of it, which must be equal
//! - `lexical`: what must be equal in the words themselves
//! - `embedder`: texts as vectors: over HTTP, or from a folder
//! - `index`: vectors, and which are near
//!
//! Whatever fails here is a miss, within a bounded wait; nothing here fails a request.

pub mod embedder;
pub mod index;
pub mod lexical;
mod paid_call;
mod partition;
mod rest;
mod text;

pub use embedder::EmbeddingCall;
pub use index::Partition;
pub use paid_call::PaidCall;
pub use partition::partition;
pub use text::{AskedRoute, asked_text};

use super::CacheKey;
use crate::net::dial::Dialer;
use crate::runtime::heavy::heavy;
use crate::runtime::tenant_share::Tenant;
use anyhow::Context as _;
use embedder::{Embedded, Embedder, HttpEmbedder, LocalEmbedder, NotEmbedded};
use index::{AskedVector, MemoryIndex, Nearness, PgVectorIndex, VectorIndex};
use lexical::LexicalMarks;
use rest::Rest;
use serde_json::Value;
use shared::settings::{Database, SemanticCache as Settings};
use std::sync::Arc;
use std::time::Duration;

/// Of the answers that a search names: the nearest may be gone meanwhile.
const MAX_FOUND: usize = 4;
/// Longer texts are read beside the threads that carry requests.
const SHORT_TEXT: usize = 2 << 10;
/// Of those that a refresh replaces.
const MAX_REPLACED: usize = 32;

/// What a request asks, apart from what must be equal.
#[derive(Debug, Clone)]
pub struct Question {
    pub partition: Partition,
    pub text: String,
    /// The request's own threshold.
    pub similarity: Option<f32>,
}

impl Question {
    /// None where only an equal request may have the same answer. `around` is the key of the same request without a body.
    pub fn read(route: AskedRoute, body: &Value, around: &CacheKey, similarity: Option<f32>) -> Option<Self> {
        let text = asked_text(route, body)?;
        let digest = partition(route, body, &around.digest);
        Some(Self { partition: Partition { tenant: around.tenant, digest }, text, similarity })
    }
}

/// A question that was looked up: what storing its answer needs.
#[derive(Debug)]
pub struct Searched {
    /// None when there is no vector: then its answer is stored under its own key alone.
    asked: Option<AskedVector>,
    threshold: f32,
    /// Keys of answers to questions that are near, the nearest first.
    pub near: Vec<CacheKey>,
}

pub struct Semantic {
    embedder: Arc<dyn Embedder>,
    index: Arc<dyn VectorIndex>,
    /// For the vector and the search together.
    wait: Duration,
    threshold: f32,
    /// No budget of a tenant pays for its calls.
    is_paid_by_operator: bool,
    rest: Rest,
}

impl Semantic {
    /// None when no embedder is set: then semantic requests are looked up exactly.
    pub fn open(settings: &Settings, database: &Database, dialer: &Arc<Dialer>) -> anyhow::Result<Option<Self>> {
        let embedder: Arc<dyn Embedder> = match settings.semantic_cache_embedding_provider.as_deref() {
            None => return Ok(None),
            Some("local") => {
                let folder = settings.semantic_cache_embedder_dir.as_ref();
                let folder = folder.context("SEMANTIC_CACHE_EMBEDDER_DIR: the local embedder needs a folder")?;
                Arc::new(LocalEmbedder::open(folder).context("SEMANTIC_CACHE_EMBEDDER_DIR")?)
            }
            Some(provider) => Arc::new(HttpEmbedder::new(settings, provider, dialer.clone())?),
        };
        let wait = Duration::from_millis(settings.semantic_cache_wait_ms);
        let index: Arc<dyn VectorIndex> = match &settings.semantic_cache_index_url {
            None => {
                let bytes = usize::try_from(settings.semantic_cache_max_bytes).unwrap_or(usize::MAX);
                Arc::new(MemoryIndex::new(bytes))
            }
            Some(url) => {
                let database = Database { database_url: url.clone(), database_listen_url: None, ..database.clone() };
                Arc::new(PgVectorIndex::new(database, embedder.identity(), wait).context("SEMANTIC_CACHE_INDEX_URL")?)
            }
        };
        let threshold = settings.semantic_cache_similarity_threshold;
        let is_paid_by_operator = settings.semantic_cache_paid_by == "operator";
        Ok(Some(Self { is_paid_by_operator, ..Self::new(embedder, index, wait, threshold) }))
    }

    pub fn new(
        embedder: Arc<dyn Embedder>,
        index: Arc<dyn VectorIndex>,
        wait: Duration,
        threshold: Option<f32>,
    ) -> Self {
        let threshold = threshold.unwrap_or_else(|| embedder.threshold());
        Self { embedder, index, wait, threshold, is_paid_by_operator: false, rest: Rest::default() }
    }

    /// The least cosine of a question in other words, as the operator says it.
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// The provider and the model that a call for a vector is billed as.
    pub fn billed_as(&self) -> Option<(&str, &str)> {
        self.embedder.billed_as()
    }

    pub fn is_paid_by_operator(&self) -> bool {
        self.is_paid_by_operator
    }

    /// Whether a search would ask the embedder now, or leave it alone for a while.
    pub fn is_resting(&self, now_ms: i64) -> bool {
        self.rest.is_resting(now_ms)
    }

    /// Waits no longer than the setting says. With `is_refresh` everything near is named, not only the nearest. `paid` has the
    /// call that was made, also when this is dropped before its end.
    pub async fn search(&self, question: &Question, now_ms: i64, is_refresh: bool, paid: &PaidCall) -> Searched {
        let mut threshold = question.similarity.unwrap_or(self.threshold);
        if is_refresh {
            // What is found then is answered otherwise for everybody, so one request alone cannot call the far near.
            threshold = threshold.max(self.threshold);
        }
        let mut searched = Searched { asked: None, threshold, near: Vec::new() };
        if self.rest.is_resting(now_ms) {
            return searched;
        }
        let work = self.look(question, now_ms, is_refresh, &mut searched, paid);
        match tokio::time::timeout(self.wait, work).await {
            Ok(Ok(())) => self.rest.worked(),
            Ok(Err(NotSearched::Unfit)) => {}
            Ok(Err(NotSearched::Failed(reason))) => self.failed(&reason, now_ms),
            Err(_) => self.failed("no answer in time", now_ms),
        }
        searched
    }

    async fn look(
        &self,
        question: &Question,
        now_ms: i64,
        is_refresh: bool,
        searched: &mut Searched,
        paid: &PaidCall,
    ) -> Result<(), NotSearched> {
        paid.begin();
        let values = match self.embedder.embed(&question.text).await {
            Ok(Embedded { values, call }) => {
                paid.end(call);
                values
            }
            Err(NotEmbedded { reason, call, is_of_text }) => {
                paid.end(call);
                return Err(if is_of_text { NotSearched::Unfit } else { NotSearched::Failed(reason) });
            }
        };
        let marks = marks_of(&question.text).await.ok_or(NotSearched::Unfit)?;
        let asked = searched.asked.insert(AskedVector { partition: question.partition, values, marks });
        let most = if is_refresh { MAX_REPLACED } else { MAX_FOUND };
        let nearness = Nearness { threshold: searched.threshold, guard: self.embedder.guard(), now_ms, most };
        searched.near = self.index.near(asked, nearness).await.map_err(NotSearched::Failed)?;
        Ok(())
    }

    fn failed(&self, reason: &str, now_ms: i64) {
        if self.rest.failed(now_ms) {
            tracing::warn!(reason, "the semantic cache is left alone for a while: its embedder or index fails");
        }
    }

    /// The answer to this question is kept under this key.
    pub fn remember(&self, searched: Searched, key: CacheKey, expires_at_ms: i64) {
        if let Some(asked) = searched.asked {
            self.index.put(asked, key, expires_at_ms);
        }
    }

    /// These answers are gone.
    pub fn forget(&self, searched: &Searched, keys: &[CacheKey]) {
        if let Some(asked) = searched.asked.as_ref().filter(|_| !keys.is_empty()) {
            self.index.remove(asked.partition, keys);
        }
    }

    /// What its index does beside the requests.
    pub async fn run(&self) {
        self.index.run().await;
    }

    pub fn sweep(&self, now_ms: i64) {
        self.index.sweep(now_ms);
    }
}

/// Why nothing was looked for.
enum NotSearched {
    /// This text has no vector: that says nothing of the embedder.
    Unfit,
    Failed(String),
}

/// None only if reading them panicked.
async fn marks_of(text: &str) -> Option<LexicalMarks> {
    if text.len() <= SHORT_TEXT {
        return Some(LexicalMarks::read(text));
    }
    let text = text.to_owned();
    heavy(Tenant::GATEWAY, move || LexicalMarks::read(&text)).await
}

/// What is to be learnt of an answer once it is kept: to which question it is one.
pub struct Learnt {
    pub semantic: Arc<Semantic>,
    pub searched: Searched,
    /// Whether it also takes the place of answers to questions that are near.
    pub is_refresh: bool,
}

impl Learnt {
    /// Keys of the answers that this one replaces besides its own.
    pub fn replaced(&self) -> &[CacheKey] {
        if self.is_refresh { &self.searched.near } else { &[] }
    }

    pub fn remember(self, key: CacheKey, expires_at_ms: i64) {
        self.semantic.remember(self.searched, key, expires_at_ms);
    }
}

#[cfg(test)]
mod tests;
