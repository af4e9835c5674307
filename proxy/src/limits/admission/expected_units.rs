//! What a request will use beside tokens of text, as far as it says so: images, characters, seconds, pages and searches by its
//! family, fees of the provider's tools that it names, sound, and how long what is read shall be kept. Amounts are guesses; what
//! matters is which units need a rate.

use super::cache_lifetime::longest_asked;
use super::expected::SentBody;
use memchr::memmem;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::cost::{CacheLifetime, Images, Usage};
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
    /// Sound that is sent, and sound that is asked for.
    has_audio_input: bool,
    has_audio_output: bool,
    cache: CacheLifetime,
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
const TOOLS: [(&str, &[&str]); 11] = [
    ("web_search", &["web_search"]),
    ("google_search", &["web_search", "grounded_prompt"]),
    ("google_maps", &["maps"]),
    ("file_search", &["file_search"]),
    ("collections_search", &["file_search"]),
    ("code_interpreter", &["code_execution"]),
    ("code_execution", &["code_execution"]),
    ("x_search", &["x_search"]),
    ("attachment_search", &["attachment_search"]),
    ("document_search", &["attachment_search"]),
    ("image_generation", &["image_generation"]),
];

/// Parts of the names of such tools: nearly all tools are the caller's own functions, and are not read.
const TOOL_MARKS: [&str; 7] =
    ["_search", "googleSearch", "google_maps", "googleMaps", "code_interpreter", "code_execution", "image_generation"];

/// How much a search brings in where the request does not say it.
const USUAL_CONTEXT: &str = "low";

/// A tool as requests name it: by its type, or as Google's are by a field.
#[derive(Deserialize)]
struct NamedTool<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'t, str>>,
    #[serde(alias = "google_search", rename = "googleSearch")]
    google_search: Option<IgnoredAny>,
    #[serde(rename = "googleSearchRetrieval")]
    google_search_retrieval: Option<IgnoredAny>,
    #[serde(alias = "google_maps", rename = "googleMaps")]
    google_maps: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct SearchOptions<'o> {
    #[serde(borrow)]
    search_context_size: Option<Cow<'o, str>>,
}

const MAX_IMAGES: u64 = 1000;
/// Longest quality or size that is looked up.
const MAX_WORD: usize = 64;

impl ExpectedUnits {
    /// `needs_rates`: whether a unit without a rate matters, which takes a look at everything that is said.
    pub fn of_request(family: Family, sent: &SentBody<'_>, needs_rates: bool) -> Self {
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
            "web_search_options" if value != b"null" => units.name_search(value),
            "bbox_annotation_format" | "document_annotation_format" if value != b"null" => {
                units.fees.push("annotated_pages");
            }
            "images" if family == Family::Embed && value != b"null" && value != b"[]" => units.fees.push("input_image"),
            "modalities" => units.has_audio_output |= memmem::find(value, b"\"audio\"").is_some(),
            "messages" | "input" => units.has_audio_input |= memmem::find(value, b"\"input_audio\"").is_some(),
            "generationConfig" => units.has_audio_output |= memmem::find(value, b"\"AUDIO\"").is_some(),
            "contents" => units.has_audio_input |= memmem::find(value, b"\"audio/").is_some(),
            _ => {}
        });
        if needs_rates {
            units.cache = longest_asked(sent);
        }
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
        if TOOL_MARKS.iter().all(|mark| memmem::find(tools, mark.as_bytes()).is_none()) {
            return;
        }
        let tools: Vec<NamedTool<'_>> = serde_json::from_slice(tools).unwrap_or_default();
        for tool in tools {
            let kind = tool.kind.unwrap_or_default();
            let named = TOOLS.iter().filter(|(name, _)| kind.starts_with(name));
            self.fees.extend(named.flat_map(|(_, fees)| fees.iter().copied()));
            if tool.google_search.is_some() || tool.google_search_retrieval.is_some() {
                self.fees.extend(["web_search", "grounded_prompt"]);
            }
            if tool.google_maps.is_some() {
                self.fees.push("maps");
            }
        }
    }

    /// Searches are paid one by one, or by how much they bring in: whichever has a rate.
    fn name_search(&mut self, options: &[u8]) {
        let size =
            serde_json::from_slice::<SearchOptions<'_>>(options).ok().and_then(|options| options.search_context_size);
        let context = match size.as_deref().unwrap_or(USUAL_CONTEXT) {
            "high" => "request_high_context",
            "medium" => "request_medium_context",
            _ => "request_low_context",
        };
        self.fees.extend(["web_search", context]);
    }

    /// What the call is paid by instead of tokens, if its model has such a price.
    pub fn pieces(&self) -> Option<Usage> {
        Some(match self.piece.clone()? {
            Piece::Images { quality, size, count } => {
                Usage { images: Some(Images { quality, size, count }), units: self.fees(), ..Usage::default() }
            }
            Piece::Unit(name, count) => {
                let units = self.fees().into_iter().chain([(name.to_owned(), count.into())]);
                Usage { units: units.collect(), ..Usage::default() }
            }
        })
    }

    /// These tokens of text, and one of each other kind that the request brings about.
    pub fn with_tokens(&self, input: u64, output: u64) -> Usage {
        let written = |lifetime: CacheLifetime| u64::from(self.cache == lifetime);
        Usage {
            input,
            output,
            cache_write: u64::from(self.cache != CacheLifetime::None),
            cache_write_1h: written(CacheLifetime::OneHour),
            cache_write_12h: written(CacheLifetime::Any),
            audio_input: self.has_audio_input.into(),
            audio_output: self.has_audio_output.into(),
            units: self.fees(),
            ..Usage::default()
        }
    }

    pub fn is_by_piece(&self) -> bool {
        self.piece.is_some()
    }

    pub fn token_rate(&self) -> Option<&'static str> {
        self.token_rate
    }

    /// What is paid besides tokens: one call of each tool.
    fn fees(&self) -> BTreeMap<String, Decimal> {
        self.fees.iter().map(|name| ((*name).to_owned(), Decimal::ONE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::body::Fields;

    fn units(family: Family, body: &str) -> ExpectedUnits {
        let fields = Fields::parse_object(body.as_bytes()).unwrap();
        ExpectedUnits::of_request(family, &SentBody::new(body.as_bytes(), &fields, None), true)
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
            (r#"{"tools":[{"type":"x_search"},{"type":"code_execution_20250522"}]}"#, &["code_execution", "x_search"]),
            (
                r#"{"tools":[{"type":"collections_search"},{"type":"code_interpreter"}]}"#,
                &["code_execution", "file_search"],
            ),
            (
                r#"{"tools":[{"type":"document_search"},{"type":"image_generation"}]}"#,
                &["attachment_search", "image_generation"],
            ),
            (r#"{"tools":[{"googleSearch":{}}]}"#, &["grounded_prompt", "web_search"]),
            (r#"{"tools":[{"googleSearchRetrieval":{}}]}"#, &["grounded_prompt", "web_search"]),
            (r#"{"tools":[{"googleMaps":{}}]}"#, &["maps"]),
            (r#"{"tools":[{"type":"google_maps"}]}"#, &["maps"]),
            (r#"{"web_search_options":{}}"#, &["request_low_context", "web_search"]),
            (r#"{"web_search_options":{"search_context_size":"medium"}}"#, &["request_medium_context", "web_search"]),
            (r#"{"web_search_options":{"search_context_size":"high"}}"#, &["request_high_context", "web_search"]),
            (r#"{"tools":[{"type":"function","function":{"name":"web_search"}}],"web_search_options":null}"#, &[]),
            (r#"{"tools":[{"googleMaps":null}]}"#, &[]),
        ] {
            let found: Vec<String> = units(Family::Responses, body).fees().into_keys().collect();
            assert_eq!(found, fees, "{body}");
        }
    }

    #[test]
    fn kinds_of_tokens_that_a_request_brings_about_need_a_rate() {
        let plain = Usage { input: 1, output: 2, ..Usage::default() };
        let written = Usage { cache_write: 1, ..plain.clone() };
        for (body, expected) in [
            (r#"{"messages":[{"role":"user","content":"say \"input_audio\" aloud"}]}"#, plain.clone()),
            (r#"{"modalities":["text","audio"]}"#, Usage { audio_output: 1, ..plain.clone() }),
            (r#"{"messages":[{"content":[{"type":"input_audio"}]}]}"#, Usage { audio_input: 1, ..plain.clone() }),
            (r#"{"generationConfig":{"responseModalities":["AUDIO"]}}"#, Usage { audio_output: 1, ..plain.clone() }),
            (
                r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/mp3"}}]}]}"#,
                Usage { audio_input: 1, ..plain },
            ),
            (r#"{"system":[{"cache_control":{"type":"ephemeral"}}]}"#, written.clone()),
            (r#"{"system":[{"cache_control":{"ttl":"1h"}}]}"#, Usage { cache_write_1h: 1, ..written.clone() }),
            (r#"{"system":[{"cache_control":{"ttl":"12h"}}]}"#, Usage { cache_write_12h: 1, ..written }),
        ] {
            assert_eq!(units(Family::Chat, body).with_tokens(1, 2), expected, "{body}");
        }
    }

    #[test]
    fn pieces_come_with_the_fees_of_what_is_asked_beside_them() {
        for (family, body, expected) in [
            (Family::Ocr, r#"{"document_annotation_format":{}}"#, &["annotated_pages", "pages"][..]),
            (
                Family::Ocr,
                r#"{"bbox_annotation_format":{},"document_annotation_format":null}"#,
                &["annotated_pages", "pages"],
            ),
            (Family::Ocr, r#"{"bbox_annotation_format":null}"#, &["pages"]),
        ] {
            let found: Vec<String> = units(family, body).pieces().unwrap().units.into_keys().collect();
            assert_eq!(found, expected, "{body}");
        }
        let embedded = |body: &str| units(Family::Embed, body).with_tokens(1, 0).units.into_keys().collect::<Vec<_>>();
        assert_eq!(
            (embedded(r#"{"images":["data:"]}"#), embedded(r#"{"images":[]}"#)),
            (vec!["input_image".to_owned()], vec![])
        );
    }
}
