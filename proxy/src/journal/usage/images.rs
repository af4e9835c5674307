//! Images by the piece. Providers that are paid by the image do not report what was used; the request says it.

use crate::request::body::Fields;
use crate::request::text_bounds::{self, cut};
use serde_json::{Value, json};

/// More than any provider makes at once.
const MOST: u64 = 1000;

/// The usage of a request for images that was answered without a word about it, in the form that prices are worked out
/// from. What was not asked for is what providers take then.
pub fn asked_for(path: &str, body: &[u8]) -> Option<String> {
    if !path.contains("/images/") {
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
    let count = count.unwrap_or(1).clamp(1, MOST);
    let (quality, size) = (text("quality", "standard"), text("size", "1024x1024"));
    Some(json!({ "images": { "quality": quality, "size": size, "count": count } }).to_string())
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
            ("/v1/images/generations", r#"{"n":1e300}"#, Some(("standard", "1024x1024", MOST))),
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
            assert_eq!(asked_for(path, body.as_bytes()), expected, "{path} {body}");
        }
    }
}
