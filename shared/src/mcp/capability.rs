//! What a server offers: tools, prompts, resources and templates of resources, as its lists name them.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The longest name, and the largest entry, that is kept.
const NAME: usize = 512;
const ENTRY: usize = 64 << 10;
/// What a model is told of a capability; and of that, what the oldest revision that is spoken does not have.
const MODEL_FIELDS: [&str; 8] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "arguments", "uri"];
const LATER: [&str; 2] = ["title", "outputSchema"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tool,
    Prompt,
    Resource,
    ResourceTemplate,
    /// What a server tells models about itself when it is greeted; it is in no list.
    Instructions,
}

/// The field of a greeting that holds them, and the name that they are kept under.
pub const INSTRUCTIONS: &str = "instructions";

impl Kind {
    /// Those that servers have lists of.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::ResourceTemplate];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource_template",
            Self::Instructions => INSTRUCTIONS,
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Instructions]).find(|kind| kind.as_str() == text)
    }

    /// Whether models act on what a server tells of it, so that it is approved once.
    pub const fn is_pinned(self) -> bool {
        matches!(self, Self::Tool | Self::Prompt | Self::Instructions)
    }

    pub const fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/list",
            Self::Prompt => "prompts/list",
            Self::Resource => "resources/list",
            Self::ResourceTemplate => "resources/templates/list",
            Self::Instructions => "initialize",
        }
    }

    /// Under which name a server says that it has them.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource | Self::ResourceTemplate => "resources",
            Self::Instructions => INSTRUCTIONS,
        }
    }

    /// The field of its answer that holds them.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::ResourceTemplate => "resourceTemplates",
            Self::Instructions => INSTRUCTIONS,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    pub kind: Kind,
    pub name: String,
    /// The entry of the list, as it came.
    pub definition: Map<String, Value>,
}

/// What is wrong with a list, in words that repeat nothing of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("{} has no list in its answer", .0.method())]
    NoList(Kind),
    #[error("{} names an entry without a name of 1 to {NAME} characters", .0.method())]
    Name(Kind),
    #[error("{} has an entry of more than {ENTRY} bytes", .0.method())]
    TooLarge(Kind),
    #[error("{} has a cursor that cannot be sent back", .0.method())]
    Cursor(Kind),
}

/// One page of a list.
#[derive(Debug, PartialEq)]
pub struct ListPage {
    pub items: Vec<Capability>,
    pub next: Option<String>,
}

impl ListPage {
    pub fn read(kind: Kind, result: Value) -> Result<Self, Unreadable> {
        let next = match &result["nextCursor"] {
            Value::Null => None,
            Value::String(cursor) if cursor.is_empty() => None,
            Value::String(cursor) if cursor.len() <= 4096 => Some(cursor.clone()),
            _ => return Err(Unreadable::Cursor(kind)),
        };
        let Value::Object(mut fields) = result else { return Err(Unreadable::NoList(kind)) };
        let Some(Value::Array(entries)) = fields.shift_remove(kind.field()) else {
            return Err(Unreadable::NoList(kind));
        };
        let items = entries.into_iter().map(|entry| Capability::from_entry(kind, entry));
        Ok(Self { items: items.collect::<Result<_, _>>()?, next })
    }
}

impl Capability {
    pub fn from_entry(kind: Kind, entry: Value) -> Result<Self, Unreadable> {
        if entry.to_string().len() > ENTRY {
            return Err(Unreadable::TooLarge(kind));
        }
        let Value::Object(definition) = without_nul(entry) else { return Err(Unreadable::Name(kind)) };
        let name = definition.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !(1..=NAME).contains(&name.chars().count()) {
            return Err(Unreadable::Name(kind));
        }
        Ok(Self { kind, name, definition })
    }

    /// Instructions as an entry of a list would be.
    pub fn instructions_entry(text: &str) -> Value {
        json!({ "name": INSTRUCTIONS, "description": text })
    }

    /// Whether every reader reads an entry alike: no field that is spelled nearly like one that models are told.
    pub fn is_plain(entry: &Value) -> bool {
        let is_near = |name: &String| {
            MODEL_FIELDS.iter().any(|known| name != known && name.to_uppercase() == known.to_uppercase())
        };
        !entry.as_object().is_some_and(|fields| fields.keys().any(is_near))
    }

    /// Of what a model is told: another description or schema is another hash, whatever the order of fields.
    pub fn hash(&self) -> [u8; 32] {
        self.hash_without(&[])
    }

    /// The same without what later revisions of the protocol brought, as a server tells it to a client of an older one.
    pub fn plain_hash(&self) -> [u8; 32] {
        self.hash_without(&LATER)
    }

    fn hash_without(&self, left_out: &[&str]) -> [u8; 32] {
        let fields = MODEL_FIELDS.iter().filter(|name| !left_out.contains(name));
        let fields: Map<String, Value> =
            fields.filter_map(|name| Some(((*name).to_owned(), self.definition.get(*name)?.clone()))).collect();
        let fields = json!({ "type": self.kind.as_str(), "told": sorted(&Value::Object(fields)) });
        Sha256::digest(fields.to_string().as_bytes()).into()
    }
}

/// The same value with the fields of each object in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// NUL cannot be stored.
fn without_nul(value: Value) -> Value {
    let plain = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    match value {
        Value::String(text) => Value::String(plain(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nul).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (plain(name), without_nul(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(entry: Value) -> Capability {
        Capability::from_entry(Kind::Tool, entry).unwrap()
    }

    #[test]
    fn pages_are_read_or_refused_whole() {
        let page = ListPage::read(Kind::Tool, json!({ "tools": [{ "name": "a" }], "nextCursor": "2" })).unwrap();
        assert_eq!((page.items.len(), page.next.as_deref()), (1, Some("2")));
        for (result, expected) in [
            (json!({ "tools": [{ "name": "" }] }), Unreadable::Name(Kind::Tool)),
            (json!({ "tools": [7] }), Unreadable::Name(Kind::Tool)),
            (json!({ "tools": {} }), Unreadable::NoList(Kind::Tool)),
            (json!(7), Unreadable::NoList(Kind::Tool)),
            (json!({ "tools": [], "nextCursor": 7 }), Unreadable::Cursor(Kind::Tool)),
            (json!({ "tools": [{ "name": "a", "x": "y".repeat(ENTRY) }] }), Unreadable::TooLarge(Kind::Tool)),
        ] {
            assert_eq!(ListPage::read(Kind::Tool, result), Err(expected));
        }
    }

    #[test]
    fn an_entry_with_a_field_that_some_read_as_another_is_not_plain() {
        for (entry, is_plain) in [
            (json!({ "name": "a", "description": "d", "inputSchema": {} }), true),
            (json!({ "name": "a", "Description": "d" }), false),
            (json!({ "Name": "a" }), false),
            (json!({ "name": "a", "inputschema": {} }), false),
        ] {
            assert_eq!(Capability::is_plain(&entry), is_plain, "{entry}");
        }
    }

    #[test]
    fn the_hash_follows_what_a_model_is_told() {
        let plain = tool(json!({ "name": "a", "inputSchema": { "x": 1, "y": 2 } })).hash();
        assert_eq!(plain, tool(json!({ "inputSchema": { "y": 2, "x": 1 }, "name": "a", "_meta": 1 })).hash());
        assert_ne!(plain, tool(json!({ "name": "a", "inputSchema": { "x": 1 } })).hash());
        assert_ne!(plain, tool(json!({ "name": "a", "inputSchema": { "x": 1, "y": 2 }, "description": "!" })).hash());
        assert_eq!(tool(json!({ "name": "a\u{0}" })).name, "a\u{fffd}");
        let titled = tool(json!({ "name": "a", "title": "A", "outputSchema": {}, "inputSchema": { "x": 1, "y": 2 } }));
        assert_ne!(titled.hash(), plain);
        assert_eq!(titled.plain_hash(), plain, "as a client of an older revision is told it");
    }
}
