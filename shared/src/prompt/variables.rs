//! Variables that a version declares: their types, and which a call must bring. Opt-in: without declarations a variable
//! that is missing is an empty text, as everywhere in Mustache. Checked before anything is filled in, so that a mistyped
//! call is refused by name and no model is asked with half a prompt.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Declarations of one version, and bytes of a name.
pub const MAX_DECLARED: usize = 200;
pub const MAX_NAME: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredVariable {
    /// As the template writes it, dots included.
    pub name: String,
    #[serde(rename = "type", default)]
    pub kind: VariableType,
    #[serde(default)]
    pub required: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableType {
    #[default]
    Any,
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

impl VariableType {
    pub const NAMES: &'static [&'static str] = &["any", "string", "number", "integer", "boolean", "array", "object"];

    fn admits(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            // 3.0 is a whole number, however it is written.
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// With its article, for messages.
impl fmt::Display for VariableType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "anything",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Integer => "a whole number",
            Self::Boolean => "true or false",
            Self::Array => "a list",
            Self::Object => "an object",
        })
    }
}

/// What is wrong with one variable of a call. Its value is not repeated: it may be anybody's data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("variables.{name}: {problem}")]
pub struct VariableFault {
    pub name: String,
    pub problem: VariableProblem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VariableProblem {
    #[error("is required by this prompt")]
    Missing,
    #[error("must be {0}")]
    Mistyped(VariableType),
}

/// `values` are those of the call over the version's default values. The first fault, in the order of declaration; null
/// is no value.
pub fn check(declared: &[DeclaredVariable], values: &Map<String, Value>) -> Result<(), VariableFault> {
    for DeclaredVariable { name, kind, required } in declared {
        let problem = match find(name, values).filter(|value| !value.is_null()) {
            None if *required => VariableProblem::Missing,
            Some(value) if !kind.admits(value) => VariableProblem::Mistyped(*kind),
            None | Some(_) => continue,
        };
        return Err(VariableFault { name: name.clone(), problem });
    }
    Ok(())
}

/// As a template looks it up.
fn find<'v>(name: &str, values: &'v Map<String, Value>) -> Option<&'v Value> {
    let mut parts = name.split('.');
    let first = values.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(name: &str, kind: VariableType, required: bool) -> DeclaredVariable {
        DeclaredVariable { name: name.into(), kind, required }
    }

    #[test]
    fn what_is_missing_or_mistyped_is_named() {
        use VariableType::{Any, Array, Boolean, Integer, Number, Object, String};
        let values = json!({
            "text": "", "n": 2.5, "whole": 3, "float": 3.0, "yes": false, "list": [], "user": { "name": "Ada", "age": null },
            "none": null,
        });
        let values = values.as_object().unwrap();
        let fault = |name: &str, problem| Err(VariableFault { name: name.into(), problem });
        let mistyped = |name: &str, expected| fault(name, VariableProblem::Mistyped(expected));
        let missing = |name: &str| fault(name, VariableProblem::Missing);
        for (variable, expected) in [
            (declared("text", String, true), Ok(())),
            (declared("text", Number, false), mistyped("text", Number)),
            (declared("n", Number, true), Ok(())),
            (declared("n", Integer, true), mistyped("n", Integer)),
            (declared("whole", Integer, true), Ok(())),
            (declared("float", Integer, true), Ok(())),
            (declared("whole", String, true), mistyped("whole", String)),
            (declared("yes", Boolean, true), Ok(())),
            (declared("list", Array, true), Ok(())),
            (declared("list", Object, true), mistyped("list", Object)),
            (declared("user", Object, true), Ok(())),
            (declared("user.name", String, true), Ok(())),
            (declared("user.age", Any, true), missing("user.age")),
            (declared("user.age", Number, false), Ok(())),
            (declared("user.name.first", Any, true), missing("user.name.first")),
            (declared("none", Any, true), missing("none")),
            (declared("gone", Any, true), missing("gone")),
            (declared("gone", Number, false), Ok(())),
        ] {
            assert_eq!(check(std::slice::from_ref(&variable), values), expected, "{variable:?}");
        }
        assert_eq!(missing("a").unwrap_err().to_string(), "variables.a: is required by this prompt");
        assert_eq!(mistyped("a", Integer).unwrap_err().to_string(), "variables.a: must be a whole number");
    }

    #[test]
    fn a_declaration_needs_only_a_name() {
        let read: DeclaredVariable = serde_json::from_value(json!({ "name": "a" })).unwrap();
        assert_eq!(read, declared("a", VariableType::Any, false));
        assert_eq!(json!(read), json!({ "name": "a", "type": "any", "required": false }));
        for name in VariableType::NAMES {
            assert_eq!(json!(serde_json::from_value::<VariableType>(json!(name)).unwrap()), json!(name));
        }
        assert!(serde_json::from_value::<DeclaredVariable>(json!({ "name": "a", "kind": "any" })).is_err());
    }
}
