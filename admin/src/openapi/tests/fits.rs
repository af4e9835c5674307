//! Whether a value fits a schema of the document. It knows the keywords that `schema.rs` writes and refuses to guess
//! about any other, so that nothing passes because nobody looked. For tests, here and over HTTP.

use regex::Regex;
use serde_json::Value;

/// What is wrong with the value, each fault with its path; nothing when it fits.
pub fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(document, schema, value, "", &mut found);
    found
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let holds = match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().and_then(|rule| rule.strip_prefix('#')).expect("within the document");
                let schema = document.pointer(pointer).unwrap_or_else(|| panic!("{rule} points to nothing"));
                check(document, schema, value, at, found);
                true
            }
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is(kind, value)),
                kind => is(kind, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().is_some_and(|values| values.contains(value)),
            "anyOf" => rule.as_array().is_some_and(|all| all.iter().any(|one| faults(document, one, value).is_empty())),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= number(rule) as u64),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= number(rule) as u64),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= number(rule) as u64),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= number(rule) as u64),
            "minimum" => value.as_f64().is_none_or(|value| value >= number(rule)),
            "maximum" => value.as_f64().is_none_or(|value| value <= number(rule)),
            "pattern" => value.as_str().is_none_or(|text| pattern(rule).is_match(text)),
            "format" => value.as_str().is_none_or(|text| has_format(rule, text)),
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, rule, item, &format!("{at}[{n}]"), found);
                }
                true
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = rule.get(name) {
                        check(document, schema, field, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = |name: &String| schema["properties"].get(name).is_some();
                let others = value.as_object().into_iter().flatten().filter(|(name, _)| !known(name));
                for (name, field) in others {
                    match rule {
                        Value::Bool(true) => {}
                        Value::Bool(false) => found.push(format!("{at}.{name} is not described")),
                        schema => check(document, schema, field, &format!("{at}.{name}"), found),
                    }
                }
                true
            }
            "required" => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing = names.filter(|name| value.is_object() && value.get(name).is_none());
                found.extend(missing.map(|name| format!("{at}.{name} is missing")));
                true
            }
            "title" | "description" | "default" | "examples" | "x-prefixes" => true,
            other => panic!("{other} is not a keyword that is checked"),
        };
        if !holds {
            found.push(format!("{at} breaks {keyword} {rule}"));
        }
    }
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        _ => panic!("{kind} is not a type"),
    }
}

fn has_format(format: &Value, text: &str) -> bool {
    match format.as_str() {
        Some("uuid") => text.len() == 36 && text.parse::<uuid::Uuid>().is_ok(),
        Some("date-time") => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
        Some("email") => text.contains('@'),
        _ => panic!("{format} is not a format that is checked"),
    }
}

fn number(rule: &Value) -> f64 {
    rule.as_f64().expect("a number")
}

fn pattern(rule: &Value) -> Regex {
    Regex::new(rule.as_str().expect("a pattern")).expect("a valid pattern")
}
