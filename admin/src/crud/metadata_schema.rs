//! What the metadata of keys or workspaces must look like: a JSON Schema of the little that string maps need. A
//! keyword that would not be enforced is refused when the schema is written, not ignored when it should have held.

use crate::http::ApiError;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(expecting = "struct Schema", deny_unknown_fields, rename_all = "camelCase")]
struct MetadataSchema {
    #[serde(rename = "type")]
    kind: String,
    additional_properties: bool,
    #[serde(default)]
    properties: BTreeMap<String, Property>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    #[serde(rename = "title")]
    _title: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Property {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    #[serde(rename = "const")]
    value: Option<String>,
    pattern: Option<String>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    #[serde(rename = "title")]
    _title: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "default")]
    _default: Option<String>,
    #[serde(rename = "examples")]
    _examples: Option<Vec<String>>,
}

const MAX_SIZE: usize = 64 << 10;

/// A schema as it was sent, if all of it can be enforced.
pub fn checked(schema: Value) -> Result<Value, ApiError> {
    if schema.to_string().len() > MAX_SIZE {
        return Err(ApiError::invalid(format!("must not be larger than {MAX_SIZE} bytes")));
    }
    let read = parse(&schema)?;
    if read.kind != "object" {
        return Err(ApiError::field("type", "must be `object`"));
    }
    if !read.additional_properties {
        return Err(ApiError::field("additionalProperties", "must be true"));
    }
    for (name, property) in &read.properties {
        if property.kind != "string" {
            return Err(ApiError::field(format!("properties.{name}.type"), "must be `string`"));
        }
        if let Some(pattern) = &property.pattern {
            let wrong = |_| ApiError::field(format!("properties.{name}.pattern"), "is not a regular expression");
            compiled(pattern).map_err(wrong)?;
        }
    }
    Ok(schema)
}

/// Whether metadata is as a stored schema wants it; null is no schema. No metadata at all is an empty object.
pub fn conforms(schema: &Value, metadata: &Map<String, Value>) -> Result<(), ApiError> {
    if schema.is_null() {
        return Ok(());
    }
    let schema = parse(schema)?;
    if let Some(missing) = schema.required.iter().find(|name| !metadata.contains_key(*name)) {
        return Err(ApiError::field(missing, "is required by the organisation's metadata schema"));
    }
    for (name, property) in &schema.properties {
        match metadata.get(name) {
            None => {}
            Some(Value::String(text)) => property.allows(text).map_err(|reason| ApiError::field(name, reason))?,
            Some(_) => return Err(ApiError::field(name, "must be a string")),
        }
    }
    Ok(())
}

impl Property {
    fn allows(&self, text: &str) -> Result<(), &'static str> {
        let length = text.chars().count();
        let is_listed = self.values.as_ref().is_none_or(|values| values.iter().any(|value| value == text));
        if !is_listed || self.value.as_ref().is_some_and(|value| value != text) {
            return Err("is not one of the values that the organisation's metadata schema lists");
        }
        if self.min_length.is_some_and(|least| length < least) || self.max_length.is_some_and(|most| length > most) {
            return Err("is not of the length that the organisation's metadata schema asks for");
        }
        match &self.pattern {
            Some(pattern) if !compiled(pattern).is_ok_and(|pattern| pattern.is_match(text)) => {
                Err("does not match the pattern of the organisation's metadata schema")
            }
            _ => Ok(()),
        }
    }
}

fn parse(schema: &Value) -> Result<MetadataSchema, ApiError> {
    crate::http::json::parse(schema.clone())
}

/// Matching takes linear time whatever the pattern; its size is bounded here.
fn compiled(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(1 << 20).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "additionalProperties": true,
            "required": ["team"],
            "properties": {
                "team": { "type": "string", "enum": ["red", "blue"] },
                "cost_centre": { "type": "string", "pattern": "^[0-9]{4}$", "description": "four digits" },
                "note": { "type": "string", "minLength": 2, "maxLength": 3 },
            },
        })
    }

    #[test]
    fn metadata_conforms_or_the_field_is_named() {
        let schema = checked(schema()).unwrap();
        for (metadata, refused) in [
            (json!({ "team": "red" }), None),
            (json!({ "team": "red", "anything": "else", "cost_centre": "0042", "note": "äöü" }), None),
            (json!({}), Some("team")),
            (json!({ "team": "green" }), Some("team")),
            (json!({ "team": 1 }), Some("team")),
            (json!({ "team": "red", "cost_centre": "42" }), Some("cost_centre")),
            (json!({ "team": "red", "note": "x" }), Some("note")),
            (json!({ "team": "red", "note": "long" }), Some("note")),
        ] {
            let met = conforms(&schema, metadata.as_object().unwrap());
            let named = met.err().map(|error| error.to_string().split(':').next().unwrap().to_owned());
            assert_eq!(named.as_deref(), refused, "{metadata}");
        }
        assert!(conforms(&Value::Null, &Map::new()).is_ok());
    }

    #[test]
    fn a_schema_that_would_not_be_enforced_is_refused() {
        for (path, value) in [
            ("/type", json!("array")),
            ("/additionalProperties", json!(false)),
            ("/properties/team", json!({ "type": "integer" })),
            ("/properties/team", json!({ "type": "string", "format": "email" })),
            ("/properties/cost_centre/pattern", json!("(")),
            ("/properties/cost_centre/pattern", json!("a{1000}{1000}{1000}")),
            ("/required", json!("team")),
        ] {
            let mut schema = schema();
            *schema.pointer_mut(path).unwrap() = value;
            assert!(checked(schema).is_err(), "{path}");
        }
        for schema in [json!({}), json!([]), json!({ "type": "object" }), json!("object")] {
            assert!(checked(schema.clone()).is_err(), "{schema}");
        }
        let mut large = schema();
        large["title"] = "x".repeat(MAX_SIZE).into();
        assert!(checked(large).is_err());
    }
}
