//! Families of endpoints: what a row of the provider table can offer. A family is a path of OpenAI's (or Anthropic's)
//! interface; at another provider the same bodies may live elsewhere.

use http::Method;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Chat,
    Complete,
    Embed,
    Image,
    ImageEdit,
    Speech,
    Transcribe,
    Translate,
    Rerank,
    Ocr,
    Messages,
    CountTokens,
    Responses,
    Files,
    Batches,
    FineTuning,
    Realtime,
    Moderate,
    ImageVariation,
}

/// What a call is paid by, as far as it can be estimated where nobody reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BilledBy {
    /// What is read and what is written.
    Text,
    /// What is read alone.
    Prompt,
    /// Something that cannot be told from texts: images, minutes, pages, what a file holds.
    Other,
}

impl Family {
    /// In the order of their numbers.
    pub const ALL: [Self; 19] = [
        Self::Chat,
        Self::Complete,
        Self::Embed,
        Self::Image,
        Self::ImageEdit,
        Self::Speech,
        Self::Transcribe,
        Self::Translate,
        Self::Rerank,
        Self::Ocr,
        Self::Messages,
        Self::CountTokens,
        Self::Responses,
        Self::Files,
        Self::Batches,
        Self::FineTuning,
        Self::Realtime,
        Self::Moderate,
        Self::ImageVariation,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Complete => "complete",
            Self::Embed => "embed",
            Self::Image => "image",
            Self::ImageEdit => "image_edit",
            Self::Speech => "speech",
            Self::Transcribe => "transcribe",
            Self::Translate => "translate",
            Self::Rerank => "rerank",
            Self::Ocr => "ocr",
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::Responses => "responses",
            Self::Files => "files",
            Self::Batches => "batches",
            Self::FineTuning => "fine_tuning",
            Self::Realtime => "realtime",
            Self::Moderate => "moderate",
            Self::ImageVariation => "image_variation",
        }
    }

    /// Relative to `/v1`.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Complete => "/completions",
            Self::Embed => "/embeddings",
            Self::Image => "/images/generations",
            Self::ImageEdit => "/images/edits",
            Self::Speech => "/audio/speech",
            Self::Transcribe => "/audio/transcriptions",
            Self::Translate => "/audio/translations",
            Self::Rerank => "/rerank",
            Self::Ocr => "/ocr",
            Self::Messages => "/messages",
            Self::CountTokens => "/messages/count_tokens",
            Self::Responses => "/responses",
            Self::Files => "/files",
            Self::Batches => "/batches",
            Self::FineTuning => "/fine_tuning",
            Self::Realtime => "/realtime",
            Self::Moderate => "/moderations",
            Self::ImageVariation => "/images/variations",
        }
    }

    /// The family of a request, and what follows the family's path.
    pub fn from_path<'p>(method: &Method, path: &'p str) -> Option<(Self, &'p str)> {
        Self::ALL.into_iter().find_map(|family| {
            let rest = path.strip_prefix(family.path())?;
            let is_member = match family {
                Self::Responses | Self::Files | Self::Batches | Self::FineTuning => {
                    rest.is_empty() || rest.starts_with('/')
                }
                Self::Realtime => rest.is_empty() && *method == Method::GET,
                _ => rest.is_empty() && *method == Method::POST,
            };
            is_member.then_some((family, rest))
        })
    }

    /// What a request of the family is billed by, where it costs anything; `rest` is what follows the family's path.
    pub fn billed_by(self, method: &Method, rest: &str) -> Option<BilledBy> {
        let is_creation = *method == Method::POST;
        match self {
            Self::Chat | Self::Complete | Self::Messages => Some(BilledBy::Text),
            Self::Responses => (is_creation && matches!(rest, "" | "/compact")).then_some(BilledBy::Text),
            Self::Embed | Self::Speech | Self::Rerank => Some(BilledBy::Prompt),
            Self::Image | Self::ImageEdit | Self::ImageVariation | Self::Transcribe | Self::Translate | Self::Ocr => {
                Some(BilledBy::Other)
            }
            Self::Batches => (is_creation && rest.is_empty()).then_some(BilledBy::Other),
            Self::FineTuning => (is_creation && rest == "/jobs").then_some(BilledBy::Other),
            // Each response of a session is counted by itself.
            Self::Realtime | Self::Files | Self::CountTokens | Self::Moderate => None,
        }
    }

    /// Whether a provider that does not list the family is asked all the same: these have no common form, and the
    /// interface promises to pass them through.
    pub const fn passes_unlisted(self) -> bool {
        matches!(self, Self::Rerank | Self::Moderate | Self::ImageVariation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_familys_number_is_its_place_in_the_list_and_its_name_is_what_rows_call_it() {
        for (number, family) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family as usize, number);
            let name = serde_json::Value::String(family.name().to_owned());
            assert_eq!(serde_json::from_value::<Family>(name).unwrap(), family);
        }
    }

    #[test]
    fn what_costs_something_says_by_what_and_what_looks_something_up_costs_nothing() {
        for (method, path, expected) in [
            (Method::POST, "/chat/completions", Some(BilledBy::Text)),
            (Method::POST, "/responses", Some(BilledBy::Text)),
            (Method::GET, "/responses/r", None),
            (Method::POST, "/responses/r/cancel", None),
            (Method::POST, "/embeddings", Some(BilledBy::Prompt)),
            (Method::POST, "/audio/transcriptions", Some(BilledBy::Other)),
            (Method::POST, "/batches", Some(BilledBy::Other)),
            (Method::GET, "/batches", None),
            (Method::POST, "/batches/b/cancel", None),
            (Method::POST, "/fine_tuning/jobs", Some(BilledBy::Other)),
            (Method::POST, "/fine_tuning/jobs/j/cancel", None),
            (Method::POST, "/messages/count_tokens", None),
            (Method::POST, "/files", None),
        ] {
            let (family, rest) = Family::from_path(&method, path).unwrap();
            assert_eq!(family.billed_by(&method, rest), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_path_belongs_to_one_family_or_to_none() {
        for (method, path, expected) in [
            (Method::POST, "/chat/completions", Some((Family::Chat, ""))),
            (Method::GET, "/chat/completions", None),
            (Method::POST, "/chat/completions/1", None),
            (Method::POST, "/messages", Some((Family::Messages, ""))),
            (Method::POST, "/messages/count_tokens", Some((Family::CountTokens, ""))),
            (Method::POST, "/messages/batches", None),
            (Method::GET, "/files", Some((Family::Files, ""))),
            (Method::DELETE, "/files/f-1", Some((Family::Files, "/f-1"))),
            (Method::GET, "/filesystem", None),
            (Method::GET, "/responses/r/input_items", Some((Family::Responses, "/r/input_items"))),
            (Method::POST, "/fine_tuning/jobs", Some((Family::FineTuning, "/jobs"))),
            (Method::GET, "/realtime", Some((Family::Realtime, ""))),
            (Method::POST, "/realtime", None),
            (Method::POST, "/moderations", Some((Family::Moderate, ""))),
            (Method::GET, "/moderations", None),
        ] {
            assert_eq!(Family::from_path(&method, path), expected, "{method} {path}");
        }
    }
}
