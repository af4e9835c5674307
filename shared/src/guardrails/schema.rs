//! JSON Schema (draft 2020-12) for answers, with a bounded amount of work.
//!
//! Written here and not taken from a library, because tenants write the schemas and models the documents: references to
//! references can make a small schema take exponential time, and a recursive one any depth. Each application of a schema costs
//! fuel, and so does the length of what is looked at; when that is used up the answer is an error, not a busy processor. What is left out is refused when the schema is read:
//! references to other documents, `$dynamicRef` and the `unevaluated…` keywords. `format` annotates only, as the draft has it.

mod judge;

use super::fault::{Fault, FaultKind};
use super::pattern::Pattern;
use judge::Judge;
use serde_json::Value;
use std::collections::HashMap;

const MAX_SIZE: usize = 64 << 10;
const MAX_DEPTH: usize = 64;
const MAX_PATTERNS: usize = 50;
/// Applications of schemas, values compared, and stretches of text read.
const FUEL: usize = 200_000;

/// Keywords that hold a schema, a list of schemas, or schemas by name.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
    "additionalItems",
];
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
const UNSUPPORTED: &[&str] = &["$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"];
const NUMBERS: &[&str] = &["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"];
const COUNTS: &[&str] =
    &["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains"];
const TYPES: &[&str] = &["null", "boolean", "object", "array", "number", "integer", "string"];

pub struct Schema {
    root: Value,
    patterns: HashMap<String, Pattern>,
    /// Where named places are, as JSON pointers.
    anchors: HashMap<String, String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// A JSON pointer into the document.
    pub path: String,
    pub message: String,
}

/// The work was given up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema is too costly for this document")]
pub struct OutOfFuel;

/// What is left for the judgement of one text, however many documents it has.
pub struct Fuel(usize);

impl Default for Fuel {
    fn default() -> Self {
        Self(FUEL)
    }
}

impl Schema {
    pub fn parse(value: &Value, path: &str) -> Result<Self, Fault> {
        if value.to_string().len() > MAX_SIZE {
            return Err(Fault::new(FaultKind::OutOfRange, path, format!("must not be longer than {MAX_SIZE} bytes")));
        }
        let mut schema = Self { root: value.clone(), patterns: HashMap::new(), anchors: HashMap::new() };
        let mut references = Vec::new();
        schema.read(value, &mut String::new(), path, 0, &mut references)?;
        for (reference, at) in references {
            if schema.target(&reference).is_none() {
                let message = format!("names `{reference}`, which is not in this schema");
                return Err(Fault::new(FaultKind::Unusable, at, message));
            }
        }
        Ok(schema)
    }

    /// What is wrong with a document; nothing when it is valid.
    pub fn errors(&self, document: &Value, fuel: &mut Fuel) -> Result<Vec<SchemaError>, OutOfFuel> {
        let mut judge = Judge::new(self, fuel.0);
        let judged = judge.judge(&self.root, document);
        fuel.0 = judge.fuel;
        judged.map(|_| judge.errors)
    }

    /// The schema that a reference means.
    fn target(&self, reference: &str) -> Option<&Value> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() {
            return Some(&self.root);
        }
        match fragment.starts_with('/') {
            true => self.root.pointer(&fragment.replace("%25", "%")),
            false => self.root.pointer(self.anchors.get(fragment)?),
        }
    }

    /// Checks one schema and those inside it, and gathers their patterns, anchors and references.
    fn read(
        &mut self,
        value: &Value,
        pointer: &mut String,
        path: &str,
        depth: usize,
        references: &mut Vec<(String, String)>,
    ) -> Result<(), Fault> {
        let at = format!("{path}{}", pointer.replace('/', "."));
        let fault = |kind, message: String| Fault::new(kind, at.as_str(), message);
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Bool(_) => return Ok(()),
            _ => return Err(fault(FaultKind::WrongType, "must be a schema: an object, true or false".into())),
        };
        if depth > MAX_DEPTH {
            return Err(fault(FaultKind::OutOfRange, format!("must not nest deeper than {MAX_DEPTH} levels")));
        }
        for (name, value) in fields {
            let name = name.as_str();
            let wrong = |wanted: &str| fault(FaultKind::WrongType, format!("has a `{name}` that is not {wanted}"));
            match name {
                _ if UNSUPPORTED.contains(&name) => {
                    return Err(fault(FaultKind::Unusable, format!("has `{name}`, which is not supported")));
                }
                "$ref" => {
                    let reference = value.as_str().ok_or_else(|| wrong("a text"))?;
                    if !reference.starts_with('#') {
                        let message = format!("names `{reference}`; only places inside the schema can be named");
                        return Err(fault(FaultKind::Unusable, message));
                    }
                    references.push((reference.to_owned(), path.to_owned()));
                }
                "$anchor" => {
                    let anchor = value.as_str().ok_or_else(|| wrong("a text"))?;
                    self.anchors.insert(anchor.to_owned(), pointer.clone());
                }
                "pattern" => {
                    let pattern = value.as_str().ok_or_else(|| wrong("a text"))?;
                    self.pattern(pattern, path)?;
                }
                "type" if !types(value).all(|one| one.is_some_and(|one| TYPES.contains(&one))) => {
                    return Err(wrong(&format!("one of {}", TYPES.join(", "))));
                }
                "enum" if !value.is_array() => return Err(wrong("a list")),
                "required" if !is_texts(value) => return Err(wrong("a list of texts")),
                "uniqueItems" if !value.is_boolean() => return Err(wrong("true or false")),
                "dependentRequired" if !value.as_object().is_some_and(|lists| lists.values().all(is_texts)) => {
                    return Err(wrong("an object of lists of texts"));
                }
                _ if NUMBERS.contains(&name) && !value.is_number() => return Err(wrong("a number")),
                "multipleOf" if !value.as_f64().is_some_and(|number| number > 0.0) => return Err(wrong("above 0")),
                _ if COUNTS.contains(&name) && !value.as_f64().is_some_and(|n| n >= 0.0 && n.fract() == 0.0) => {
                    return Err(wrong("a whole number from 0"));
                }
                _ if LISTS.contains(&name) && value.as_array().is_none_or(Vec::is_empty) => {
                    return Err(wrong("a list of schemas"));
                }
                _ if NAMED.contains(&name) && !value.is_object() => return Err(wrong("an object of schemas")),
                _ => {}
            }
            self.read_inside(name, value, pointer, path, depth, references)?;
        }
        Ok(())
    }

    fn read_inside(
        &mut self,
        name: &str,
        value: &Value,
        pointer: &mut String,
        path: &str,
        depth: usize,
        references: &mut Vec<(String, String)>,
    ) -> Result<(), Fault> {
        let length = pointer.len();
        let mut inside = |this: &mut Self, step: &str, schema: &Value| {
            pointer.push_str(&format!("/{name}"));
            if !step.is_empty() {
                pointer.push_str(&format!("/{}", step.replace('~', "~0").replace('/', "~1")));
            }
            let read = this.read(schema, pointer, path, depth + 1, references);
            pointer.truncate(length);
            read
        };
        if ONE.contains(&name) {
            return inside(self, "", value);
        }
        if LISTS.contains(&name) {
            for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                inside(self, &index.to_string(), schema)?;
            }
        }
        if NAMED.contains(&name) {
            for (key, schema) in value.as_object().into_iter().flatten() {
                inside(self, key, schema)?;
            }
            if name == "patternProperties" {
                for key in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
                    self.pattern(key, path)?;
                }
            }
        }
        Ok(())
    }

    fn pattern(&mut self, text: &str, path: &str) -> Result<(), Fault> {
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(Fault::new(
                FaultKind::TooMany,
                path,
                format!("must not have more than {MAX_PATTERNS} patterns"),
            ));
        }
        if !self.patterns.contains_key(text) {
            self.patterns.insert(text.to_owned(), Pattern::parse(text, path)?);
        }
        Ok(())
    }
}

fn types(value: &Value) -> Box<dyn Iterator<Item = Option<&str>> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter().map(Value::as_str)),
        one => Box::new(std::iter::once(one.as_str())),
    }
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests;
