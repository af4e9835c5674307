//! PATCH (RFC 7644, 3.5.2) on the JSON of one resource, in the spellings that identity providers send: a path and a
//! value, no path and an object of values (whose names may be paths again), and paths with a filter in brackets. Pure:
//! the resource as it was and the operations in, the resource as it should be out.

use super::filter::{self, Filter, Literal, Operator};
use crate::http::ApiError;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// Most operations in one request.
const MAX_OPERATIONS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Add,
    Replace,
    Remove,
}

#[derive(Debug, Clone)]
pub struct PatchOperation {
    pub verb: Verb,
    pub path: Option<Path>,
    pub value: Value,
}

/// `emails[type eq "work"].value`: an attribute, which of its values, and a part of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    pub attribute: String,
    pub which: Option<Filter>,
    pub part: Option<String>,
}

fn refused(kind: &'static str, detail: &str) -> ApiError {
    ApiError::Scim { status: StatusCode::BAD_REQUEST, kind, detail: detail.to_owned() }
}

/// The operations of a request's body.
pub fn operations(body: &Map<String, Value>) -> Result<Vec<PatchOperation>, ApiError> {
    let sent = body.iter().find(|(name, _)| name.eq_ignore_ascii_case("operations")).map(|(_, value)| value);
    let Some(Value::Array(sent)) = sent else {
        return Err(refused("invalidSyntax", "Operations must be a list"));
    };
    if sent.len() > MAX_OPERATIONS {
        return Err(ApiError::Scim {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            kind: "tooMany",
            detail: format!("At most {MAX_OPERATIONS} operations are taken at once"),
        });
    }
    sent.iter().map(operation).collect()
}

fn operation(sent: &Value) -> Result<PatchOperation, ApiError> {
    let verb = match sent["op"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "add" => Verb::Add,
        "replace" => Verb::Replace,
        "remove" => Verb::Remove,
        _ => return Err(refused("invalidSyntax", "op must be add, replace or remove")),
    };
    let path = match &sent["path"] {
        Value::Null => None,
        Value::String(path) if path.trim().is_empty() => None,
        Value::String(path) => Some(parse(path)?),
        _ => return Err(refused("invalidPath", "path must be a text")),
    };
    match (verb, &path, sent.get("value")) {
        (Verb::Remove, None, _) => Err(refused("noTarget", "A remove needs a path")),
        (Verb::Remove, _, value) => Ok(PatchOperation { verb, path, value: value.cloned().unwrap_or_default() }),
        (_, None, Some(Value::Object(_))) | (_, Some(_), Some(_)) => {
            Ok(PatchOperation { verb, path, value: sent["value"].clone() })
        }
        (_, None, _) => Err(refused("invalidValue", "Without a path the value must be an object")),
        (_, Some(_), None) => Err(refused("invalidValue", "value is required")),
    }
}

pub fn parse(text: &str) -> Result<Path, ApiError> {
    let invalid = || refused("invalidPath", "The path is not valid");
    let text = text.trim();
    if text.len() > 4096 {
        return Err(invalid());
    }
    let (head, rest) = match text.find('[') {
        Some(open) => {
            let close = text.rfind(']').filter(|close| *close > open).ok_or_else(invalid)?;
            (&text[..open], Some((&text[open + 1..close], &text[close + 1..])))
        }
        None => (text, None),
    };
    let (attribute, part) = split(head);
    if attribute.is_empty() {
        return Err(invalid());
    }
    match rest {
        None => Ok(Path { attribute, which: None, part }),
        Some((inside, after)) => {
            let part = match after {
                "" => part,
                after => Some(after.strip_prefix('.').filter(|part| !part.is_empty()).ok_or_else(invalid)?.to_owned()),
            };
            Ok(Path { attribute, which: Some(filter::parse(inside)?), part })
        }
    }
}

/// The core schema's name before an attribute says nothing; that of an extension is the attribute.
fn split(head: &str) -> (String, Option<String>) {
    const CORE: [&str; 2] =
        ["urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:core:2.0:Group"];
    let core = CORE.iter().find_map(|core| {
        let (start, rest) = head.split_at_checked(core.len())?;
        start.eq_ignore_ascii_case(core).then(|| rest.strip_prefix(':')).flatten()
    });
    let head = core.unwrap_or(head);
    if head.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("urn:")) {
        // `urn:…:2.0:User:manager.value`, of which the last colon stands before the attribute.
        return match head.rsplit_once(':') {
            Some((schema, part)) if schema.to_ascii_lowercase().ends_with(":user") => {
                (schema.to_owned(), Some(part.to_owned()))
            }
            _ => (head.to_owned(), None),
        };
    }
    match head.split_once('.') {
        Some((attribute, part)) => (attribute.to_owned(), Some(part.to_owned())),
        None => (head.to_owned(), None),
    }
}

/// The resource after the operations. `several` names the attributes that have several values.
pub fn apply(
    mut resource: Map<String, Value>,
    operations: Vec<PatchOperation>,
    several: &[&str],
) -> Result<Map<String, Value>, ApiError> {
    for operation in operations {
        match operation.path {
            Some(path) => change(&mut resource, operation.verb, &path, operation.value, several)?,
            None => {
                let Value::Object(values) = operation.value else { continue };
                for (name, value) in values {
                    // An extension's whole object is merged by its own name.
                    let path = match value.is_object() && name.starts_with("urn:") {
                        true => Path { attribute: name, which: None, part: None },
                        false => parse(&name)?,
                    };
                    change(&mut resource, operation.verb, &path, value, several)?;
                }
            }
        }
    }
    Ok(resource)
}

fn change(
    resource: &mut Map<String, Value>,
    verb: Verb,
    path: &Path,
    value: Value,
    several: &[&str],
) -> Result<(), ApiError> {
    let name = key(resource, &path.attribute, several);
    let is_several = several.contains(&name.as_str());
    match (&path.which, is_several) {
        (Some(_), false) => Err(refused("invalidPath", "This attribute has one value; its path takes no filter")),
        (Some(which), true) => {
            let values = resource.entry(name).or_insert_with(|| json!([]));
            among(values, which, path.part.as_deref(), verb, value)
        }
        (None, true) => {
            let values = resource.entry(name).or_insert_with(|| json!([]));
            values_of(values, path.part.as_deref(), verb, value);
            Ok(())
        }
        (None, false) => {
            single(resource, name, path.part.as_deref(), verb, value);
            Ok(())
        }
    }
}

/// The name as the resource or the schema spells it: names are compared without regard to case.
fn key(resource: &Map<String, Value>, name: &str, several: &[&str]) -> String {
    const SPELT: &[&str] = &["userName", "externalId", "displayName", "active", "name", "nickName"];
    let known = several.iter().chain(SPELT).find(|one| one.eq_ignore_ascii_case(name)).map(|one| (*one).to_owned());
    let stored = || resource.keys().find(|one| one.eq_ignore_ascii_case(name)).cloned();
    known.or_else(stored).unwrap_or_else(|| name.to_owned())
}

fn single(resource: &mut Map<String, Value>, name: String, part: Option<&str>, verb: Verb, value: Value) {
    match (part, verb) {
        (None, Verb::Remove) => {
            resource.shift_remove(&name);
        }
        (None, _) => match (resource.get_mut(&name), value) {
            // Parts that are not named stay.
            (Some(Value::Object(stored)), Value::Object(sent)) => stored.extend(sent),
            (_, Value::Null) => {
                resource.shift_remove(&name);
            }
            (_, value) => {
                resource.insert(name, value);
            }
        },
        (Some(part), verb) => {
            let stored = resource.entry(name).or_insert_with(|| json!({}));
            set_part(stored, part, verb, value);
        }
    }
}

fn set_part(stored: &mut Value, part: &str, verb: Verb, value: Value) {
    if !stored.is_object() {
        *stored = json!({});
    }
    let Value::Object(fields) = stored else { return };
    let name = fields.keys().find(|one| one.eq_ignore_ascii_case(part)).cloned().unwrap_or_else(|| part.to_owned());
    match verb {
        Verb::Remove => {
            fields.shift_remove(&name);
        }
        Verb::Add | Verb::Replace => {
            fields.insert(name, value);
        }
    }
}

/// All values of an attribute.
fn values_of(values: &mut Value, part: Option<&str>, verb: Verb, value: Value) {
    if !values.is_array() {
        *values = json!([]);
    }
    let Value::Array(items) = values else { return };
    match (part, verb) {
        (Some(part), verb) => {
            if items.is_empty() && verb != Verb::Remove {
                items.push(json!({}));
            }
            items.iter_mut().for_each(|item| set_part(item, part, verb, value.clone()));
            items.retain(|item| item.as_object().is_none_or(|fields| !fields.is_empty()));
        }
        // Some name what to remove by value instead of by filter.
        (None, Verb::Remove) if value.is_array() || value.is_object() => {
            let gone: Vec<Value> = listed(value).iter().map(|one| one["value"].clone()).collect();
            items.retain(|item| !gone.contains(&item["value"]));
        }
        (None, Verb::Remove) => items.clear(),
        (None, Verb::Replace) => *items = listed(value),
        (None, Verb::Add) => {
            for one in listed(value) {
                if one["primary"] == true {
                    items.iter_mut().for_each(|item| set_part(item, "primary", Verb::Replace, false.into()));
                }
                items.retain(|item| item["value"] != one["value"] || item["type"] != one["type"]);
                items.push(one);
            }
        }
    }
}

/// A single value may stand for a list of one, and a text for an object.
fn listed(value: Value) -> Vec<Value> {
    let full = |one: Value| if one.is_object() { one } else { json!({ "value": one }) };
    match value {
        Value::Array(items) => items.into_iter().map(full).collect(),
        Value::Null => Vec::new(),
        one => vec![full(one)],
    }
}

/// Those values of an attribute that a filter chooses.
fn among(values: &mut Value, which: &Filter, part: Option<&str>, verb: Verb, value: Value) -> Result<(), ApiError> {
    if !values.is_array() {
        *values = json!([]);
    }
    let Value::Array(items) = values else { return Ok(()) };
    match (part, verb) {
        (None, Verb::Remove) => items.retain(|item| !chooses(which, item)),
        (Some(part), Verb::Remove) => {
            items.iter_mut().filter(|item| chooses(which, item)).for_each(|item| {
                set_part(item, part, verb, Value::Null);
            });
        }
        (part, verb) => {
            // Identity providers set `emails[type eq "work"].value` whether there is one or not.
            if !items.iter().any(|item| chooses(which, item)) {
                items.push(made_by(which));
            }
            for item in items.iter_mut().filter(|item| chooses(which, item)) {
                match (part, &value) {
                    (Some(part), value) => set_part(item, part, verb, value.clone()),
                    (None, Value::Object(sent)) => {
                        if let Value::Object(fields) = item {
                            fields.extend(sent.clone());
                        }
                    }
                    (None, _) => return Err(refused("invalidValue", "The value must be an object")),
                }
            }
        }
    }
    Ok(())
}

/// A new value that the filter would choose.
fn made_by(which: &Filter) -> Value {
    match which {
        Filter::Compare { attribute, operator: Operator::Equal, value } => {
            let value = match (attribute.as_str(), value) {
                ("primary", literal) => literal.as_bool().map_or(Value::Null, Value::Bool),
                (_, Literal::Text(text)) => json!(text),
                (_, Literal::Bool(value)) => json!(value),
                (_, Literal::Number(number)) => json!(number),
                (_, Literal::Null) => Value::Null,
            };
            let mut made = Map::new();
            made.insert(attribute.clone(), value);
            Value::Object(made)
        }
        Filter::And(left, right) => match (made_by(left), made_by(right)) {
            (Value::Object(mut left), Value::Object(right)) => {
                left.extend(right);
                Value::Object(left)
            }
            (left, _) => left,
        },
        _ => json!({}),
    }
}

fn chooses(which: &Filter, item: &Value) -> bool {
    match which {
        Filter::And(left, right) => chooses(left, item) && chooses(right, item),
        Filter::Or(left, right) => chooses(left, item) || chooses(right, item),
        Filter::Not(inner) => !chooses(inner, item),
        Filter::Present(name) => !field(item, name).is_null(),
        Filter::Compare { attribute, operator, value } => {
            let stored = field(item, attribute);
            let is_equal = match (stored, value) {
                (Value::Bool(stored), value) => value.as_bool() == Some(*stored),
                (Value::String(stored), Literal::Text(text)) => stored.eq_ignore_ascii_case(text),
                (Value::Null, Literal::Null) => true,
                (Value::Null, value) => attribute.eq_ignore_ascii_case("primary") && value.as_bool() == Some(false),
                _ => false,
            };
            match (operator, stored, value) {
                (Operator::Equal, _, _) => is_equal,
                (Operator::NotEqual, _, _) => !is_equal,
                (Operator::Contains, Value::String(stored), Literal::Text(text)) => stored.contains(text.as_str()),
                (Operator::StartsWith, Value::String(stored), Literal::Text(text)) => stored.starts_with(text.as_str()),
                (Operator::EndsWith, Value::String(stored), Literal::Text(text)) => stored.ends_with(text.as_str()),
                _ => false,
            }
        }
    }
}

fn field<'v>(item: &'v Value, name: &str) -> &'v Value {
    const NOTHING: &Value = &Value::Null;
    let fields = item.as_object();
    let found = fields.and_then(|fields| fields.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)));
    found.map_or(NOTHING, |(_, value)| value)
}

#[cfg(test)]
mod tests;
