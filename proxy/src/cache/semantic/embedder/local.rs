//! Static embeddings: each token has a vector, and a text is the mean of its tokens. No model is run, so it costs less than a
//! millisecond, no second provider and no money. It knows words, not sentences: the stricter guard stands beside it.
//!
//! The folder holds `model.safetensors` and `tokenizer.json` (`make setup-embedder` fetches a small pair).

mod bpe;
mod safetensors;

use super::{Embedded, Embedder, NotEmbedded, normalised};
use crate::cache::semantic::SHORT_TEXT;
use crate::cache::semantic::lexical::Guard;
use crate::runtime::heavy::heavy;
use crate::runtime::tenant_share::Tenant;
use async_trait::async_trait;
use bpe::Bpe;
use safetensors::Matrix;
use std::path::Path;
use std::sync::Arc;

/// Measured on the labelled pairs of the tests, with the stricter guard.
pub const THRESHOLD: f32 = 0.8;

pub struct LocalEmbedder(Arc<StaticModel>);

struct StaticModel {
    tokens: Bpe,
    vectors: Matrix,
}

impl LocalEmbedder {
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let tokens = Bpe::open(&folder.join("tokenizer.json"))?;
        let vectors = Matrix::open(&folder.join("model.safetensors"))?;
        Ok(Self(Arc::new(StaticModel { tokens, vectors })))
    }

    pub fn vector(&self, text: &str) -> Option<Vec<f32>> {
        self.0.vector(text)
    }
}

impl StaticModel {
    fn vector(&self, text: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0.0_f32; self.vectors.columns()];
        self.tokens.encode(text, |token| {
            for (total, value) in sum.iter_mut().zip(self.vectors.row(token)) {
                *total += value;
            }
        });
        // A sum points where its mean points.
        normalised(sum)
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    async fn embed(&self, text: &str) -> Result<Embedded, NotEmbedded> {
        let values = match text.len() <= SHORT_TEXT {
            true => self.0.vector(text),
            false => {
                let (model, text) = (self.0.clone(), text.to_owned());
                heavy(Tenant::GATEWAY, move || model.vector(&text)).await.flatten()
            }
        };
        let values = values.ok_or_else(|| NotEmbedded::of_text("the text has no known token"))?;
        Ok(Embedded { values, call: None })
    }

    fn threshold(&self) -> f32 {
        THRESHOLD
    }

    fn guard(&self) -> Guard {
        Guard::Words
    }

    fn identity(&self) -> String {
        format!("local {}x{}", self.0.vectors.rows(), self.0.vectors.columns())
    }

    fn billed_as(&self) -> Option<(&str, &str)> {
        None
    }
}
