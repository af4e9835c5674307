//! Comparing a value with what is expected of it, in the four ways that metadata and claims know.

use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::texts;
use crate::guardrails::pattern::{Pattern, TooCostly};
use serde_json::Value;

/// One expectation: a text or a list of texts, and how they are compared.
pub enum Expected {
    /// The value is one of these.
    Exact(Vec<String>),
    /// The value has one of these: as an entry of a list, or inside a text.
    Contains(Vec<String>),
    ContainsAll(Vec<String>),
    Regex(Vec<Pattern>),
}

impl Expected {
    pub fn new(expected: &Value, match_type: &str, path: &str) -> Result<Self, Fault> {
        let listed = match expected {
            Value::Array(_) => texts(expected),
            other => vec![written(other)],
        };
        Ok(match match_type {
            "contains" => Self::Contains(listed),
            "containsAll" => Self::ContainsAll(listed),
            "regex" => Self::Regex(listed.iter().map(|text| Pattern::parse(text, path)).collect::<Result<_, _>>()?),
            _ => Self::Exact(listed),
        })
    }

    pub fn fits(&self, value: &Value) -> Result<bool, TooCostly> {
        let entries: Vec<String> = match value {
            Value::Array(items) => items.iter().map(written).collect(),
            other => vec![written(other)],
        };
        let has = |wanted: &String| match value {
            Value::Array(_) => entries.contains(wanted),
            _ => entries.iter().any(|entry| entry.contains(wanted.as_str())),
        };
        match self {
            Self::Exact(listed) => Ok(entries.iter().any(|entry| listed.contains(entry))),
            Self::Contains(listed) => Ok(listed.iter().any(has)),
            Self::ContainsAll(listed) => Ok(listed.iter().all(has)),
            Self::Regex(patterns) => {
                for entry in &entries {
                    for pattern in patterns {
                        if pattern.is_match(entry)? {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
        }
    }
}

/// A value as a text: `7` and `"7"` are the same in metadata.
pub fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
