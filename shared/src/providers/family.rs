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
