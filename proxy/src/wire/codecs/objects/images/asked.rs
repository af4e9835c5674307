//! A client's request for images in no vendor's words. A codec takes what its vendor knows; what nobody took is dropped.

use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::Dropped;
use serde_json::{Map, Value};

/// More than any vendor makes at once.
pub(super) const MAX_IMAGES: usize = 128;
/// Longer than the side of any image that is made.
const MAX_SIDE: u32 = 16_384;

pub(super) struct ImageRequest {
    pub prompt: String,
    count: Option<u64>,
    size: Option<ImageSize>,
    /// The client wants the bytes, not an address.
    pub wants_bytes: bool,
    rest: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageSize {
    pub width: u32,
    pub height: u32,
}

impl ImageRequest {
    pub fn read(mut request: Map<String, Value>) -> Result<Self, CodecError> {
        let Some(Value::String(prompt)) = request.shift_remove("prompt") else {
            return Err(CodecError::field("prompt", "must be a text"));
        };
        let count = request.shift_remove("n").filter(|value| !value.is_null()).map(count).transpose()?;
        let size = match request.shift_remove("size") {
            None | Some(Value::Null) => None,
            Some(size) => ImageSize::parse(&size)?,
        };
        request.shift_remove("model");
        let format = request.shift_remove("response_format");
        let wants_bytes = format.as_ref().and_then(Value::as_str) == Some("b64_json");
        request.retain(|_, value| !value.is_null());
        Ok(Self { prompt, count, size, wants_bytes, rest: request })
    }

    /// What the client says under this name.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.rest.shift_remove(name)
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.rest.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            Some(other) => {
                self.rest.insert(name.to_owned(), other);
                None
            }
            None => None,
        }
    }

    pub fn take_count(&mut self) -> Option<u64> {
        self.count.take()
    }

    pub fn take_size(&mut self) -> Option<ImageSize> {
        self.size.take()
    }

    /// A ratio that was asked for as one, else the one of `known` that is nearest to the size.
    pub fn ratio(&mut self, known: &[(u32, u32)]) -> Option<String> {
        self.text("aspect_ratio").or_else(|| self.size.take().map(|size| size.ratio(known)))
    }

    /// What nobody took. One image is what everybody makes.
    pub fn dropped(self) -> Dropped {
        let mut dropped = Dropped::default();
        dropped.note_if(self.count.is_some_and(|count| count > 1), "n");
        dropped.note_if(self.size.is_some(), "size");
        self.rest.into_iter().for_each(|(name, _)| dropped.note(name));
        dropped
    }
}

fn count(value: Value) -> Result<u64, CodecError> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0);
    match number {
        Some(number) if (1.0..=MAX_IMAGES as f64).contains(&number) => Ok(number as u64),
        _ => Err(CodecError::field("n", format!("must be a number from 1 to {MAX_IMAGES}"))),
    }
}

impl ImageSize {
    /// `1024x768`; `auto` is no size.
    fn parse(size: &Value) -> Result<Option<Self>, CodecError> {
        let wrong = || CodecError::field("size", "must be a width and a height, as in `1024x1024`");
        let text = size.as_str().ok_or_else(wrong)?;
        if text == "auto" {
            return Ok(None);
        }
        let (width, height) = text.split_once('x').ok_or_else(wrong)?;
        let side = |text: &str| text.parse::<u32>().ok().filter(|side| (1..=MAX_SIDE).contains(side)).ok_or_else(wrong);
        Ok(Some(Self { width: side(width)?, height: side(height)? }))
    }

    fn ratio(self, known: &[(u32, u32)]) -> String {
        let shape = |width: u32, height: u32| (f64::from(width) / f64::from(height)).ln();
        let own = shape(self.width, self.height);
        let far = |ratio: &&(u32, u32)| (shape(ratio.0, ratio.1) - own).abs();
        let nearest = known.iter().min_by(|one, other| far(one).total_cmp(&far(other)));
        let (width, height) = nearest.copied().unwrap_or((1, 1));
        format!("{width}:{height}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(request: Value) -> Result<ImageRequest, CodecError> {
        ImageRequest::read(request.as_object().cloned().unwrap())
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (request, expected) in [
            (json!({}), "`prompt` must be a text"),
            (json!({ "prompt": ["a"] }), "`prompt` must be a text"),
            (json!({ "prompt": "a", "n": 0 }), "`n` must be a number from 1 to 128"),
            (json!({ "prompt": "a", "n": "2" }), "`n` must be a number from 1 to 128"),
            (json!({ "prompt": "a", "n": 1.5 }), "`n` must be a number from 1 to 128"),
            (json!({ "prompt": "a", "size": "big" }), "`size` must be a width and a height, as in `1024x1024`"),
            (json!({ "prompt": "a", "size": "0x9" }), "`size` must be a width and a height, as in `1024x1024`"),
            (json!({ "prompt": "a", "size": "99999x9" }), "`size` must be a width and a height, as in `1024x1024`"),
            (json!({ "prompt": "a", "size": 1024 }), "`size` must be a width and a height, as in `1024x1024`"),
        ] {
            let found = read(request.clone()).err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{request}");
        }
        assert_eq!(read(json!({ "prompt": "a", "size": "auto" })).unwrap().take_size(), None);
    }

    #[test]
    fn a_size_has_the_ratio_that_is_nearest() {
        const KNOWN: &[(u32, u32)] = &[(1, 1), (16, 9), (9, 16), (3, 2)];
        for (size, ratio) in
            [("1024x1024", "1:1"), ("1792x1024", "16:9"), ("1024x1792", "9:16"), ("1536x1024", "3:2"), ("7x8", "1:1")]
        {
            let mut asked = read(json!({ "prompt": "a", "size": size })).unwrap();
            assert_eq!(asked.ratio(KNOWN).as_deref(), Some(ratio), "{size}");
        }
        let mut asked = read(json!({ "prompt": "a", "size": "1x1", "aspect_ratio": "21:9" })).unwrap();
        assert_eq!(asked.ratio(KNOWN).as_deref(), Some("21:9"));
        assert_eq!(asked.dropped().names().collect::<Vec<_>>(), ["size"]);
    }
}
