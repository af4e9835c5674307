//! Texts as vectors. Which embedder there is, is the operator's setting: one over HTTP, or static embeddings from a folder.
//! Whatever goes wrong with one is a miss for the request that asked.

pub mod http;
pub mod local;

use super::lexical::Guard;
use async_trait::async_trait;
use std::time::Duration;

pub use http::HttpEmbedder;
pub use local::LocalEmbedder;

/// More numbers than any model has.
pub const MAX_DIMENSIONS: usize = 8192;

/// A text's vector, of length 1, and what asking for it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    pub values: Vec<f32>,
    /// None where nobody was asked.
    pub call: Option<EmbeddingCall>,
}

/// A call of our own, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingCall {
    /// 499 where nobody waited for the answer.
    pub status: u16,
    /// What the provider reported, in OpenAI's words.
    pub usage: Option<String>,
    pub millis: u32,
}

impl EmbeddingCall {
    /// A call that was sent, and whose answer nobody waited for.
    pub fn cut_after(waited: Duration) -> Self {
        Self { status: 499, usage: None, millis: u32::try_from(waited.as_millis()).unwrap_or(u32::MAX) }
    }

    /// Whether it is paid for, as far as anybody can tell, and does not say what it used.
    pub fn needs_estimate(&self) -> bool {
        self.usage.is_none() && matches!(self.status, 200 | 499)
    }
}

/// No vector, and the call, if one was answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotEmbedded {
    pub reason: String,
    pub call: Option<EmbeddingCall>,
    /// The text is to blame: another may well have a vector.
    pub is_of_text: bool,
}

impl NotEmbedded {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), call: None, is_of_text: false }
    }

    pub fn of_text(reason: impl Into<String>) -> Self {
        Self { is_of_text: true, ..Self::new(reason) }
    }

    /// An answer other than a vector. Of what a client did wrong all but its key, its address and its haste is the text.
    pub fn answered(call: EmbeddingCall) -> Self {
        let is_of_text = matches!(call.status, 400..=499) && !matches!(call.status, 401..=404 | 407 | 408 | 429);
        Self { reason: format!("the embedder answered {}", call.status), call: Some(call), is_of_text }
    }
}

#[async_trait]
pub trait Embedder: Send + Sync {
    async fn embed(&self, text: &str) -> Result<Embedded, NotEmbedded>;

    /// The cosine from which on two texts ask the same, where the operator names none.
    fn threshold(&self) -> f32;

    /// How much the guard must compare beside the cosine.
    fn guard(&self) -> Guard;

    /// What its vectors may be compared by: those of another model may not.
    fn identity(&self) -> String;

    /// The provider and the model, for logs; none where nobody is asked.
    fn billed_as(&self) -> Option<(&str, &str)>;
}

/// The vector at length 1; none of a vector that has no direction.
pub fn normalised(mut values: Vec<f32>) -> Option<Vec<f32>> {
    if values.is_empty() || values.len() > MAX_DIMENSIONS {
        return None;
    }
    let length = values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= f64::EPSILON {
        return None;
    }
    for value in &mut values {
        // At most 1.
        let part = (f64::from(*value) / length) as f32;
        *value = part;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_text_is_told_from_what_is_wrong_with_the_embedder() {
        for (status, is_of_text) in [(400, true), (413, true), (422, true), (401, false), (404, false), (429, false)] {
            let answered = NotEmbedded::answered(EmbeddingCall { status, usage: None, millis: 1 });
            assert_eq!(answered.is_of_text, is_of_text, "{status}");
        }
        assert!(!NotEmbedded::answered(EmbeddingCall { status: 503, usage: None, millis: 1 }).is_of_text);
    }

    #[test]
    fn what_was_answered_or_cut_without_usage_is_estimated() {
        let call = |status, usage: Option<&str>| EmbeddingCall { status, usage: usage.map(str::to_owned), millis: 1 };
        for (call, needs) in [
            (call(200, None), true),
            (call(200, Some("{}")), false),
            (EmbeddingCall::cut_after(Duration::from_millis(3)), true),
            (call(500, None), false),
            (call(429, None), false),
        ] {
            assert_eq!(call.needs_estimate(), needs, "{call:?}");
        }
    }

    #[test]
    fn a_vector_has_length_one_or_is_none() {
        assert_eq!(normalised(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        for bad in
            [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![1.0; MAX_DIMENSIONS + 1]]
        {
            assert_eq!(normalised(bad), None);
        }
    }
}
