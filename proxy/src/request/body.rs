//! The body of a JSON request, read once: where each of its fields stands. Looking a field up or changing one never
//! touches the bytes of the others, so what a caller wrote in a way of its own arrives that way.

pub mod edit;
pub mod model_reader;
mod splice;

use super::refusal::Refusal;
use crate::wire::json;
use crate::wire::json::Member;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::Value;
use splice::MemberSpan;
use std::borrow::Cow;

/// The top-level fields of a text, in the order they were written.
#[derive(Debug)]
pub struct Fields<'b> {
    text: &'b [u8],
    fields: Vec<Field<'b>>,
    /// What was compared with something, by name, so that each is read once. Empty for requests without conditions.
    compared: Mutex<Vec<(String, Option<Value>)>>,
}

#[derive(Debug)]
struct Field<'b> {
    name: Cow<'b, str>,
    written: Member<'b>,
}

/// Nobody looks inside a field that is written with more bytes.
const MAX_VALUE: usize = 64 << 10;

/// Fields whose names are compared with each other.
const MAX_COMPARED: usize = 64;

/// Fields that decide where a request goes and what it costs. Written twice, or in capitals that some readers pass over and
/// others do not, two readers could pick differently.
const DECIDING: &[&str] = &["model", "stream", "user", "max_tokens", "max_completion_tokens"];

impl<'b> Fields<'b> {
    pub fn parse_object(body: &'b [u8]) -> Result<Self, Refusal> {
        let fields = Self::parse(body).ok_or_else(|| why_not(body))?;
        for name in DECIDING {
            let mut written = fields.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
            let Some(first) = written.next() else { continue };
            if written.next().is_some() {
                return Err(Refusal::invalid_json(format!("`{name}` is there twice")));
            }
            if first.name != *name {
                return Err(Refusal::invalid_json(format!("`{name}` is written in other letters")));
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
        Some(Self { text, fields: fields.collect::<Option<_>>()?, compared: Mutex::default() })
    }

    /// A field as it was written. Of fields of the same name the last: that is the one most readers keep.
    pub fn get(&self, name: &str) -> Option<&'b str> {
        self.fields.iter().rev().find(|field| field.name == name).map(|field| field.written.value)
    }

    pub fn text(&self, name: &str) -> Option<Cow<'b, str>> {
        json::read_text(self.get(name)?)
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Looks inside a field. However often that is done, it is read once, and one that is too long as if it were not there:
    /// what a config asks for must not cost more than what a client sent.
    pub fn compare<T>(&self, name: &str, look: impl FnOnce(Option<&Value>) -> T) -> T {
        let mut compared = self.compared.lock();
        if let Some((_, value)) = compared.iter().find(|(known, _)| known == name) {
            return look(value.as_ref());
        }
        let value = self.value(name);
        let looked = look(value.as_ref());
        compared.push((name.to_owned(), value));
        looked
    }

    /// A field as a value of its own, unless it is too long: a tree takes many times the memory of its text.
    pub fn value(&self, name: &str) -> Option<Value> {
        let written = self.get(name).filter(|written| written.len() <= MAX_VALUE);
        serde_json::from_str(written?).ok()
    }

    /// The text of the last message where it is one text and nothing else, and where the whole body says everything once, as far
    /// as that can be told at a glance.
    pub fn last_plain_text(&self) -> Option<Cow<'b, str>> {
        if self.fields.len() > MAX_COMPARED {
            return None;
        }
        let mut text = None;
        for (at, Field { name, written }) in self.fields.iter().enumerate() {
            if self.fields[..at].iter().any(|before| before.name == *name) {
                return None;
            }
            match name.as_ref() {
                "messages" => text = Some(json::last_plain_text(written.value)?),
                _ if !json::says_all_once(written.value) => return None,
                _ => {}
            }
        }
        text
    }

    /// The one text of a chat of one message, where nothing else in the body is a text but the model's name.
    pub fn only_plain_text(&self) -> Option<Cow<'b, str>> {
        let is_silent = |field: &Field<'b>| {
            matches!(field.name.as_ref(), "messages" | "model") || !field.written.value.contains('"')
        };
        if !self.fields.iter().all(is_silent) || !json::is_one_message(self.get("messages")?) {
            return None;
        }
        self.last_plain_text()
    }

    /// Goes over all fields, also those of the same name.
    pub fn each(&self, mut look: impl FnMut(&str, &'b [u8])) {
        self.fields.iter().for_each(|field| look(&field.name, field.written.value.as_bytes()));
    }

    /// Each field with its name, its value and where it stands in the text.
    fn places(&self) -> impl Iterator<Item = (&str, &'b [u8], MemberSpan)> {
        self.fields.iter().map(|field| {
            let value = field.written.value.as_bytes();
            (field.name.as_ref(), value, MemberSpan::locate(self.text, field.written.key.as_bytes(), value))
        })
    }
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self { text: b"{}", fields: Vec::new(), compared: Mutex::default() }
    }
}

/// In the words of a reader that keeps count of lines.
fn why_not(body: &[u8]) -> Refusal {
    match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => Refusal::invalid_json(error),
        Ok(_) => {
            let most = json::MAX_MEMBERS;
            Refusal::invalid_json(format!(
                "it must be an object of at most {most} fields, in UTF-8, with readable names"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_stands_between_them() {
        let body =
            br#" { "model" : "gpt\u002d4" , "x":{"model":"inner"}, "stream":true, "n":1e3, "max_tokens":null } "#;
        let fields = Fields::parse_object(body).unwrap();
        assert_eq!(fields.text("model").unwrap(), "gpt-4");
        assert!(fields.is_true("stream") && !fields.is_true("n"));
        assert_eq!(fields.get("n").unwrap(), "1e3");
        assert_eq!(fields.compare("x", |value| value.unwrap()["model"].clone()), "inner");
        assert!(fields.get("absent").is_none() && fields.text("stream").is_none());
        let twice = Fields::parse_object(br#"{"other":1,"oth\u0065r":2}"#).unwrap();
        assert_eq!(twice.get("other").unwrap(), "2");
    }

    #[test]
    fn a_field_is_read_once_however_often_it_is_compared_and_not_at_all_when_it_is_long() {
        let fits = format!("{{\"a\":\"{}\",\"b\":1}}", "x".repeat(MAX_VALUE - 2));
        let fields = Fields::parse_object(fits.as_bytes()).unwrap();
        let is_there = |name| fields.compare(name, |value| value.is_some());
        assert!(is_there("a") && is_there("b") && !is_there("c"));
        let text = || fields.compare("a", |value| value.and_then(Value::as_str).map(str::as_ptr));
        assert_eq!(text(), text());
        assert_eq!(fields.compared.lock().len(), 3);
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_VALUE - 1));
        assert!(Fields::parse_object(long.as_bytes()).unwrap().compare("a", |value| value.is_none()));
    }

    #[test]
    fn the_text_of_the_last_message_is_told_where_nobody_could_read_another() {
        for (body, expected) in [
            (r#"{"model":"m","messages":[{"role":"user","content":"a\n\u00e9"}],"n":1}"#, Some("a\né")),
            (r#"{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}"#, None),
            (r#"{"messages":[{"role":"user","content":"a"}],"x":{"y":1,"y":2}}"#, None),
            (r#"{"messages":[{"role":"user","content":"a"}],"n":1e400}"#, None),
            (r#"{"messages":[{"role":"user","content":["a"]}]}"#, None),
            (r#"{"messages":"a"}"#, None),
            (r#"{"prompt":"a"}"#, None),
        ] {
            let fields = Fields::parse_object(body.as_bytes()).unwrap();
            assert_eq!(fields.last_plain_text().as_deref(), expected, "{body}");
        }
        let many: String = (0..MAX_COMPARED).map(|number| format!("\"{number}\":0,")).collect();
        let body = format!(r#"{{{many}"messages":[{{"role":"user","content":"a"}}]}}"#);
        assert!(Fields::parse_object(body.as_bytes()).unwrap().last_plain_text().is_none());
    }

    #[test]
    fn an_object_of_too_many_fields_is_refused_and_told_why() {
        let object = |count: usize| {
            let fields: Vec<String> = (0..count).map(|number| format!("\"{number}\":0")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert!(Fields::parse_object(object(json::MAX_MEMBERS).as_bytes()).is_ok());
        let refusal = Fields::parse_object(object(json::MAX_MEMBERS + 1).as_bytes()).unwrap_err();
        assert!(refusal.message.contains("10000 fields"), "{}", refusal.message);
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
            r#"{"model":"a","Model":"b"}"#,
            r#"{"m\u004Fdel":"a"}"#,
            r#"{"MAX_TOKENS":1}"#,
            "{} {}",
            r#"{"stream":"yes"}"#,
            r#"{"model":7}"#,
            &deep,
        ] {
            assert!(Fields::parse_object(body.as_bytes()).is_err(), "{}", &body[..body.len().min(40)]);
        }
        assert!(Fields::parse_object(b"{\"a\":\"\xff\"}").is_err());
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(Fields::parse_object(nested.as_bytes()).is_ok());
        assert!(Fields::parse_object(br#"{"\ud800":1}"#).is_err());
        for body in [r#"{"other":1,"other":2}"#, "{}", r#"{"stream":null,"model":null}"#] {
            assert!(Fields::parse_object(body.as_bytes()).is_ok(), "{body}");
        }
    }
}
