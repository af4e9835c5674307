//! JSON schemas for vendors that read only a part of the language.

use serde_json::{Map, Value};

/// Anthropic wants every object of a structured answer closed (contract 7.3).
pub(super) fn closed_objects(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut closed: Map<String, Value> =
                map.iter().map(|(name, value)| (name.clone(), closed_objects(value))).collect();
            let is_object = map.get("type").and_then(Value::as_str) == Some("object");
            if is_object && !closed.contains_key("additionalProperties") {
                closed.insert("additionalProperties".into(), Value::Bool(false));
            }
            Value::Object(closed)
        }
        Value::Array(list) => Value::Array(list.iter().map(closed_objects).collect()),
        other => other.clone(),
    }
}

/// Google's own schemas write types in capitals and say `nullable`; everybody else writes JSON schema.
pub(super) fn from_google(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let is_nullable = map.get("nullable").and_then(Value::as_bool) == Some(true);
            let mut plain = Map::new();
            for (name, value) in map {
                let value = match (name.as_str(), value) {
                    ("nullable", Value::Bool(_)) => continue,
                    ("type", Value::String(kind)) if is_nullable => {
                        Value::Array(vec![kind.to_ascii_lowercase().into(), "null".into()])
                    }
                    ("type", Value::String(kind)) => kind.to_ascii_lowercase().into(),
                    // Values that callers chose, not schemas.
                    ("enum" | "default" | "example", value) => value,
                    (_, value) => from_google(value),
                };
                plain.insert(name, value);
            }
            Value::Object(plain)
        }
        Value::Array(list) => Value::Array(list.into_iter().map(from_google).collect()),
        other => other,
    }
}

/// The schema of a function without arguments, where a format demands one.
pub(super) fn empty_object() -> Value {
    let mut map = Map::new();
    map.insert("type".into(), "object".into());
    map.insert("properties".into(), Value::Object(Map::new()));
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn googles_capitals_become_json_schema() {
        let schema = json!({ "type": "OBJECT", "properties": { "a": { "type": "STRING", "nullable": true } } });
        let plain = json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } } });
        assert_eq!(from_google(schema), plain);
    }

    #[test]
    fn objects_are_closed_at_every_depth_and_a_word_about_it_is_kept() {
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "array", "items": { "type": "object", "properties": {} } },
            "b": { "type": "object", "additionalProperties": { "type": "string" } },
        } });
        assert_eq!(
            closed_objects(&schema),
            json!({ "type": "object", "properties": {
                "a": { "type": "array", "items": { "type": "object", "properties": {}, "additionalProperties": false } },
                "b": { "type": "object", "additionalProperties": { "type": "string" } },
            }, "additionalProperties": false })
        );
    }
}
