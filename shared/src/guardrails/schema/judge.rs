//! One judgement of one document: what of a schema it breaks, with the fuel that is left.

use super::{OutOfFuel, Schema, SchemaError, types};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How deep schemas may be applied inside one another.
const MAX_DEPTH: usize = 200;
/// As many errors are told.
const MAX_ERRORS: usize = 20;

pub struct Judge<'s> {
    schema: &'s Schema,
    pub fuel: usize,
    depth: usize,
    path: String,
    /// Errors inside `anyOf`, `not` and the like are not the document's.
    quiet: usize,
    pub errors: Vec<SchemaError>,
}

impl<'s> Judge<'s> {
    pub fn new(schema: &'s Schema, fuel: usize) -> Self {
        Self { schema, fuel, depth: 0, path: String::new(), quiet: 0, errors: Vec::new() }
    }

    /// Whether the document is valid; every error is noted.
    pub fn judge(&mut self, schema: &'s Value, document: &Value) -> Result<bool, OutOfFuel> {
        self.burn(1)?;
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return Ok(self.wrong("is not allowed here")),
            _ => return Ok(true),
        };
        if self.depth == MAX_DEPTH {
            return Err(OutOfFuel);
        }
        self.depth += 1;
        let mut is_valid = self.applied(fields, document)?;
        is_valid &= self.any_kind(fields, document)?;
        is_valid &= match document {
            Value::Object(members) => self.object(fields, members, document)?,
            Value::Array(items) => self.array(fields, items)?,
            Value::String(text) => self.text(fields, text)?,
            Value::Number(number) => self.number(fields, number.as_f64().unwrap_or(f64::NAN)),
            Value::Null | Value::Bool(_) => true,
        };
        self.depth -= 1;
        Ok(is_valid)
    }

    /// Schemas that are applied to the same document.
    fn applied(&mut self, fields: &'s Map<String, Value>, document: &Value) -> Result<bool, OutOfFuel> {
        let mut is_valid = true;
        if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
            self.burn_bytes(name)?;
            if let Some(target) = self.schema.target(name) {
                is_valid &= self.judge(target, document)?;
            }
        }
        for one in list(fields, "allOf") {
            is_valid &= self.judge(one, document)?;
        }
        if let Some(any) = fields.get("anyOf").and_then(Value::as_array)
            && self.count_valid(any, document, 1)? == 0
        {
            is_valid = self.wrong("fits none of the schemas of anyOf");
        }
        if let Some(one) = fields.get("oneOf").and_then(Value::as_array) {
            let fitting = self.count_valid(one, document, 2)?;
            if fitting != 1 {
                is_valid = self.wrong(if fitting == 0 {
                    "fits none of the schemas of oneOf"
                } else {
                    "fits several of oneOf"
                });
            }
        }
        if let Some(not) = fields.get("not")
            && self.quietly(not, document)?
        {
            is_valid = self.wrong("fits the schema of not");
        }
        if let Some(condition) = fields.get("if") {
            let branch = if self.quietly(condition, document)? { "then" } else { "else" };
            if let Some(branch) = fields.get(branch) {
                is_valid &= self.judge(branch, document)?;
            }
        }
        Ok(is_valid)
    }

    fn any_kind(&mut self, fields: &'s Map<String, Value>, document: &Value) -> Result<bool, OutOfFuel> {
        let mut is_valid = true;
        self.burn(list(fields, "type").count())?;
        if let Some(wanted) = fields.get("type")
            && !types(wanted).any(|one| one.is_some_and(|one| is_of_type(document, one)))
        {
            is_valid = self.wrong(&format!("is not of type {wanted}"));
        }
        if let Some(allowed) = fields.get("enum").and_then(Value::as_array) {
            let mut is_found = false;
            for one in allowed {
                if self.equal(one, document)? {
                    is_found = true;
                    break;
                }
            }
            if !is_found {
                is_valid = self.wrong("is none of the values of enum");
            }
        }
        if let Some(constant) = fields.get("const")
            && !self.equal(constant, document)?
        {
            is_valid = self.wrong("is not the value of const");
        }
        Ok(is_valid)
    }

    /// Which members must be there. The members are those of the document.
    fn needed(
        &mut self,
        fields: &'s Map<String, Value>,
        members: &Map<String, Value>,
        document: &Value,
    ) -> Result<bool, OutOfFuel> {
        let mut is_valid = true;
        for name in list(fields, "required").filter_map(Value::as_str) {
            self.burn_bytes(name)?;
            if !members.contains_key(name) {
                is_valid = self.wrong(&format!("lacks the member `{name}`"));
            }
        }
        for (name, needed) in object(fields, "dependentRequired") {
            self.burn_bytes(name)?;
            if !members.contains_key(name) {
                continue;
            }
            for other in needed.as_array().into_iter().flatten().filter_map(Value::as_str) {
                self.burn_bytes(other)?;
                if !members.contains_key(other) {
                    self.burn_bytes(name)?;
                    is_valid = self.wrong(&format!("lacks the member `{other}`, which `{name}` needs"));
                }
            }
        }
        for (name, one) in object(fields, "dependentSchemas") {
            self.burn_bytes(name)?;
            if members.contains_key(name) {
                is_valid &= self.judge(one, document)?;
            }
        }
        Ok(is_valid)
    }

    fn object(
        &mut self,
        fields: &'s Map<String, Value>,
        members: &Map<String, Value>,
        document: &Value,
    ) -> Result<bool, OutOfFuel> {
        let mut is_valid = self.size(fields, members.len(), "maxProperties", "minProperties", "members");
        is_valid &= self.needed(fields, members, document)?;
        let schema = self.schema;
        let patterns: Vec<_> = object(fields, "patternProperties")
            .filter_map(|(text, one)| Some((schema.patterns.get(text.as_str())?, one)))
            .collect();
        self.burn(patterns.len())?;
        let named = fields.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            self.burn_bytes(name)?;
            let mut is_known = false;
            if let Some(one) = named.and_then(|named| named.get(name)) {
                is_known = true;
                is_valid &= self.at(name, one, value)?;
            }
            for (pattern, one) in &patterns {
                self.burn(pattern.price(name))?;
                if pattern.is_match(name).map_err(|_| OutOfFuel)? {
                    is_known = true;
                    is_valid &= self.at(name, one, value)?;
                }
            }
            if let Some(additional) = fields.get("additionalProperties").filter(|_| !is_known) {
                is_valid &= self.at(name, additional, value)?;
            }
            if let Some(names) = fields.get("propertyNames") {
                is_valid &= self.at(name, names, &Value::String(name.clone()))?;
            }
        }
        Ok(is_valid)
    }

    fn array(&mut self, fields: &'s Map<String, Value>, items: &[Value]) -> Result<bool, OutOfFuel> {
        let mut is_valid = self.size(fields, items.len(), "maxItems", "minItems", "items");
        let prefix = fields.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            self.burn(1)?;
            let one = prefix.get(index).or_else(|| fields.get("items"));
            if let Some(one) = one {
                is_valid &= self.at(&index.to_string(), one, item)?;
            }
        }
        if let Some(wanted) = fields.get("contains") {
            let mut found = 0;
            for item in items {
                found += usize::from(self.quietly(wanted, item)?);
            }
            let least = count(fields, "minContains").unwrap_or(1);
            if found < least || count(fields, "maxContains").is_some_and(|most| found > most) {
                is_valid = self.wrong(&format!("has {found} items that fit contains"));
            }
        }
        if fields.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
            for (index, item) in items.iter().enumerate() {
                for other in &items[..index] {
                    if self.equal(item, other)? {
                        return Ok(self.wrong("has an item twice"));
                    }
                }
            }
        }
        Ok(is_valid)
    }

    fn text(&mut self, fields: &'s Map<String, Value>, text: &str) -> Result<bool, OutOfFuel> {
        let mut is_valid = true;
        if fields.contains_key("maxLength") || fields.contains_key("minLength") {
            self.burn_bytes(text)?;
            is_valid = self.size(fields, text.chars().count(), "maxLength", "minLength", "characters");
        }
        if let Some(pattern) = fields.get("pattern").and_then(Value::as_str)
            && let Some(compiled) = self.schema.patterns.get(pattern)
        {
            // The pattern itself is looked up and told.
            self.burn(compiled.price(text) + pattern.len() / 64)?;
            if !compiled.is_match(text).map_err(|_| OutOfFuel)? {
                is_valid = self.wrong(&format!("does not match the pattern {pattern}"));
            }
        }
        Ok(is_valid)
    }

    fn number(&mut self, fields: &Map<String, Value>, number: f64) -> bool {
        let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
        let mut is_valid = true;
        for (name, is_broken) in [
            ("maximum", bound("maximum").is_some_and(|most| number > most)),
            ("exclusiveMaximum", bound("exclusiveMaximum").is_some_and(|most| number >= most)),
            ("minimum", bound("minimum").is_some_and(|least| number < least)),
            ("exclusiveMinimum", bound("exclusiveMinimum").is_some_and(|least| number <= least)),
            ("multipleOf", bound("multipleOf").is_some_and(|unit| !is_multiple(number, unit))),
        ] {
            if is_broken {
                is_valid = self.wrong(&format!("breaks {name}"));
            }
        }
        is_valid
    }

    fn size(&mut self, fields: &Map<String, Value>, size: usize, most: &str, least: &str, what: &str) -> bool {
        let is_over = count(fields, most).is_some_and(|most| size > most);
        let is_under = count(fields, least).is_some_and(|least| size < least);
        if is_over || is_under {
            return self.wrong(&format!("has {size} {what}, which breaks {}", if is_over { most } else { least }));
        }
        true
    }

    /// How many of the schemas it fits, counted up to `enough`.
    fn count_valid(&mut self, schemas: &'s [Value], document: &Value, enough: usize) -> Result<usize, OutOfFuel> {
        let mut valid = 0;
        for one in schemas {
            valid += usize::from(self.quietly(one, document)?);
            if valid == enough {
                break;
            }
        }
        Ok(valid)
    }

    fn quietly(&mut self, schema: &'s Value, document: &Value) -> Result<bool, OutOfFuel> {
        self.quiet += 1;
        let valid = self.judge(schema, document);
        self.quiet -= 1;
        valid
    }

    /// One step into the document.
    fn at(&mut self, step: &str, schema: &'s Value, value: &Value) -> Result<bool, OutOfFuel> {
        let length = self.path.len();
        // Writing to a string does not fail.
        let _ = write!(self.path, "/{}", step.replace('~', "~0").replace('/', "~1"));
        let valid = self.judge(schema, value);
        self.path.truncate(length);
        valid
    }

    /// False, and noted.
    fn wrong(&mut self, message: &str) -> bool {
        if self.quiet == 0 && self.errors.len() < MAX_ERRORS {
            self.errors.push(SchemaError { path: self.path.clone(), message: message.to_owned() });
        }
        false
    }

    fn equal(&mut self, one: &Value, other: &Value) -> Result<bool, OutOfFuel> {
        self.burn(1)?;
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => Ok(one == other || one.as_f64() == other.as_f64()),
            (Value::String(one), Value::String(other)) if one.len() == other.len() => {
                self.burn_bytes(one)?;
                Ok(one == other)
            }
            (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
                for (one, other) in one.iter().zip(other) {
                    if !self.equal(one, other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
                for (name, one) in one {
                    self.burn_bytes(name)?;
                    let Some(other) = other.get(name) else { return Ok(false) };
                    if !self.equal(one, other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => Ok(false),
            _ => Ok(one == other),
        }
    }

    /// For a text that is read once: hashed, compared, counted or copied.
    fn burn_bytes(&mut self, text: &str) -> Result<(), OutOfFuel> {
        self.burn(1 + text.len() / 64)
    }

    fn burn(&mut self, fuel: usize) -> Result<(), OutOfFuel> {
        self.fuel = self.fuel.checked_sub(fuel).ok_or(OutOfFuel)?;
        Ok(())
    }
}

fn list<'v>(fields: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn object<'v>(fields: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    fields.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn count(fields: &Map<String, Value>, name: &str) -> Option<usize> {
    fields.get(name).and_then(Value::as_f64).map(|number| number as usize)
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Object(_) => name == "object",
        Value::Array(_) => name == "array",
        Value::String(_) => name == "string",
        Value::Number(number) => {
            name == "number" || name == "integer" && number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
    }
}

/// With room for what floating-point numbers cannot say: 0.3 is a multiple of 0.1.
fn is_multiple(number: f64, unit: f64) -> bool {
    let times = number / unit;
    (times - times.round()).abs() < 1e-9 * times.abs().max(1.0)
}
