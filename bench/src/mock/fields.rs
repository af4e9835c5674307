//! What a wire's requests may look like, as data, and whether one does. A translation that puts a field where the
//! vendor has none is refused here as the vendor refuses it, instead of being answered as if it were right.

use serde_json::{Map, Value};

pub enum Kind {
    Any,
    Text,
    Number,
    Whole,
    Flag,
    /// An object with any fields.
    Object,
    OneOf(&'static [&'static str]),
    List(&'static Kind),
    /// A string, or what follows.
    TextOr(&'static Kind),
    Shape(&'static Shape),
}

pub struct Shape {
    pub required: &'static [&'static str],
    pub fields: &'static [(&'static str, Kind)],
    /// Exactly one of the fields is there.
    pub is_union: bool,
}

impl Shape {
    pub const fn new(required: &'static [&'static str], fields: &'static [(&'static str, Kind)]) -> Self {
        Self { required, fields, is_union: false }
    }

    pub const fn union(fields: &'static [(&'static str, Kind)]) -> Self {
        Self { required: &[], fields, is_union: true }
    }

    /// None when the value has this shape, else what is wrong and where.
    pub fn flaw(&self, value: &Value) -> Option<String> {
        self.flaw_at(value, "")
    }

    fn flaw_at(&self, value: &Value, place: &str) -> Option<String> {
        let Some(object) = value.as_object() else { return Some(format!("{}: expected an object", named(place))) };
        if let Some(name) = self.required.iter().find(|name| object.get(**name).is_none_or(Value::is_null)) {
            return Some(format!("{}: required field is missing", below(place, name)));
        }
        if self.is_union && present(object) != 1 {
            return Some(format!("{}: expected exactly one member, found {}", named(place), present(object)));
        }
        object.iter().find_map(|(name, value)| {
            let place = below(place, name);
            match self.fields.iter().find(|(known, _)| known == name) {
                None => Some(format!("{place}: unknown field")),
                Some(_) if value.is_null() => None,
                Some((_, kind)) => kind.flaw(value, &place),
            }
        })
    }
}

impl Kind {
    /// Recursion ends with the tables, whatever the value holds.
    fn flaw(&self, value: &Value, place: &str) -> Option<String> {
        let expected = match self {
            Self::Any => return None,
            Self::Shape(shape) => return shape.flaw_at(value, place),
            Self::TextOr(_) if value.is_string() => return None,
            Self::TextOr(kind) => return kind.flaw(value, place),
            Self::List(kind) => match value {
                Value::Array(items) => {
                    let flaw = |(index, item)| kind.flaw(item, &format!("{place}[{index}]"));
                    return items.iter().enumerate().find_map(flaw);
                }
                _ => "a list".to_owned(),
            },
            Self::Text if value.is_string() => return None,
            Self::Text => "a string".to_owned(),
            Self::Number if value.is_number() => return None,
            Self::Number => "a number".to_owned(),
            Self::Whole if value.is_i64() || value.is_u64() => return None,
            Self::Whole => "a whole number".to_owned(),
            Self::Flag if value.is_boolean() => return None,
            Self::Flag => "true or false".to_owned(),
            Self::Object if value.is_object() => return None,
            Self::Object => "an object".to_owned(),
            Self::OneOf(words) if value.as_str().is_some_and(|word| words.contains(&word)) => return None,
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
        };
        Some(format!("{place}: expected {expected}"))
    }
}

fn present(object: &Map<String, Value>) -> usize {
    object.values().filter(|value| !value.is_null()).count()
}

fn named(place: &str) -> &str {
    if place.is_empty() { "body" } else { place }
}

fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    static BLOCK: Shape = Shape::union(&[("text", Kind::Text), ("image", Kind::Object)]);
    static TOP: Shape = Shape::new(
        &["messages"],
        &[
            ("messages", Kind::List(&Kind::Shape(&BLOCK))),
            ("mode", Kind::OneOf(&["a", "b"])),
            ("stop", Kind::TextOr(&Kind::List(&Kind::Text))),
            ("top", Kind::Whole),
        ],
    );

    #[test]
    fn a_flaw_is_named_with_its_place() {
        for (body, flaw) in [
            (json!({ "messages": [{ "text": "x" }], "mode": "a", "stop": "s", "top": 1 }), None),
            (json!({ "messages": [], "stop": ["s"], "mode": null }), None),
            (json!({}), Some("messages: required field is missing")),
            (json!([]), Some("body: expected an object")),
            (json!({ "messages": [], "model": 1 }), Some("model: unknown field")),
            (json!({ "messages": [{ "text": 1 }] }), Some("messages[0].text: expected a string")),
            (json!({ "messages": [{}] }), Some("messages[0]: expected exactly one member, found 0")),
            (json!({ "messages": [], "mode": "c" }), Some("mode: expected one of a, b")),
            (json!({ "messages": [], "stop": [1] }), Some("stop[0]: expected a string")),
            (json!({ "messages": [], "top": 1.5 }), Some("top: expected a whole number")),
        ] {
            assert_eq!(TOP.flaw(&body).as_deref(), flaw, "{body}");
        }
    }
}
