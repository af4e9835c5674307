//! The scopes as a closed list in the document: wherever a key or a person is shown or given some, they are these.

use serde_json::{Value, json};
use shared::identity::scopes::SCOPES;

/// Adds the list to the components, and leads there from every list of scopes.
pub fn join(document: &mut Value) {
    for group in ["components", "paths"] {
        link(&mut document[group]);
    }
    let names: Vec<&str> = SCOPES.iter().map(|scope| scope.name).collect();
    let says = "What a credential may do: `resource.action`. Scopes are exact, `list` does not imply `read`.";
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        let scope = json!({ "title": "Scope", "type": "string", "description": says, "enum": names });
        schemas.insert("Scope".to_owned(), scope);
        schemas.sort_keys();
    }
}

/// The gateway's own are plain texts; those of an identity provider have a length.
fn link(part: &mut Value) {
    match part {
        Value::Array(items) => items.iter_mut().for_each(link),
        Value::Object(fields) => {
            if let Some(items) = fields.get_mut("properties").and_then(|all| all.pointer_mut("/scopes/items"))
                && *items == json!({ "type": "string" })
            {
                *items = json!({ "$ref": "#/components/schemas/Scope" });
            }
            fields.iter_mut().filter(|(name, _)| *name != "example").for_each(|(_, field)| link(field));
        }
        _ => {}
    }
}
