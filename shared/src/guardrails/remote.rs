//! Checks that somebody else answers: webhooks, vendors, key sets, models. Here is what is asked and what an answer means, both
//! pure; whoever has a dialer makes the calls (the proxy for requests, admin for trials), under its rules for addresses.
//!
//! A credential stands in the head of the one call that needs it and nowhere else: a call prints its host alone, a failure
//! repeats nothing of an answer, and what an answer says is `scrubbed` of it before it is told.

mod answer;
mod call;
mod failure;
mod forwarded;
mod headers;
mod image;
mod model_question;
mod scrub;

pub use answer::RemoteAnswer;
pub use call::RemoteCall;
pub use failure::RemoteFailure;
pub(super) use forwarded::forwarded;
pub use forwarded::may_forward;
pub(super) use headers::configured_headers;
pub use image::{Image, Images};
pub use model_question::{ModelQuestion, ModelTarget};
pub use scrub::scrubbed;

use super::subject::Subject;
use super::verdict::Verdict;
use crate::identity::jwt::WebKeySet;
use http::HeaderMap;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// The longest answer that is read.
pub const MAX_ANSWER: usize = 1 << 20;
/// What a check may send for one body, all its calls together. What is more is not judged, and never passes for it.
pub const MAX_QUESTION: usize = 16 << 20;
/// However long a check says it waits: whoever asked is waiting too.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// Checks that others answer, of one side of a request. A config with more is refused; where saved guardrails add up to more, the
/// rest fails.
pub const MAX_CHECKS: usize = 20;
/// Calls that one check may make for one body.
pub const MAX_CALLS: usize = 32;

pub trait RemoteCheck: Send + Sync {
    /// Whose credentials it needs (`POST /plugins`).
    fn plugin(&self) -> Option<&'static str> {
        None
    }

    /// For all its calls together.
    fn timeout(&self) -> Duration;

    /// What must be asked; or what it says without asking, because there is nothing to ask or no way to.
    fn ask(&self, subject: &Subject<'_>, context: &RemoteContext<'_>) -> Result<Question, Box<Verdict>>;

    /// What the answers mean.
    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict;
}

/// What calls may know besides what is judged.
#[derive(Clone, Copy, Default)]
pub struct RemoteContext<'c> {
    /// Of the check's plugin; none where none are stored.
    pub credentials: Option<&'c Map<String, Value>>,
    /// As the config names it.
    pub provider: &'c str,
    /// Of the client, as far as anybody may get them.
    pub headers: Option<&'c HeaderMap>,
    pub trace_id: &'c str,
    /// Of the answer.
    pub status: Option<u16>,
    /// A check before this one changed what is judged.
    pub is_transformed: bool,
}

pub enum Question {
    /// Made side by side; every one must be answered.
    Calls(Vec<RemoteCall>),
    /// One call whose answer is given again for this long.
    CachedCall { call: RemoteCall, cached_for: Duration },
    /// The keys behind an address, which are kept for this long: fetched anew if `kid` is not among them.
    KeySet { url: String, kid: String, cached_for: Duration },
    /// A model of the workspace's own; its answer is the one of `Answers::Calls`.
    Model(ModelQuestion),
    /// The images behind these addresses, none longer than this.
    Images { urls: Vec<String>, longest: usize },
    /// Which of these are there: by their names alone, or by an answer.
    Addresses { urls: Vec<String>, only_names: bool },
}

pub enum Answers {
    /// In the order of the calls.
    Calls(Vec<RemoteAnswer>),
    KeySet(Arc<WebKeySet>),
    /// In the order of the addresses.
    Addresses(Vec<bool>),
    /// The same.
    Images(Images),
}

impl Question {
    /// What must not be told, whatever an answer says.
    pub fn secrets(&self) -> Vec<String> {
        match self {
            Self::Calls(calls) => calls.iter().flat_map(RemoteCall::secrets).collect(),
            Self::CachedCall { call, .. } => call.secrets(),
            Self::KeySet { .. } | Self::Model(_) | Self::Images { .. } | Self::Addresses { .. } => Vec::new(),
        }
    }

    /// The same, unless it is more than is sent.
    pub fn bounded(self) -> Result<Self, Box<Verdict>> {
        let size = match &self {
            Self::Calls(calls) => calls.iter().map(|call| call.body.len()).sum(),
            Self::CachedCall { call, .. } => call.body.len(),
            Self::KeySet { .. } | Self::Images { .. } | Self::Addresses { .. } => 0,
            Self::Model(question) => question.body.len(),
        };
        match size > MAX_QUESTION {
            false => Ok(self),
            true => {
                let why = format!("more than the {MAX_QUESTION} bytes that are sent to a service would have to be");
                Err(Verdict::bound("TooLarge", why).into())
            }
        }
    }
}

impl Answers {
    pub(super) fn calls(&self) -> &[RemoteAnswer] {
        match self {
            Self::Calls(answers) => answers,
            Self::KeySet(_) | Self::Addresses(_) | Self::Images(_) => &[],
        }
    }

    /// How many bytes they are, about.
    pub fn size(&self) -> usize {
        match self {
            Self::Calls(answers) => answers.iter().map(|answer| answer.body.len()).sum(),
            Self::Images(images) => images.size(),
            Self::KeySet(_) | Self::Addresses(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_too_large_to_be_sent_never_passes() {
        let question = |length: usize| {
            let call = RemoteCall::post("https://a.test/".into(), &json!("x".repeat(length)));
            Question::Calls(vec![call.clone(), call])
        };
        assert!(question(10).bounded().is_ok());
        assert!(question(MAX_QUESTION / 2).bounded().is_err_and(|said| said.is_bound() && !said.passes(false)));
        let keys = Question::KeySet { url: String::new(), kid: String::new(), cached_for: Duration::ZERO };
        assert!(keys.bounded().is_ok());
    }
}
