//! A value that a JSON Schema admits: what the mock says when a request asks for JSON, and what it calls tools with.
//! Types, required properties, bounds and references are followed; patterns and conditions are not. Schemas come from
//! outside and may refer to themselves, so depth, breadth and the whole are bounded.

use serde_json::{Map, Value, json};

const DEPTH: usize = 12;
const VALUES: usize = 2_000;
const ITEMS: u64 = 16;
const CHARACTERS: usize = 1_000;
static NULL: Value = Value::Null;

/// The JSON that a request asks for.
pub enum JsonFormat {
    Object,
    Schema(Value),
}

impl JsonFormat {
    pub fn text(&self) -> String {
        match self {
            Self::Object => json!({ "answer": "This is the mock provider.", "ok": true }).to_string(),
            Self::Schema(schema) => of_schema(schema).to_string(),
        }
    }
}

pub fn of_schema(schema: &Value) -> Value {
    Sampler { root: schema, left: VALUES }.value(schema, "", 0)
}

struct Sampler<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Sampler<'a> {
    fn value(&mut self, schema: &'a Value, name: &str, depth: usize) -> Value {
        if depth > DEPTH || self.left == 0 {
            return Value::Null;
        }
        self.left -= 1;
        let given = schema.get("const").or_else(|| schema["enum"].get(0)).or_else(|| schema.get("default"));
        if let Some(given) = given {
            return given.clone();
        }
        let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        if let Some(target) = pointer.and_then(|pointer| self.root.pointer(pointer)) {
            return self.value(target, name, depth + 1);
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[union].as_array() {
                let chosen = choices.iter().find(|choice| choice["type"] != "null").or_else(|| choices.first());
                return chosen.map_or(Value::Null, |chosen| self.value(chosen, name, depth + 1));
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            return self.merged(all, name, depth);
        }
        match kind(schema).as_str() {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" => json!(number(schema).ceil() as i64),
            "number" => json!(number(schema)),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => json!(text(schema, name)),
        }
    }

    /// What is required; of the outermost object everything, when nothing is.
    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let properties = schema["properties"].as_object();
        let required: Vec<&str> = match schema["required"].as_array() {
            Some(names) if !names.is_empty() => names.iter().filter_map(Value::as_str).collect(),
            _ if depth == 0 => properties.into_iter().flat_map(Map::keys).map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let mut object = Map::new();
        for name in required {
            if self.left == 0 {
                break;
            }
            let property = properties.and_then(|properties| properties.get(name)).unwrap_or(&NULL);
            object.insert(name.to_owned(), self.value(property, name, depth + 1));
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &'a Value, name: &str, depth: usize) -> Value {
        let least = schema["minItems"].as_u64();
        let most = schema["maxItems"].as_u64().unwrap_or(ITEMS).min(ITEMS);
        // A list may refer to what it stands in: it ends where nobody insists on more.
        let wanted = if depth > DEPTH / 2 { least.unwrap_or(0) } else { least.unwrap_or(1) };
        (0..wanted.min(most)).map(|_| self.value(&schema["items"], name, depth + 1)).collect()
    }

    fn merged(&mut self, all: &'a [Value], name: &str, depth: usize) -> Value {
        let mut merged = Value::Null;
        for schema in all {
            match (&mut merged, self.value(schema, name, depth + 1)) {
                (Value::Object(object), Value::Object(more)) => object.extend(more),
                (Value::Null, value) => merged = value,
                _ => {}
            }
        }
        merged
    }
}

/// The type, in small letters (Gemini writes capitals); of several the first that is not null.
fn kind(schema: &Value) -> String {
    let named = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match named {
        Some(kind) => kind.to_lowercase(),
        None if schema["properties"].is_object() => "object".to_owned(),
        None if schema["items"].is_object() => "array".to_owned(),
        None => "string".to_owned(),
    }
}

fn number(schema: &Value) -> f64 {
    let bound = |name: &str| schema[name].as_f64();
    let number = match (bound("minimum"), bound("exclusiveMinimum")) {
        (Some(least), _) => least,
        (None, Some(below)) => below + 1.0,
        (None, None) => {
            bound("maximum").or(bound("exclusiveMaximum").map(|above| above - 1.0)).map_or(21.0, |most| most.min(21.0))
        }
    };
    match bound("multipleOf") {
        Some(step) if step > 0.0 => (number / step).ceil() * step,
        _ => number,
    }
}

fn text(schema: &Value, name: &str) -> String {
    let usual = match (schema["format"].as_str(), name) {
        (Some("date-time"), _) => "2026-01-01T12:00:00Z",
        (Some("date"), _) => "2026-01-01",
        (Some("time"), _) => "12:00:00Z",
        (Some("email"), _) => "mock@example.com",
        (Some("uri" | "url"), _) => "https://example.com/",
        (Some("uuid"), _) => "00000000-0000-4000-8000-000000000000",
        (Some("ipv4"), _) => "192.0.2.1",
        (_, "city") => "Paris",
        _ => "mock",
    };
    let length = |name: &str| schema[name].as_u64().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let least = length("minLength").unwrap_or(0).min(CHARACTERS);
    let most = length("maxLength").unwrap_or(usize::MAX);
    let count = usual.len().max(least).min(most);
    usual.chars().chain(std::iter::repeat('x')).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_what_its_schema_requires() {
        for (schema, expected) in [
            (json!({ "type": "string" }), json!("mock")),
            (json!({ "type": ["null", "integer"], "minimum": 5 }), json!(5)),
            (json!({ "type": "NUMBER" }), json!(21.0)),
            (json!({ "enum": ["red", "blue"] }), json!("red")),
            (json!({ "type": "string", "maxLength": 2 }), json!("mo")),
            (json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 2 }), json!([true, true])),
            (json!({ "anyOf": [{ "type": "null" }, { "type": "string", "format": "date" }] }), json!("2026-01-01")),
            (
                json!({ "type": "object", "required": ["b"],
                        "properties": { "a": { "type": "string" }, "b": { "$ref": "#/$defs/b" } },
                        "$defs": { "b": { "allOf": [
                            { "type": "object", "properties": { "x": { "const": 1 } }, "required": ["x"] },
                            { "properties": { "city": {} }, "required": ["city"] } ] } } }),
                json!({ "b": { "x": 1, "city": "Paris" } }),
            ),
        ] {
            assert_eq!(of_schema(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_never_ends_gives_a_value_that_does() {
        let wide = json!({ "type": "object", "required": ["a", "b", "c"],
                           "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" }, "c": { "$ref": "#" } } });
        let list = json!({ "type": "array", "minItems": 1_000_000, "items": { "$ref": "#" } });
        for schema in [wide, list, json!({ "$ref": "#" })] {
            assert!(of_schema(&schema).to_string().len() < 100_000, "{schema}");
        }
    }
}
