//! Prompts and inputs that are written as tokens: a list of numbers, or a list of such lists. They are texts that only a
//! tokenizer can read.

use super::super::subject::Shape;
use serde_json::Value;

/// Where tokens stand.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenPlaces {
    /// JSON pointers, each to a list of numbers.
    pub pointers: Vec<String>,
}

/// `None` where a body has no tokens, as nearly all.
pub fn token_places(body: &Value, shape: Shape) -> Option<TokenPlaces> {
    let names: &[&str] = match shape {
        Shape::Completions => &["prompt"],
        Shape::Embeddings => &["input"],
        Shape::Other => &["prompt", "input"],
        _ => &[],
    };
    let mut pointers = Vec::new();
    for name in names {
        let Some(list) = body.get(name).and_then(Value::as_array) else { continue };
        if list.iter().any(Value::is_number) {
            pointers.push(format!("/{name}"));
        }
        for (index, item) in list.iter().enumerate() {
            // Lists in lists of lists too: what they are is not known, and so they are not read.
            if item.as_array().is_some_and(|inner| inner.iter().any(|one| one.is_number() || one.is_array())) {
                pointers.push(format!("/{name}/{index}"));
            }
        }
    }
    (!pointers.is_empty()).then_some(TokenPlaces { pointers })
}

impl TokenPlaces {
    /// The body with texts in place of its tokens; none where `decode` cannot read them, or where something else stands between.
    pub fn read(&self, body: &Value, decode: impl Fn(&[u32]) -> Option<String>) -> Option<Value> {
        let mut read = body.clone();
        for pointer in &self.pointers {
            let list = body.pointer(pointer)?.as_array()?;
            let token = |item: &Value| item.as_u64().and_then(|token| u32::try_from(token).ok());
            let tokens: Vec<u32> = list.iter().map(token).collect::<Option<_>>()?;
            *read.pointer_mut(pointer)? = Value::String(decode(&tokens)?);
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_are_read_where_they_stand_and_nothing_between_them_goes_unread() {
        let decode = |tokens: &[u32]| tokens.iter().map(|token| char::from_u32(*token)).collect::<Option<String>>();
        for (shape, body, expected) in [
            (Shape::Completions, json!({ "prompt": [104, 105] }), Some(json!({ "prompt": "hi" }))),
            (Shape::Completions, json!({ "prompt": [[104], [105]] }), Some(json!({ "prompt": ["h", "i"] }))),
            (Shape::Embeddings, json!({ "input": ["x", [105]] }), Some(json!({ "input": ["x", "i"] }))),
            (Shape::Completions, json!({ "prompt": [104, "x"] }), None),
            (Shape::Completions, json!({ "prompt": [104.5] }), None),
            (Shape::Completions, json!({ "prompt": [-1] }), None),
            (Shape::Completions, json!({ "prompt": [0xd800] }), None),
            (Shape::Completions, json!({ "prompt": [[1], [[2]]] }), None),
        ] {
            let places = token_places(&body, shape).unwrap_or_else(|| panic!("{body}"));
            assert_eq!(places.read(&body, decode), expected, "{body}");
        }
        for (shape, body) in [
            (Shape::Completions, json!({ "prompt": "x" })),
            (Shape::Completions, json!({ "prompt": ["x", "y"] })),
            (Shape::Completions, json!({ "prompt": [] })),
            (Shape::Chat, json!({ "prompt": [1] })),
        ] {
            assert_eq!(token_places(&body, shape), None, "{body}");
        }
    }
}
