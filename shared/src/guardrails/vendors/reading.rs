//! One answer of a vendor: whether it passes what was judged.

use super::super::remote::RemoteAnswer;
use super::super::subject::Subject;
use super::super::verdict::Verdict;
use super::wire::{Judge, Wire};
use serde_json::{Map, Value};

pub struct Reading<'r> {
    pub json: &'r Value,
    pub parameters: &'r Map<String, Value>,
    pub subject: &'r Subject<'r>,
    /// What the call was about: all texts, or one of them.
    pub texts: &'r [String],
    pub wire: &'r Wire,
}

/// What one answer means.
#[derive(Debug, Default, PartialEq)]
pub struct Judged {
    pub passes: bool,
    pub data: Value,
    /// In the order of the texts that were sent, as far as they are to be replaced.
    pub redacted: Vec<Option<String>>,
    /// The whole body, where a vendor gives or needs another.
    pub transformed: Option<Value>,
}

impl Reading<'_> {
    pub fn judged(&self) -> Result<Judged, Box<Verdict>> {
        self.check_error()?;
        let passes = match self.wire.judge {
            Judge::Code(judge) => return judge(self),
            Judge::PassesOn(path, words) => {
                let found = self.needed(path)?;
                found.iter().all(|value| value.as_str().is_some_and(|text| is_one_of(text, words)))
            }
            Judge::FailsOn(path, words) => {
                let found = self.needed(path)?;
                if !found.iter().all(|value| value.is_string()) {
                    return Err(RemoteAnswer::senseless("its verdict is no text").into());
                }
                !found.iter().any(|value| value.as_str().is_some_and(|text| is_one_of(text, words)))
            }
            Judge::PassesIfTrue(path) => {
                let found = self.needed(path)?;
                if !found.iter().all(|value| value.is_boolean()) {
                    return Err(RemoteAnswer::senseless("its verdict is neither true nor false").into());
                }
                found.iter().all(|value| **value == Value::Bool(true))
            }
            Judge::FailsIfSet(needed, paths) => {
                self.needed(needed)?;
                !paths.iter().any(|path| found(self.json, path).into_iter().any(is_set))
            }
        };
        Ok(Judged { passes, data: self.summary(), redacted: self.redacted(), transformed: None })
    }

    /// Where the vendor itself says that it could not look.
    pub fn check_error(&self) -> Result<(), Box<Verdict>> {
        let failure = match self.wire.error {
            "" => None,
            path => found(self.json, path).into_iter().find(|value| is_set(value)),
        };
        match failure {
            None => Ok(()),
            Some(_) => Err(Verdict::error("VendorError", "the service says that it could not look").into()),
        }
    }

    /// What of the answer is told.
    pub fn summary(&self) -> Value {
        match self.wire.data {
            "" => self.json.clone(),
            path => self.json.pointer(path).cloned().unwrap_or_default(),
        }
    }

    pub fn redacted(&self) -> Vec<Option<String>> {
        match self.wire.redacted {
            "" => Vec::new(),
            path => found(self.json, path).into_iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        }
    }

    /// What must be there, or the answer is none.
    pub fn needed(&self, path: &str) -> Result<Vec<&Value>, Box<Verdict>> {
        let found = found(self.json, path);
        match found.is_empty() || found.iter().all(|value| value.is_null()) {
            true => Err(RemoteAnswer::senseless("its verdict is missing").into()),
            false => Ok(found),
        }
    }
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether something was found.
pub fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Everything at a path; `*` is every item or field. Answers are bounded, and so is this.
pub fn found<'j>(json: &'j Value, path: &str) -> Vec<&'j Value> {
    let mut found = vec![json];
    for name in path.split('/').skip(1) {
        found = found
            .into_iter()
            .flat_map(|value| -> Vec<&'j Value> {
                match (name, value) {
                    ("*", Value::Array(items)) => items.iter().collect(),
                    ("*", Value::Object(fields)) => fields.values().collect(),
                    (_, Value::Array(items)) => {
                        name.parse::<usize>().ok().and_then(|index| items.get(index)).into_iter().collect()
                    }
                    (_, Value::Object(fields)) => fields.get(name).into_iter().collect(),
                    _ => Vec::new(),
                }
            })
            .collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_finds_every_item_and_field() {
        let json = json!({ "a": [{ "b": { "x": 1, "y": 2 } }, { "b": { "z": 3 } }], "n": null });
        for (path, expected) in [
            ("", 1),
            ("/a", 1),
            ("/a/0/b/x", 1),
            ("/a/*/b/*", 3),
            ("/a/*/b/z", 1),
            ("/a/7", 0),
            ("/n", 1),
            ("/n/x", 0),
            ("/none/*", 0),
        ] {
            assert_eq!(found(&json, path).len(), expected, "{path}");
        }
    }

    #[test]
    fn what_is_empty_was_not_found() {
        for (value, expected) in [
            (json!(null), false),
            (json!(false), false),
            (json!(0), false),
            (json!(0.0), false),
            (json!(""), false),
            (json!([]), false),
            (json!({}), false),
            (json!(true), true),
            (json!(2), true),
            (json!("x"), true),
            (json!([null]), true),
        ] {
            assert_eq!(is_set(&value), expected, "{value}");
        }
    }
}
