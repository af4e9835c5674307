//! A body against the schema that its operation is described by: everything that is wrong with it at once, in the words
//! of whoever sent it. Handlers still judge what a schema cannot say; they only see bodies that passed here.
//!
//! Null stands for absent (`Field`, `Option`), so it is refused only where a field is required. Patterns and formats are
//! left to the handlers, which explain them better.

use super::FieldFault;
use serde_json::{Map, Value};

/// As many as somebody reads.
const MAX_FAULTS: usize = 50;
/// Of an object with more fields, only the nearest name is told.
const MAX_NAMES: usize = 60;
/// A path holds names that the client chose.
const MAX_PATH: usize = 300;
/// Texts up to this are repeated.
const MAX_VALUE: usize = 100;

/// Names that begin so are fields, too: `{"x-prefixes": ["masked_"]}`.
pub const PREFIXES: &str = "x-prefixes";

#[derive(Debug, Default)]
pub struct Checked {
    pub faults: Vec<FieldFault>,
    /// Fields that nobody reads, in objects that do not say `additionalProperties: false`.
    pub unknown: Vec<FieldFault>,
}

impl Checked {
    fn count(&self) -> usize {
        self.faults.len() + self.unknown.len()
    }
}

/// `is_secret` says whether a field of this name may hold a secret: its value is not repeated, nor what is below it.
pub fn check(schema: &Value, value: &Value, is_secret: fn(&str) -> bool) -> Checked {
    let mut walk = Walk { is_secret, found: Checked::default() };
    walk.visit(schema, value, &Place::default());
    walk.found
}

/// Where in the body, and whether its values may be repeated.
#[derive(Debug, Clone, Default)]
struct Place {
    path: String,
    is_secret: bool,
}

struct Walk {
    is_secret: fn(&str) -> bool,
    found: Checked,
}

impl Walk {
    fn visit(&mut self, schema: &Value, value: &Value, at: &Place) {
        if self.found.count() >= MAX_FAULTS {
            return;
        }
        if let Some(forms) = schema.get("anyOf").and_then(Value::as_array) {
            return self.visit_nearest_form(forms, value, at);
        }
        if is_another_spelling(schema, value) {
            return;
        }
        let kinds = kinds(schema);
        if !fits(&kinds, value) {
            return self.wrong(at, value, format!("must be {}", spoken(&kinds)));
        }
        if let Some(rule) = schema.get("const").filter(|rule| *rule != value) {
            return self.not_among(at, value, std::slice::from_ref(rule));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|values| !values.contains(value)) {
            return self.not_among(at, value, values);
        }
        match value {
            Value::String(text) => {
                self.bounded(schema, ["minLength", "maxLength"], text.chars().count() as f64, value, at, "characters")
            }
            Value::Number(number) => {
                self.bounded(schema, ["minimum", "maximum"], number.as_f64().unwrap_or_default(), value, at, "")
            }
            Value::Array(items) => {
                self.bounded(schema, ["minItems", "maxItems"], items.len() as f64, value, at, "items");
                if let Some(one) = schema.get("items") {
                    for (n, item) in items.iter().enumerate() {
                        self.visit(one, item, &Place { path: format!("{}[{n}]", at.path), ..at.clone() });
                    }
                }
            }
            Value::Object(fields) => self.object(schema, fields, at),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn object(&mut self, schema: &Value, fields: &Map<String, Value>, at: &Place) {
        let empty = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required =
            || schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for (name, field) in fields {
            let below = self.below(at, name);
            match (known.get(name), schema.get("additionalProperties")) {
                (Some(_), _) if field.is_null() && !required().any(|one| one == name) => {}
                (Some(schema), _) => self.visit(schema, field, &below),
                (None, Some(rest @ Value::Object(_))) if !field.is_null() => self.visit(rest, field, &below),
                (None, Some(Value::Bool(true) | Value::Object(_))) => {}
                (None, None) if known.is_empty() || is_prefixed(schema, name) => {}
                (None, rule) => self.unknown(rule.is_some(), name, known, &below),
            }
        }
        for name in required().filter(|name| !fields.contains_key(*name)) {
            let below = self.below(at, name);
            self.add(FieldFault::new(below.path, "is required"));
        }
    }

    /// What is wrong by the form that the value comes closest to.
    fn visit_nearest_form(&mut self, forms: &[Value], value: &Value, at: &Place) {
        let fitting = forms.iter().filter(|form| fits(&kinds(form), value)).map(|form| {
            let mut walk = Self { is_secret: self.is_secret, found: Checked::default() };
            walk.visit(form, value, at);
            walk.found
        });
        match fitting.min_by_key(Checked::count) {
            Some(found) => {
                self.found.faults.extend(found.faults);
                self.found.unknown.extend(found.unknown);
            }
            None => {
                let kinds: Vec<&str> = forms.iter().flat_map(kinds).collect();
                self.wrong(at, value, format!("must be {}", spoken(&kinds)));
            }
        }
    }

    fn bounded(&mut self, schema: &Value, names: [&str; 2], size: f64, value: &Value, at: &Place, unit: &str) {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        let (least, most) = (bound(names[0]), bound(names[1]));
        if least.is_none_or(|least| size >= least) && most.is_none_or(|most| size <= most) {
            return;
        }
        let range = match (least, most) {
            (Some(least), Some(most)) if unit.is_empty() => format!("from {least} to {most}"),
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (_, most) => format!("at most {}", most.unwrap_or_default()),
        };
        let message = if unit.is_empty() { format!("must be {range}") } else { format!("must have {range} {unit}") };
        self.wrong(at, value, message);
    }

    fn not_among(&mut self, at: &Place, value: &Value, values: &[Value]) {
        let allowed: Vec<String> = values.iter().filter(|one| !one.is_null()).map(as_text).collect();
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        let fault = FieldFault::not_among(short(&at.path), &as_text(value), &allowed);
        self.add(fault.sent(shown(value, at)));
    }

    fn unknown(&mut self, is_closed: bool, name: &str, known: &Map<String, Value>, at: &Place) {
        // A name is compared with every known one, and a body may hold a hundred thousand.
        if self.found.count() >= MAX_FAULTS {
            return;
        }
        let names = known.keys().map(String::as_str).filter(|name| !name.is_empty());
        let mut fault = FieldFault::unknown(short(&at.path), name, "a field of this object", names);
        if known.len() > MAX_NAMES {
            fault.allowed.clear();
        }
        match is_closed {
            true => self.found.faults.push(fault),
            false => self.found.unknown.push(fault),
        }
    }

    fn wrong(&mut self, at: &Place, value: &Value, message: String) {
        self.add(FieldFault::new(short(&at.path), message).sent(shown(value, at)));
    }

    fn add(&mut self, fault: FieldFault) {
        if self.found.count() < MAX_FAULTS {
            self.found.faults.push(fault);
        }
    }

    fn below(&self, at: &Place, name: &str) -> Place {
        let path = if at.path.is_empty() { name.to_owned() } else { format!("{}.{name}", at.path) };
        Place { path: short(&path), is_secret: at.is_secret || (self.is_secret)(name) }
    }
}

/// What handlers take beside the words of a list: a role with its kind before it (`ws-member`), and true or false for a
/// bit.
fn is_another_spelling(schema: &Value, value: &Value) -> bool {
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return false };
    match value {
        Value::String(text) => text.strip_prefix("ws-").is_some_and(|role| values.iter().any(|one| one == role)),
        Value::Bool(flag) => values.iter().any(|one| *one == i32::from(*flag)),
        _ => false,
    }
}

fn is_prefixed(schema: &Value, name: &str) -> bool {
    let prefixes = schema.get(PREFIXES).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    prefixes.into_iter().any(|prefix| name.starts_with(prefix))
}

/// The types that a schema allows; none when it allows all.
fn kinds(schema: &Value) -> Vec<&str> {
    match (schema.get("type"), schema.get("anyOf")) {
        (Some(Value::String(kind)), _) => vec![kind],
        (Some(Value::Array(kinds)), _) => kinds.iter().filter_map(Value::as_str).collect(),
        (None, Some(Value::Array(forms))) if forms.iter().all(|form| !kinds(form).is_empty()) => {
            forms.iter().flat_map(kinds).collect()
        }
        _ => Vec::new(),
    }
}

fn fits(kinds: &[&str], value: &Value) -> bool {
    let is = |kind: &&str| match *kind {
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    kinds.is_empty() || kinds.iter().any(is)
}

/// `a string`, `a list or an object`; null is left out, for whoever leaves the field out.
fn spoken(kinds: &[&str]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for kind in kinds {
        let word = match *kind {
            "string" => "a string",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "an object",
            _ => continue,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.is_empty() { "null".into() } else { words.join(" or ") }
}

fn shown(value: &Value, at: &Place) -> Option<Value> {
    let is_short = match value {
        Value::String(text) => text.chars().count() <= MAX_VALUE,
        Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    (is_short && !at.is_secret).then(|| value.clone())
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn short(path: &str) -> String {
    if path.len() <= MAX_PATH { path.to_owned() } else { path.chars().take(MAX_PATH / 4).chain(['…']).collect() }
}

#[cfg(test)]
mod tests;
