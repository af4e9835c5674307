//! Units that no answer reports and the call itself tells: the characters that are spoken, the searches of a rerank, the
//! seconds of a video. In the form that prices are worked out from.

use crate::request::body::Fields;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{json, value::RawValue};

/// Whose rerankers are paid by the search and do not say how many there were.
const BY_SEARCH: [&str; 4] = ["bedrock", "vertex-ai", "azure-ai", "cohere"];
/// So many documents are one search.
const DOCUMENTS_PER_SEARCH: u64 = 100;
/// Longer than any video that is made at once.
const MAX_SECONDS: f64 = 3600.0;

/// Of a text that was spoken.
pub fn of_speech(path: &str, body: &[u8]) -> Option<String> {
    if !path.ends_with("/audio/speech") {
        return None;
    }
    let characters = Fields::parse_object(body).ok()?.text("input")?.chars().count();
    (characters > 0).then(|| json!({ "characters": characters }).to_string())
}

/// Of documents that were ranked.
pub fn of_rerank(provider: &str, path: &str, body: &[u8]) -> Option<String> {
    if !path.ends_with("/rerank") || !BY_SEARCH.contains(&provider) {
        return None;
    }
    let fields = Fields::parse_object(body).ok()?;
    let documents = serde_json::from_str::<Vec<IgnoredAny>>(fields.get("documents")?).ok()?.len() as u64;
    Some(json!({ "searches": documents.div_ceil(DOCUMENTS_PER_SEARCH).max(1) }).to_string())
}

/// Of a video, from the answer that promises it.
pub fn of_video(path: &str, answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Video<'v> {
        #[serde(borrow)]
        seconds: &'v RawValue,
        size: Option<String>,
    }
    if !path.ends_with("/videos") {
        return None;
    }
    let video: Video<'_> = serde_json::from_slice(answer).ok()?;
    let seconds: f64 = video.seconds.get().trim_matches('"').parse().ok()?;
    if !seconds.is_finite() || seconds <= 0.0 {
        return None;
    }
    let seconds = seconds.min(MAX_SECONDS);
    Some(match video.size.as_deref().and_then(resolution) {
        Some(resolution) => json!({ "video": { "seconds": seconds, "resolution": resolution } }).to_string(),
        None => json!({ "video": { "seconds": seconds } }).to_string(),
    })
}

/// `1280x720` and `720x1280` are 720p.
fn resolution(size: &str) -> Option<String> {
    let (width, height) = size.split_once('x')?;
    let shorter = width.parse::<u32>().ok()?.min(height.parse().ok()?);
    Some(format!("{shorter}p"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_tell_the_units_that_no_answer_reports() {
        let spoken = |body: &str| of_speech("/v1/audio/speech", body.as_bytes());
        assert_eq!(spoken(r#"{"input":"héllo"}"#).as_deref(), Some(r#"{"characters":5}"#));
        assert_eq!((spoken(r#"{"input":""}"#), spoken("{}"), spoken("no JSON")), (None, None, None));
        assert_eq!(of_speech("/v1/chat/completions", br#"{"input":"a"}"#), None);

        let many = format!(r#"{{"documents":[{}]}}"#, vec!["\"d\""; 101].join(","));
        for (provider, body, expected) in [
            ("bedrock", r#"{"documents":["a"]}"#, Some(r#"{"searches":1}"#)),
            ("bedrock", r#"{"documents":[]}"#, Some(r#"{"searches":1}"#)),
            ("vertex-ai", &many, Some(r#"{"searches":2}"#)),
            ("jina", r#"{"documents":["a"]}"#, None),
            ("bedrock", r#"{"documents":"a"}"#, None),
        ] {
            assert_eq!(of_rerank(provider, "/v1/rerank", body.as_bytes()).as_deref(), expected, "{provider}");
        }

        for (answer, expected) in [
            (r#"{"seconds":"8","size":"1280x720"}"#, Some(r#"{"video":{"seconds":8.0,"resolution":"720p"}}"#)),
            (r#"{"seconds":4,"size":"x"}"#, Some(r#"{"video":{"seconds":4.0}}"#)),
            (r#"{"seconds":1e9}"#, Some(r#"{"video":{"seconds":3600.0}}"#)),
            (r#"{"seconds":-1}"#, None),
            (r#"{"seconds":"NaN"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(of_video("/v1/videos", answer.as_bytes()).as_deref(), expected, "{answer}");
        }
    }
}
