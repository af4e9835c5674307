//! Names and the values they stand for. The innermost section is asked first.

use super::Name;
use serde_json::Value;

/// The value of a name, and how many places were looked at.
pub fn lookup<'v>(name: &Name, around: &[&'v Value]) -> (Option<&'v Value>, usize) {
    let Some((first, rest)) = name.0.split_first() else { return (around.last().copied(), 1) };
    // The first part decides where: what is missing inside it is not looked for further out.
    let mut looked = rest.len();
    for value in around.iter().rev() {
        looked += 1;
        if let Some(found) = value.get(&**first) {
            return (rest.iter().try_fold(found, |value, part| value.get(&**part)), looked);
        }
    }
    (None, looked)
}

/// Whether a section is left out: null, false, an empty text, zero, an empty list.
pub fn is_nothing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::Bool(true) | Value::Object(_)) => false,
    }
}

/// As it is printed: texts as they are, lists and objects as JSON, nothing for null.
pub fn printed(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            // 3.0 is 3, as everybody prints it.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
