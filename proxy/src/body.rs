//! The body of a JSON request, read once: where each of its fields stands. Looking a field up or changing one never
//! touches the bytes of the others, so what a caller wrote in a way of its own arrives that way.

pub mod edit;
mod splice;

use crate::refusal::Refusal;
use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use splice::Place;
use std::borrow::Cow;
use std::fmt;

/// The top-level fields of a text, in the order they were written.
#[derive(Debug)]
pub struct Fields<'b> {
    text: &'b [u8],
    fields: Vec<Field<'b>>,
}

#[derive(Debug)]
struct Field<'b> {
    name: Cow<'b, str>,
    /// The name as it was written.
    key: &'b RawValue,
    value: &'b RawValue,
}

/// Fields that decide where a request goes and what it costs. Written twice, two readers could pick differently.
const DECIDING: &[&str] = &["model", "stream", "user", "max_tokens", "max_completion_tokens"];

impl<'b> Fields<'b> {
    pub fn read(body: &'b [u8]) -> Result<Self, Refusal> {
        let fields = Self::parse(body).map_err(Refusal::invalid_json)?;
        for name in DECIDING {
            if fields.fields.iter().filter(|field| field.name == *name).count() > 1 {
                return Err(Refusal::invalid_json(format!("`{name}` is there twice")));
            }
        }
        let is = |name: &str, allowed: fn(&str) -> bool| fields.get(name).is_none_or(|value| allowed(value.get()));
        if !is("stream", |value| matches!(value, "true" | "false" | "null")) {
            return Err(Refusal::invalid_json("`stream` must be true or false"));
        }
        if !is("model", |value| value.starts_with('"') || value == "null") {
            return Err(Refusal::invalid_json("`model` must be a string"));
        }
        Ok(fields)
    }

    /// Any JSON object.
    fn parse(text: &'b [u8]) -> Result<Self, serde_json::Error> {
        let Gathered(fields) = serde_json::from_slice(text)?;
        Ok(Self { text, fields })
    }

    /// Of fields of the same name the last: that is the one most readers keep.
    pub fn get(&self, name: &str) -> Option<&'b RawValue> {
        self.fields.iter().rev().find(|field| field.name == name).map(|field| field.value)
    }

    pub fn text(&self, name: &str) -> Option<Cow<'b, str>> {
        #[derive(Deserialize)]
        struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
        serde_json::from_str::<Text<'b>>(self.get(name)?.get()).ok().map(|text| text.0)
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// A field as a value of its own, for those who look inside.
    pub fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Each field with its name, its value and where it stands in the text.
    fn places(&self) -> impl Iterator<Item = (&str, &'b [u8], Place)> {
        self.fields.iter().map(|field| {
            let value = field.value.get().as_bytes();
            (field.name.as_ref(), value, Place::of(self.text, field.key.get().as_bytes(), value))
        })
    }
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self { text: b"{}", fields: Vec::new() }
    }
}

struct Gathered<'b>(Vec<Field<'b>>);

impl<'de> Deserialize<'de> for Gathered<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Gather;

        impl<'de> Visitor<'de> for Gather {
            type Value = Gathered<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(key) = map.next_key::<&'de RawValue>()? {
                    let name = name_of(key).map_err(A::Error::custom)?;
                    fields.push(Field { name, key, value: map.next_value()? });
                }
                Ok(Gathered(fields))
            }
        }

        deserializer.deserialize_map(Gather)
    }
}

/// What a key says: the bytes between its quotes unless some are escaped.
fn name_of(key: &RawValue) -> Result<Cow<'_, str>, serde_json::Error> {
    match key.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_str(key.get()).map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_stands_between_them() {
        let body =
            br#" { "model" : "gpt\u002d4" , "x":{"model":"inner"}, "stream":true, "n":1e3, "max_tokens":null } "#;
        let fields = Fields::read(body).unwrap();
        assert_eq!(fields.text("model").unwrap(), "gpt-4");
        assert!(fields.is_true("stream") && !fields.is_true("n"));
        assert_eq!(fields.get("n").unwrap().get(), "1e3");
        assert_eq!(fields.value("x").unwrap()["model"], "inner");
        assert!(fields.get("absent").is_none() && fields.text("stream").is_none());
        let twice = Fields::read(br#"{"other":1,"oth\u0065r":2}"#).unwrap();
        assert_eq!(twice.get("other").unwrap().get(), "2");
    }

    #[test]
    fn what_is_not_one_object_is_refused() {
        let deep = format!("{{\"a\":{}}}", "[".repeat(100_000));
        for body in [
            "",
            "[]",
            "null",
            "{",
            r#"{"a":1}x"#,
            r#"{"a":tru}"#,
            r#"{"model":"a","model":"b"}"#,
            "{} {}",
            r#"{"stream":"yes"}"#,
            r#"{"model":7}"#,
            &deep,
        ] {
            assert!(Fields::read(body.as_bytes()).is_err(), "{}", &body[..body.len().min(40)]);
        }
        assert!(Fields::read(b"{\"a\":\"\xff\"}").is_err());
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(Fields::read(nested.as_bytes()).is_ok());
        assert!(Fields::read(br#"{"\ud800":1}"#).is_err());
        for body in [r#"{"other":1,"other":2}"#, "{}", r#"{"stream":null,"model":null}"#] {
            assert!(Fields::read(body.as_bytes()).is_ok(), "{body}");
        }
    }
}
