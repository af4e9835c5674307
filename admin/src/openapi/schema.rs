//! The words in which bodies and answers are described: JSON Schema with an example in every part, so that the example
//! of a whole comes by itself. Use as `schema::text(1..=255).eg("candidate")`.

use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub(super) json: Value,
    pub(super) example: Value,
}

fn new(json: Value, example: impl Into<Value>) -> Schema {
    Schema { json, example: example.into() }
}

/// Text of so many characters; give it an example.
pub fn text(lengths: RangeInclusive<usize>) -> Schema {
    let mut json = json!({ "type": "string" });
    if *lengths.start() > 0 {
        json["minLength"] = (*lengths.start()).into();
    }
    if *lengths.end() < usize::MAX {
        json["maxLength"] = (*lengths.end()).into();
    }
    new(json, "text")
}

/// Text of any length.
pub fn any_text() -> Schema {
    text(0..=usize::MAX)
}

/// A slug that the client chooses.
pub fn slug() -> Schema {
    new(json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9_-]+$" }), "support-bot")
}

pub fn uuid() -> Schema {
    new(json!({ "type": "string", "format": "uuid" }), "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11")
}

/// Where an id or a slug is accepted.
pub fn name_of(example: &str) -> Schema {
    new(json!({ "type": "string", "minLength": 1 }), example)
}

pub fn email() -> Schema {
    new(json!({ "type": "string", "format": "email" }), "ada@example.com")
}

/// A time as answers write it.
pub fn time() -> Schema {
    new(json!({ "type": "string", "format": "date-time" }), "2026-01-15T10:30:00.000Z")
}

/// A time as bodies may give it.
pub fn moment() -> Schema {
    let says = "RFC 3339; without an offset it is UTC, without a time the day's beginning.";
    new(json!({ "type": "string", "description": says }), "2099-01-15T10:30:00Z")
}

pub fn flag() -> Schema {
    new(json!({ "type": "boolean" }), false)
}

/// A switch that is written as 0 or 1.
pub fn bit() -> Schema {
    new(json!({ "type": "integer", "enum": [0, 1] }), 0)
}

pub fn whole(range: RangeInclusive<i64>) -> Schema {
    let mut json = json!({ "type": "integer" });
    if *range.start() > i64::MIN {
        json["minimum"] = (*range.start()).into();
    }
    if *range.end() < i64::MAX {
        json["maximum"] = (*range.end()).into();
    }
    let example = if range.contains(&1) { 1 } else { *range.start() };
    new(json, example)
}

/// A number, whole or not, of at least `least`.
pub fn number(least: i64) -> Schema {
    new(json!({ "type": "number", "minimum": least }), least)
}

/// One of these texts; the first is the example.
pub fn choice(values: &[&str]) -> Schema {
    new(json!({ "type": "string", "enum": values }), values.first().copied().unwrap_or_default())
}

/// Always the same value, as the `object` of an answer.
pub fn fixed(value: impl Into<Value>) -> Schema {
    let value = value.into();
    new(json!({ "const": value }), value)
}

pub fn list(of: Schema) -> Schema {
    new(json!({ "type": "array", "items": of.json }), vec![of.example])
}

/// An object whose names are the client's.
pub fn map(of: Schema) -> Schema {
    new(json!({ "type": "object", "additionalProperties": of.json }), json!({ "team": of.example }))
}

/// Any JSON object.
pub fn any_object() -> Schema {
    new(json!({ "type": "object" }), json!({}))
}

/// Any JSON at all.
pub fn anything() -> Schema {
    new(json!({}), Value::Null)
}

/// Nothing else than null, as one of several forms.
pub fn nothing() -> Schema {
    new(json!({ "type": "null" }), Value::Null)
}

/// One of several forms; the first gives the example.
pub fn either(forms: impl IntoIterator<Item = Schema>) -> Schema {
    let mut forms = forms.into_iter().peekable();
    let example = forms.peek().map(|first| first.example.clone());
    new(json!({ "anyOf": forms.map(|one| one.json).collect::<Vec<_>>() }), example.unwrap_or_default())
}

/// An object, to be filled by `need` and `may`. Its title is its name in the document, where it stands once; an empty
/// title keeps it where it is used.
pub fn object(title: &str) -> Schema {
    let mut json = json!({ "type": "object", "required": [], "properties": {} });
    if !title.is_empty() {
        json["title"] = title.into();
    }
    new(json, Value::Object(Map::new()))
}

/// What every object in an answer has.
pub fn shown(title: &str, kind: &str) -> Schema {
    object(title).need("id", uuid()).need("object", fixed(kind))
}

impl Schema {
    /// Another example than the one made of the parts.
    pub fn eg(mut self, example: impl Into<Value>) -> Self {
        self.example = example.into();
        self
    }

    pub fn example(&self) -> &Value {
        &self.example
    }

    /// A word about what it means.
    pub fn says(mut self, text: &str) -> Self {
        self.json["description"] = text.into();
        self
    }

    /// A text of this form.
    pub fn matching(mut self, pattern: &str) -> Self {
        self.json["pattern"] = pattern.into();
        self
    }

    /// A number of at most `most`.
    pub fn up_to(mut self, most: i64) -> Self {
        self.json["maximum"] = most.into();
        self
    }

    /// A list of at most `most` items.
    pub fn at_most(mut self, most: usize) -> Self {
        self.json["maxItems"] = most.into();
        self
    }

    /// A list of at least `least` items.
    pub fn at_least(mut self, least: usize) -> Self {
        self.json["minItems"] = least.into();
        self
    }

    /// The value, or null.
    pub fn or_null(mut self) -> Self {
        match self.json.get("type").cloned() {
            Some(Value::String(kind)) if self.json.get("title").is_none() => {
                self.json["type"] = json!([kind, "null"]);
                if let Some(Value::Array(values)) = self.json.get_mut("enum") {
                    values.push(Value::Null);
                }
                self
            }
            _ => new(json!({ "anyOf": [self.json, { "type": "null" }] }), self.example),
        }
    }

    /// In a query, where an empty value is no value.
    pub fn or_empty(self) -> Self {
        let example = self.example.clone();
        either([self, fixed("")]).eg(example)
    }

    /// A field that is always there.
    pub fn need(mut self, name: &str, field: Schema) -> Self {
        if let Some(required) = self.json["required"].as_array_mut()
            && !required.iter().any(|one| one == name)
        {
            required.push(name.into());
        }
        self.may(name, field)
    }

    /// A field that may be left out.
    pub fn may(mut self, name: &str, field: Schema) -> Self {
        self.json["properties"][name] = field.json;
        self.example[name] = field.example;
        self
    }

    /// All fields of another object, as they are there.
    pub fn with(self, other: &Schema) -> Self {
        let needed =
            |name: &String| other.json["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let fields = other.json["properties"].as_object().into_iter().flatten();
        fields.fold(self, |all, (name, json)| {
            let field = new(json.clone(), other.example[name].clone());
            if needed(name) { all.need(name, field) } else { all.may(name, field) }
        })
    }

    /// The same object with nothing required, for updates.
    pub fn optional(mut self) -> Self {
        self.json["required"] = json!([]);
        self
    }

    /// The same fields under another title, for updates: none is required, and null keeps what was.
    pub fn as_change(&self, title: &str) -> Self {
        let needed = self.json["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let change = needed.fold(object(title).with(self), |all, name| {
            let field = new(self.json["properties"][name].clone(), self.example[name].clone());
            all.may(name, field.or_null())
        });
        change.optional()
    }

    /// With what every row has that can be archived, and all of it required.
    pub fn archivable(self) -> Self {
        let statuses = choice(&["active", "archived"]);
        self.need("status", statuses).need("created_at", time()).need("last_updated_at", time()).whole()
    }

    /// The same object with everything required, for answers that always show all.
    pub fn whole(mut self) -> Self {
        let names = self.json["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        self.json["required"] = names.collect::<Vec<_>>().into();
        self
    }

    /// The same object without a field.
    pub fn without(mut self, name: &str) -> Self {
        for part in [&mut self.json["properties"], &mut self.example] {
            if let Value::Object(fields) = part {
                fields.shift_remove(name);
            }
        }
        if let Some(required) = self.json["required"].as_array_mut() {
            required.retain(|one| one != name);
        }
        self
    }

    /// Empty when it has none.
    pub fn title(&self) -> &str {
        self.json["title"].as_str().unwrap_or_default()
    }

    /// The same object under another name.
    pub fn titled(mut self, title: &str) -> Self {
        self.json["title"] = title.into();
        self
    }

    /// Names that begin so are fields, too; they are shown in answers and may come back.
    pub fn prefixed(mut self, prefixes: &[&str]) -> Self {
        self.json[crate::http::schema_check::PREFIXES] = json!(prefixes);
        self
    }

    /// Nothing beyond the named fields is accepted.
    pub fn closed(mut self) -> Self {
        self.json["additionalProperties"] = false.into();
        self
    }

    /// Names beyond these are accepted and shown too.
    pub fn open(mut self) -> Self {
        self.json["additionalProperties"] = true.into();
        self
    }

    pub(super) fn is_needed(&self) -> bool {
        self.json["required"].as_array().is_some_and(|names| !names.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_an_object_is_made_of_its_parts() {
        let label = object("Label").need("name", slug().eg("candidate")).may("note", text(0..=9).or_null());
        assert_eq!(label.example, json!({ "name": "candidate", "note": "text" }));
        let all = shown("Shown", "label").with(&label).whole();
        assert_eq!(all.json["required"], json!(["id", "object", "name", "note"]));
        assert_eq!(object("Change").with(&label).optional().json["required"], json!([]));
    }

    #[test]
    fn null_joins_types_choices_and_named_objects() {
        assert_eq!(text(1..=2).or_null().json["type"], json!(["string", "null"]));
        assert_eq!(choice(&["a"]).or_null().json["enum"], json!(["a", null]));
        assert_eq!(object("Named").or_null().json["anyOf"][1], json!({ "type": "null" }));
        assert!(uuid().or_null().json.get("enum").is_none());
    }
}
