//! Named objects stand once: wherever one is used, it moves to the components and a reference takes its place.

use serde_json::{Map, Value, json};

/// Moves every schema with a title out of `part`. Of two that share a title, the first is kept; a test sees to it that
/// they do not differ.
pub fn hoisted(part: Value, schemas: &mut Map<String, Value>) -> Value {
    match part {
        Value::Array(items) => items.into_iter().map(|item| hoisted(item, schemas)).collect(),
        Value::Object(fields) => {
            let fields: Map<String, Value> = fields
                .into_iter()
                .map(|(name, value)| match name.as_str() {
                    // Data, which only looks like a schema.
                    "example" | "examples" | "const" | "enum" | "default" => (name, value),
                    _ => (name, hoisted(value, schemas)),
                })
                .collect();
            match fields.get("title").and_then(Value::as_str) {
                Some(title) if fields.contains_key("properties") => {
                    let reference = json!({ "$ref": format!("#/components/schemas/{title}") });
                    let title = title.to_owned();
                    schemas.entry(title).or_insert(Value::Object(fields));
                    reference
                }
                _ => Value::Object(fields),
            }
        }
        plain => plain,
    }
}
