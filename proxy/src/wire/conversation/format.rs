//! The wire formats, and what belongs to one of them alone: carried untouched, written back only where it came from.

use serde_json::{Map, Value};

/// A wire format, not a provider: many providers speak each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// OpenAI chat completions.
    Chat,
    /// OpenAI completions: a prompt, no turns.
    Completions,
    /// Anthropic messages.
    Messages,
    /// OpenAI responses.
    Responses,
    /// Google generateContent.
    Gemini,
    /// AWS Bedrock Converse.
    Converse,
    /// Cohere chat, second version.
    Cohere,
}

/// A value only its own format understands: a block of a vendor's own tools, ratings, a tool that runs at the vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeValue {
    pub format: WireFormat,
    pub value: Value,
}

impl NativeValue {
    pub fn new(format: WireFormat, value: Value) -> Self {
        Self { format, value }
    }

    /// What kind of block or tool it is: its type, or Google's only field.
    pub fn kind(&self) -> &str {
        let field = || self.value.as_object().and_then(|map| map.keys().next()).map(String::as_str);
        self.value.get("type").and_then(Value::as_str).or_else(field).unwrap_or("unknown")
    }

    /// The value, if it is at home in `format`.
    pub fn in_format(&self, format: WireFormat) -> Option<&Value> {
        (self.format == format).then_some(&self.value)
    }
}

/// Fields that the model has no word for. Boxed, because nearly always there are none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra(Option<Box<(WireFormat, Map<String, Value>)>>);

impl Extra {
    pub fn new(format: WireFormat, fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Box::new((format, fields))))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The fields that may be written to `format`.
    pub fn fields_for(&self, format: WireFormat) -> impl Iterator<Item = (&str, &Value)> {
        let own = self.0.as_deref().filter(|(origin, _)| *origin == format);
        own.into_iter().flat_map(|(_, fields)| fields.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// The names of the fields that `format` is not told.
    pub fn names_lost_in(&self, format: WireFormat) -> impl Iterator<Item = &str> {
        let foreign = self.0.as_deref().filter(|(origin, _)| *origin != format);
        foreign.into_iter().flat_map(|(_, fields)| fields.keys().map(String::as_str))
    }

    pub fn get(&self, format: WireFormat, name: &str) -> Option<&Value> {
        self.0.as_deref().filter(|(origin, _)| *origin == format).and_then(|(_, fields)| fields.get(name))
    }

    /// A field that more than one format knows by the same name.
    pub fn shared(&self, name: &str) -> Option<&Value> {
        self.0.as_deref().and_then(|(_, fields)| fields.get(name))
    }

    /// Later fields replace earlier ones of the same name; those of another format replace all.
    pub fn merge(&mut self, later: Self) {
        match (&mut self.0, later.0) {
            (_, None) => {}
            (Some(own), Some(later)) if own.0 == later.0 => own.1.extend(later.1),
            (own, later) => *own = later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_goes_back_only_where_it_came_from() {
        let Value::Object(fields) = json!({ "store": true, "verbosity": "low" }) else { unreachable!() };
        let extra = Extra::new(WireFormat::Chat, fields);
        assert_eq!(extra.fields_for(WireFormat::Chat).count(), 2);
        assert_eq!(extra.fields_for(WireFormat::Messages).count(), 0);
        assert_eq!(extra.names_lost_in(WireFormat::Messages).collect::<Vec<_>>(), ["store", "verbosity"]);
        assert_eq!(extra.names_lost_in(WireFormat::Chat).count(), 0);
    }
}
