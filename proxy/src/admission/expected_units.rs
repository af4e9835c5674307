//! What a request will use that is no tokens, as far as it says so: images, characters, seconds, pages and searches by its
//! family, and fees of the provider's tools that it names. Amounts are guesses; what matters is which units need a rate.

use super::expected::SentBody;
use memchr::memmem;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::cost::{Images, Usage};
use shared::providers::Family;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpectedUnits {
    piece: Option<Piece>,
    /// The rate that a model has which is paid by tokens instead; none where it would not report them.
    token_rate: Option<&'static str>,
    /// Names of units.
    fees: Vec<&'static str>,
    /// Whether the model writes something.
    pub has_answer: bool,
}

/// What a call of a family is paid by, if not by tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Images { quality: String, size: String, count: u64 },
    Unit(&'static str, u64),
}

/// Tools that providers run, by how their type begins.
const TOOLS: [(&str, &str); 4] = [
    ("web_search", "web_search"),
    ("file_search", "file_search"),
    ("code_interpreter", "code_execution"),
    ("x_search", "x_search"),
];

/// A tool as requests name it: by its type, or as Google's are by a field.
#[derive(Deserialize)]
struct NamedTool<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'t, str>>,
    #[serde(alias = "google_search", rename = "googleSearch")]
    google_search: Option<IgnoredAny>,
}
const MAX_IMAGES: u64 = 1000;
/// Longest quality or size that is looked up.
const MAX_WORD: usize = 64;

impl ExpectedUnits {
    pub fn of_request(family: Family, sent: &SentBody<'_>) -> Self {
        let mut units = Self::default();
        let (mut quality, mut size, mut count, mut characters) = (None, None, 1, 0);
        let text = |value: &[u8]| serde_json::from_slice::<String>(value).ok().filter(|text| text.len() <= MAX_WORD);
        sent.each_field(|key, value| match key {
            "quality" => quality = text(value),
            "size" => size = text(value),
            "n" => count = serde_json::from_slice::<u64>(value).unwrap_or(1).clamp(1, MAX_IMAGES),
            // Quotes stand around it.
            "input" if family == Family::Speech => characters = value.len().saturating_sub(2) as u64,
            "tools" => units.name_tools(value),
            "web_search_options" if value != b"null" => units.fees.push("web_search"),
            _ => {}
        });
        units.piece = match family {
            Family::Image | Family::ImageEdit | Family::ImageVariation => Some(Piece::Images {
                quality: quality.unwrap_or_else(|| "standard".to_owned()),
                size: size.unwrap_or_else(|| "1024x1024".to_owned()),
                count,
            }),
            Family::Speech => Some(Piece::Unit("characters", characters.max(1))),
            Family::Transcribe | Family::Translate => Some(Piece::Unit("audio_seconds", 1)),
            Family::Rerank => Some(Piece::Unit("search", 1)),
            Family::Ocr => Some(Piece::Unit("pages", 1)),
            _ => None,
        };
        units.token_rate = match family {
            Family::Image | Family::ImageEdit | Family::ImageVariation => Some("response_image_token"),
            Family::Transcribe | Family::Translate => Some("request_audio_token"),
            Family::Rerank | Family::Ocr => Some("request_token"),
            _ => None,
        };
        units.has_answer =
            matches!(family, Family::Chat | Family::Complete | Family::Messages | Family::Responses | Family::Realtime);
        units
    }

    fn name_tools(&mut self, tools: &[u8]) {
        // Nearly all tools are the caller's own functions.
        let may_search = memmem::find(tools, b"_search").or_else(|| memmem::find(tools, b"googleSearch"));
        if may_search.is_none() && memmem::find(tools, b"code_interpreter").is_none() {
            return;
        }
        let tools: Vec<NamedTool<'_>> = serde_json::from_slice(tools).unwrap_or_default();
        for tool in tools {
            let kind = tool.kind.unwrap_or_default();
            self.fees.extend(TOOLS.iter().filter(|(name, _)| kind.starts_with(name)).map(|(_, fee)| *fee));
            if tool.google_search.is_some() {
                self.fees.extend(["web_search", "grounded_prompt"]);
            }
        }
    }

    /// What the call is paid by instead of tokens, if its model has such a price.
    pub fn pieces(&self) -> Option<Usage> {
        Some(match self.piece.clone()? {
            Piece::Images { quality, size, count } => {
                Usage { images: Some(Images { quality, size, count }), ..Usage::default() }
            }
            Piece::Unit(name, count) => {
                Usage { units: BTreeMap::from([(name.to_owned(), count.into())]), ..Usage::default() }
            }
        })
    }

    pub fn is_by_piece(&self) -> bool {
        self.piece.is_some()
    }

    pub fn token_rate(&self) -> Option<&'static str> {
        self.token_rate
    }

    /// What is paid besides tokens: one call of each tool.
    pub fn fees(&self) -> BTreeMap<String, Decimal> {
        self.fees.iter().map(|name| ((*name).to_owned(), Decimal::ONE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::body::Fields;

    fn units(family: Family, body: &str) -> ExpectedUnits {
        let fields = Fields::parse_object(body.as_bytes()).unwrap();
        ExpectedUnits::of_request(family, &SentBody::new(body.as_bytes(), &fields, None))
    }

    #[test]
    fn a_request_says_which_units_need_a_rate() {
        for (family, body, unit) in [
            (Family::Speech, r#"{"input":"hello"}"#, Some(("characters", 5))),
            (Family::Transcribe, "{}", Some(("audio_seconds", 1))),
            (Family::Rerank, r#"{"documents":[]}"#, Some(("search", 1))),
            (Family::Ocr, "{}", Some(("pages", 1))),
            (Family::Chat, "{}", None),
            (Family::Embed, r#"{"input":"a"}"#, None),
        ] {
            let found = units(family, body).pieces().map(|usage| usage.units);
            let expected = unit.map(|(name, count)| BTreeMap::from([(name.to_owned(), Decimal::from(count))]));
            assert_eq!(found, expected, "{body}");
        }
        let images = units(Family::Image, r#"{"quality":"hd","size":"1792x1024","n":3}"#).pieces().unwrap().images;
        assert_eq!(images, Some(Images { quality: "hd".into(), size: "1792x1024".into(), count: 3 }));
        for (body, fees) in [
            (r#"{"tools":[{"type":"web_search_preview"},{"type":"file_search"}]}"#, &["file_search", "web_search"][..]),
            (r#"{"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#, &["web_search"]),
            (r#"{"tools":[{"googleSearch":{}}]}"#, &["grounded_prompt", "web_search"]),
            (r#"{"web_search_options":{}}"#, &["web_search"]),
            (r#"{"tools":[{"type":"function","function":{"name":"web_search"}}],"web_search_options":null}"#, &[]),
        ] {
            let found: Vec<String> = units(Family::Responses, body).fees().into_keys().collect();
            assert_eq!(found, fees, "{body}");
        }
    }
}
