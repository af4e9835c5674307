//! JSON objects taken apart field by field. Strings are moved, not copied; what nobody took is left for `extra`; a wrong
//! type is an error that names the whole path, which is put together only then.
//!
//! The parser bounds nesting at 128; the memory of a value is proportional to the body it came from.

use super::error::CodecError;
use serde_json::{Map, Value};
use std::fmt;

/// More entries than any vendor takes, and few enough to bound what quadratic steps could cost.
pub(super) const MAX_TURNS: usize = 65_536;
pub(super) const MAX_PARTS: usize = 16_384;
pub(super) const MAX_TOOLS: usize = 4_096;
pub(super) const MAX_CHOICES: usize = 256;

/// Where in a body something stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldPath<'p> {
    Root,
    Field(&'p FieldPath<'p>, &'static str),
    Item(&'p FieldPath<'p>, usize),
}

impl<'p> FieldPath<'p> {
    pub fn field(&'p self, name: &'static str) -> Self {
        Self::Field(self, name)
    }

    pub fn item(&'p self, index: usize) -> Self {
        Self::Item(self, index)
    }

    pub fn problem(&self, problem: impl Into<String>) -> CodecError {
        CodecError::Field { field: self.to_string(), problem: problem.into() }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => write!(f, "body"),
            Self::Field(Self::Root, name) => write!(f, "{name}"),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The fields of one object.
#[derive(Debug)]
pub(super) struct Fields<'p> {
    map: Map<String, Value>,
    pub path: FieldPath<'p>,
}

impl<'p> Fields<'p> {
    pub fn parse(body: &[u8]) -> Result<Fields<'static>, CodecError> {
        let value = serde_json::from_slice(body).map_err(|error| CodecError::Malformed(error.to_string()))?;
        Fields::new(value, FieldPath::Root)
    }

    pub fn new(value: Value, path: FieldPath<'p>) -> Result<Self, CodecError> {
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            _ => Err(path.problem("must be an object")),
        }
    }

    pub fn from_map(map: Map<String, Value>, path: FieldPath<'p>) -> Self {
        Self { map, path }
    }

    /// `null` is the same as absent, as it is for every vendor.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Google takes its names in two spellings.
    pub fn either(&mut self, camel: &str, snake: &str) -> Option<Value> {
        self.take(camel).or_else(|| self.take(snake))
    }

    pub fn either_string(&mut self, camel: &str, snake: &str) -> Option<String> {
        match self.either(camel, snake) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    pub fn peek_str(&self, name: &str) -> Option<&str> {
        self.map.get(name).and_then(Value::as_str)
    }

    pub fn string(&mut self, name: &'static str) -> Result<Option<String>, CodecError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.path.field(name).problem("must be a string")),
        }
    }

    pub fn required_string(&mut self, name: &'static str) -> Result<String, CodecError> {
        self.string(name)?.ok_or_else(|| self.path.field(name).problem("is missing"))
    }

    pub fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, CodecError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(self.path.field(name).problem("must be true or false")),
        }
    }

    pub fn number(&mut self, name: &'static str) -> Result<Option<f64>, CodecError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.path.field(name).problem("must be a number")),
            },
        }
    }

    /// Not negative. `5.0` is an integer too: counts come as floats from some vendors.
    pub fn integer(&mut self, name: &'static str) -> Result<Option<u64>, CodecError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match as_integer(&value) {
                Some(number) => Ok(Some(number)),
                None => Err(self.path.field(name).problem("must be an integer that is not negative")),
            },
        }
    }

    /// A count that is 0 where it is absent or makes no sense: usage never fails an answer.
    pub fn count(&mut self, name: &str) -> u64 {
        self.take(name).and_then(|value| as_integer(&value)).unwrap_or(0)
    }

    pub fn list(&mut self, name: &'static str) -> Result<Option<Vec<Value>>, CodecError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.path.field(name).problem("must be a list")),
        }
    }

    /// A list with at most `most` entries; absent is empty.
    pub fn bounded_list(&mut self, name: &'static str, most: usize) -> Result<Vec<Value>, CodecError> {
        let list = self.list(name)?.unwrap_or_default();
        check_count(&list, most, &self.path.field(name))?;
        Ok(list)
    }

    pub fn object(&mut self, name: &'static str) -> Result<Option<Map<String, Value>>, CodecError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(_) => Err(self.path.field(name).problem("must be an object")),
        }
    }

    /// Fields of an object inside this one; empty where it is absent or no object. For answers, which are read leniently.
    pub fn inner(&mut self, name: &'static str) -> Fields<'static> {
        let map = match self.take(name) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        Fields { map, path: FieldPath::Root }
    }

    /// One string or a list of them.
    pub fn strings(&mut self, name: &'static str) -> Result<Vec<String>, CodecError> {
        let path = self.path.field(name);
        match self.map.shift_remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(list)) => {
                let text = |value| match value {
                    Value::String(text) => Ok(text),
                    _ => Err(path.problem("must hold strings only")),
                };
                list.into_iter().map(text).collect()
            }
            Some(_) => Err(path.problem("must be a string or a list of strings")),
        }
    }

    /// Puts back what was taken and is not understood after all.
    pub fn put(&mut self, name: &str, value: Value) {
        self.map.insert(name.to_owned(), value);
    }

    /// What nobody took.
    pub fn rest(self) -> Map<String, Value> {
        self.map
    }

    /// Puts all fields back together.
    pub fn into_value(self) -> Value {
        Value::Object(self.map)
    }
}

pub(super) fn check_count(list: &[Value], most: usize, path: &FieldPath<'_>) -> Result<(), CodecError> {
    if list.len() > most { Err(CodecError::TooMany { field: path.to_string(), most }) } else { Ok(()) }
}

fn as_integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (0.0..1e18).contains(&number).then_some(number.round() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_whole_path() {
        let mut body = Fields::parse(br#"{"messages":[{"content":[{"text":7}]}]}"#).unwrap();
        let messages = body.list("messages").unwrap().unwrap();
        let root = body.path.field("messages");
        let path = root.item(0);
        let mut message = Fields::new(messages.into_iter().next().unwrap(), path).unwrap();
        let content = message.list("content").unwrap().unwrap();
        let path = message.path.field("content");
        let mut part = Fields::new(content.into_iter().next().unwrap(), path.item(0)).unwrap();
        let error = part.string("text").unwrap_err();
        assert_eq!(error.to_string(), "`messages[0].content[0].text` must be a string");
    }

    #[test]
    fn counts_may_be_floats_and_are_never_negative() {
        let mut body = Fields::parse(br#"{"a":5.0,"b":-1,"c":"x","d":1e300}"#).unwrap();
        assert_eq!([body.count("a"), body.count("b"), body.count("c"), body.count("d")], [5, 0, 0, 0]);
    }
}
