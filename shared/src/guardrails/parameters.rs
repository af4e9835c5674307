//! The parameters of a check, read. They were checked against the table, so what is missing is what has a default.

use serde_json::{Map, Value};

pub struct Parameters<'p>(Option<&'p Map<String, Value>>);

impl<'p> Parameters<'p> {
    pub fn new(value: &'p Value) -> Self {
        Self(value.as_object())
    }

    pub fn get(&self, name: &str) -> Option<&'p Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&'p str> {
        self.get(name)?.as_str()
    }

    pub fn text_or(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or(default).to_owned()
    }

    pub fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn flag_or(&self, name: &str, default: bool) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Whole numbers; `10.0` is one too.
    pub fn count(&self, name: &str, default: u64) -> u64 {
        self.get(name).and_then(Value::as_f64).map_or(default, |number| number.max(0.0) as u64)
    }

    /// A list of texts, or one text with commas.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.get(name).map(texts).unwrap_or_default()
    }
}

/// The texts of a list, or of one text with commas.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) => {
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}
