//! OpenAI's answer around the images that a vendor made. They stay encoded: what is checked is that they are text which
//! can be base64, or an address.

use super::asked::MAX_IMAGES;
use crate::wire::codecs::base64_text;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::objects::AskedObject;
use serde_json::{Map, Value, json};

/// What vendors call the bytes of an image, or its address.
const PICTURES: [&str; 5] = ["b64_json", "base64", "bytesBase64Encoded", "image", "url"];

/// `place` is where the answer has its images, or its only one. An answer that was an image itself comes as one text.
pub(super) fn answer(mut reply: Value, place: &str, asked: &AskedObject) -> Result<Value, CodecError> {
    let found = if reply.is_string() { Some(reply) } else { reply.pointer_mut(place).map(Value::take) };
    let items = match found {
        Some(Value::Array(items)) if items.len() > MAX_IMAGES => {
            return Err(CodecError::TooMany { field: "images".into(), most: MAX_IMAGES });
        }
        Some(Value::Array(items)) => items,
        Some(one @ (Value::String(_) | Value::Object(_))) => vec![one],
        _ => return Err(no_images()),
    };
    // One that a vendor withheld has no bytes.
    let data: Vec<Value> = items.into_iter().filter_map(image).collect();
    if data.is_empty() {
        return Err(no_images());
    }
    Ok(json!({ "created": asked.created, "data": data, "provider": asked.provider }))
}

fn no_images() -> CodecError {
    CodecError::field("images", "are missing in the answer")
}

fn image(item: Value) -> Option<Value> {
    let (picture, prompt) = match item {
        Value::String(text) => (text, None),
        Value::Object(mut fields) => {
            let picture = PICTURES.iter().find_map(|name| text(&mut fields, name))?;
            (picture, text(&mut fields, "revised_prompt").or_else(|| text(&mut fields, "prompt")))
        }
        _ => return None,
    };
    let mut image = if picture.starts_with("https://") || picture.starts_with("http://") {
        json!({ "url": picture })
    } else {
        let base64 = match picture.strip_prefix("data:") {
            Some(rest) => rest.split_once(";base64,")?.1.to_owned(),
            None => picture,
        };
        base64_text::is_base64(&base64).then(|| json!({ "b64_json": base64 }))?
    };
    if let Some(prompt) = prompt {
        image["revised_prompt"] = prompt.into();
    }
    Some(image)
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.shift_remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_bytes_or_addresses_wherever_they_stand() {
        let asked = AskedObject { created: 7, provider: "p".into(), ..AskedObject::default() };
        for (reply, place, expected) in [
            (json!({ "images": ["aW1n"] }), "/images", json!([{ "b64_json": "aW1n" }])),
            (json!("aW1n"), "/images", json!([{ "b64_json": "aW1n" }])),
            (json!([{ "base64": "aW1n", "seed": 1 }]), "", json!([{ "b64_json": "aW1n" }])),
            (json!({ "image": "aW1n" }), "/image", json!([{ "b64_json": "aW1n" }])),
            (json!({ "images": [{ "url": "https://x/y.png" }] }), "/images", json!([{ "url": "https://x/y.png" }])),
            (
                json!({ "images": [{ "url": "data:image/png;base64,aW1n" }] }),
                "/images",
                json!([{ "b64_json": "aW1n" }]),
            ),
            (
                json!({ "predictions": [{ "raiFilteredReason": "r" }, { "bytesBase64Encoded": "aW1n", "prompt": "better" }] }),
                "/predictions",
                json!([{ "b64_json": "aW1n", "revised_prompt": "better" }]),
            ),
        ] {
            let found = answer(reply.clone(), place, &asked).unwrap();
            assert_eq!(found, json!({ "created": 7, "data": expected, "provider": "p" }), "{reply}");
        }
    }

    #[test]
    fn what_holds_no_image_is_no_answer() {
        let many = json!({ "images": vec!["aW1n"; MAX_IMAGES + 1] });
        for reply in [
            json!({}),
            json!({ "images": [] }),
            json!({ "images": [{ "seed": 1 }, 7] }),
            json!({ "images": ["<html>"] }),
            json!({ "images": ["data:image/png,plain"] }),
            json!("not base64!"),
            many,
        ] {
            assert!(answer(reply.clone(), "/images", &AskedObject::default()).is_err(), "{reply}");
        }
    }
}
