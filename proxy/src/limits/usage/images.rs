//! Images by the piece. Providers that are paid by the image do not report what was used; the request says it, and where the
//! answer was read, how many there are.

use crate::request::body::Fields;
use crate::request::text_bounds::{self, cut};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// More than any provider makes at once.
const MAX_IMAGES: u64 = 1000;

/// The usage of a request for images that was answered without a word about it, in the form that prices are worked out
/// from. What was not asked for is what providers take then. `made` is how many came, where that is known: some vendors make
/// one whatever they are asked for, and some hold back what they would not show.
pub fn asked_for(path: &str, body: &[u8], made: Option<u64>) -> Option<String> {
    if !is_of_images(path) || made == Some(0) {
        return None;
    }
    let fields = Fields::parse_object(body).ok()?;
    let text = |name: &str, usual: &str| {
        fields.text(name).map_or_else(|| usual.to_owned(), |text| cut(&text, text_bounds::WORD).to_owned())
    };
    // Forms have their numbers as texts.
    let count = fields.value("n").and_then(|n| match n {
        Value::String(text) => text.trim().parse().ok(),
        // `2.0` is two for whoever reads numbers as floats.
        other => other.as_u64().or_else(|| other.as_f64().map(|count| count as u64)),
    });
    let count = made.or(count).unwrap_or(1).clamp(1, MAX_IMAGES);
    let (quality, size) = (text("quality", "standard"), text("size", "1024x1024"));
    Some(json!({ "images": { "quality": quality, "size": size, "count": count } }).to_string())
}

/// How many images an answer in OpenAI's form holds.
pub fn made(path: &str, answer: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Made {
        data: Vec<IgnoredAny>,
    }
    let made = is_of_images(path).then(|| serde_json::from_slice::<Made>(answer).ok()).flatten()?;
    Some(made.data.len() as u64)
}

fn is_of_images(path: &str) -> bool {
    path.contains("/images/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_images_says_how_many_and_which() {
        for (path, body, expected) in [
            ("/v1/images/generations", r#"{"prompt":"a"}"#, Some(("standard", "1024x1024", 1))),
            ("/v1/images/generations", r#"{"n":3,"quality":"hd","size":"1792x1024"}"#, Some(("hd", "1792x1024", 3))),
            ("/v1/images/edits", r#"{"n":"2","size":"256x256"}"#, Some(("standard", "256x256", 2))),
            ("/v1/images/generations", r#"{"n":4.0}"#, Some(("standard", "1024x1024", 4))),
            ("/v1/images/generations", r#"{"n":1e300}"#, Some(("standard", "1024x1024", MAX_IMAGES))),
            ("/v1/images/edits", r#"{"n":0}"#, Some(("standard", "1024x1024", 1))),
            (
                "/v1/images/edits",
                &format!(r#"{{"size":"{}"}}"#, "é".repeat(900)),
                Some(("standard", &"é".repeat(64), 1)),
            ),
            ("/v1/images/edits", "no JSON", None),
            ("/v1/chat/completions", r#"{"n":3}"#, None),
        ] {
            let expected = expected.map(|(quality, size, count)| {
                json!({ "images": { "quality": quality, "size": size, "count": count } }).to_string()
            });
            assert_eq!(asked_for(path, body.as_bytes(), None), expected, "{path} {body}");
        }
    }
    #[test]
    fn what_was_made_counts_and_not_what_was_wished_for() {
        const PATH: &str = "/v1/images/generations";
        let of = |answer: &str| made(PATH, answer.as_bytes());
        assert_eq!(of(r#"{"created":1,"data":[{"b64_json":"AAAA"},{"url":"x"}]}"#), Some(2));
        assert_eq!((of(r#"{"data":[]}"#), of(r#"{"error":{}}"#), of("no JSON")), (Some(0), None, None));
        assert_eq!(made("/v1/embeddings", br#"{"data":[1]}"#), None);
        let counted = |made| asked_for(PATH, br#"{"n":4}"#, made);
        assert!(counted(Some(1)).is_some_and(|usage| usage.contains(r#""count":1"#)));
        assert!(counted(None).is_some_and(|usage| usage.contains(r#""count":4"#)));
        assert_eq!(counted(Some(0)), None);
    }
}
