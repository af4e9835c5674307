//! The body of a JSON request, read once: where each of its fields stands. Looking a field up or changing one never
//! touches the bytes of the others, so what a caller wrote in a way of its own arrives that way.

pub mod edit;
mod splice;

use crate::json::{self, Member};
use crate::refusal::Refusal;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use splice::Place;
use std::borrow::Cow;

/// The top-level fields of a text, in the order they were written.
#[derive(Debug)]
pub struct Fields<'b> {
    text: &'b [u8],
    fields: Vec<Field<'b>>,
}

#[derive(Debug)]
struct Field<'b> {
    name: Cow<'b, str>,
    written: Member<'b>,
}

/// Fields that decide where a request goes and what it costs. Written twice, two readers could pick differently.
const DECIDING: &[&str] = &["model", "stream", "user", "max_tokens", "max_completion_tokens"];

impl<'b> Fields<'b> {
    pub fn read(body: &'b [u8]) -> Result<Self, Refusal> {
        let fields = Self::parse(body).ok_or_else(|| why_not(body))?;
        for name in DECIDING {
            if fields.fields.iter().filter(|field| field.name == *name).count() > 1 {
                return Err(Refusal::invalid_json(format!("`{name}` is there twice")));
            }
        }
        let is = |name: &str, allowed: fn(&str) -> bool| fields.get(name).is_none_or(allowed);
        if !is("stream", |value| matches!(value, "true" | "false" | "null")) {
            return Err(Refusal::invalid_json("`stream` must be true or false"));
        }
        if !is("model", |value| value.starts_with('"') || value == "null") {
            return Err(Refusal::invalid_json("`model` must be a string"));
        }
        Ok(fields)
    }

    /// Any JSON object.
    fn parse(text: &'b [u8]) -> Option<Self> {
        let members = json::members(text).ok()?;
        let fields = members.into_iter().map(|written| Some(Field { name: written.name()?, written }));
        Some(Self { text, fields: fields.collect::<Option<_>>()? })
    }

    /// A field as it was written. Of fields of the same name the last: that is the one most readers keep.
    pub fn get(&self, name: &str) -> Option<&'b str> {
        self.fields.iter().rev().find(|field| field.name == name).map(|field| field.written.value)
    }

    pub fn text(&self, name: &str) -> Option<Cow<'b, str>> {
        #[derive(Deserialize)]
        struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
        let written = self.get(name)?;
        let plain = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match plain.filter(|plain| memchr::memchr(b'\\', plain.as_bytes()).is_none()) {
            // Checked when it was read.
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => serde_json::from_str::<Text<'b>>(written).ok().map(|text| text.0),
        }
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// A field as a value of its own, for those who look inside.
    pub fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Goes over all fields, also those of the same name.
    pub fn each(&self, mut look: impl FnMut(&str, &'b [u8])) {
        self.fields.iter().for_each(|field| look(&field.name, field.written.value.as_bytes()));
    }

    /// Each field with its name, its value and where it stands in the text.
    fn places(&self) -> impl Iterator<Item = (&str, &'b [u8], Place)> {
        self.fields.iter().map(|field| {
            let value = field.written.value.as_bytes();
            (field.name.as_ref(), value, Place::of(self.text, field.written.key.as_bytes(), value))
        })
    }
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self { text: b"{}", fields: Vec::new() }
    }
}

/// In the words of a reader that keeps count of lines.
fn why_not(body: &[u8]) -> Refusal {
    match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => Refusal::invalid_json(error),
        Ok(_) => Refusal::invalid_json("it must be an object, in UTF-8, with readable names"),
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
        assert_eq!(fields.get("n").unwrap(), "1e3");
        assert_eq!(fields.value("x").unwrap()["model"], "inner");
        assert!(fields.get("absent").is_none() && fields.text("stream").is_none());
        let twice = Fields::read(br#"{"other":1,"oth\u0065r":2}"#).unwrap();
        assert_eq!(twice.get("other").unwrap(), "2");
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
