//! What is to become of a group, read from a whole group or from the operations of a PATCH. Pure.

use super::super::filter::{Filter, Literal, Operator};
use super::super::patch::{PatchOperation, Verb};
use crate::http::{ApiError, text};
use crate::identity::tenancy;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use uuid::Uuid;

const MAX_MEMBERS: usize = 50_000;

/// What is to become of a group.
#[derive(Debug, Default)]
pub struct GroupChange {
    pub name: Option<String>,
    pub external_id: Option<Option<String>>,
    pub members: Vec<MemberChange>,
}

#[derive(Debug, PartialEq)]
pub enum MemberChange {
    Add(Vec<Uuid>),
    Remove(Vec<Uuid>),
    Set(Vec<Uuid>),
}

impl GroupChange {
    /// Of a whole group.
    pub fn whole(sent: &Map<String, Value>) -> Result<Self, ApiError> {
        let mut change = Self::default();
        for (name, value) in sent {
            change.set(Verb::Replace, name, value)?;
        }
        if change.name.is_none() {
            return Err(ApiError::field("displayName", "is required"));
        }
        Ok(change)
    }

    pub fn parts(operations: Vec<PatchOperation>) -> Result<Self, ApiError> {
        let mut change = Self::default();
        for PatchOperation { verb, path, value } in operations {
            match path {
                Some(path) if path.which.is_some() => {
                    let is_members = path.attribute.eq_ignore_ascii_case("members");
                    let ids = path.which.as_ref().and_then(named);
                    match (is_members, verb, ids) {
                        (true, Verb::Remove, Some(ids)) => change.members.push(MemberChange::Remove(ids)),
                        (true, _, Some(ids)) => change.members.push(MemberChange::Add(ids)),
                        _ => return Err(invalid_path()),
                    }
                }
                Some(path) => change.set(verb, &path.attribute, &value)?,
                None => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        change.set(verb, name, value)?;
                    }
                }
            }
        }
        Ok(change)
    }

    fn set(&mut self, verb: Verb, name: &str, value: &Value) -> Result<(), ApiError> {
        match (name.to_ascii_lowercase().as_str(), verb) {
            ("displayname", Verb::Remove) => return Err(ApiError::field("displayName", "is required")),
            ("displayname", _) => {
                let name = value.as_str().ok_or_else(|| ApiError::field("displayName", "must be a text"))?;
                self.name = Some(text::sized("displayName", name.to_owned(), 1..=512)?);
            }
            ("externalid", Verb::Remove) => self.external_id = Some(None),
            ("externalid", _) => {
                let id = value
                    .as_str()
                    .filter(|id| !id.is_empty())
                    .map(|id| text::sized("externalId", id.to_owned(), 1..=255));
                self.external_id = Some(id.transpose()?);
            }
            ("members", Verb::Remove) if value.is_null() => self.members.push(MemberChange::Set(Vec::new())),
            ("members", Verb::Remove) => self.members.push(MemberChange::Remove(ids(value)?)),
            ("members", Verb::Add) => self.members.push(MemberChange::Add(ids(value)?)),
            ("members", Verb::Replace) => self.members.push(MemberChange::Set(ids(value)?)),
            _ => {}
        }
        Ok(())
    }
}

fn invalid_path() -> ApiError {
    ApiError::Scim {
        status: StatusCode::BAD_REQUEST,
        kind: "invalidPath",
        detail: "Only members[value eq \"…\"] can be chosen by a filter".into(),
    }
}

/// The ids in `members[value eq "a" or value eq "b"]`.
fn named(which: &Filter) -> Option<Vec<Uuid>> {
    match which {
        Filter::Compare { attribute, operator: Operator::Equal, value: Literal::Text(id) }
            if attribute.eq_ignore_ascii_case("value") =>
        {
            // What is no id is nobody.
            Some(tenancy::id(id).into_iter().collect())
        }
        Filter::Or(left, right) => {
            let mut all = named(left)?;
            all.extend(named(right)?);
            Some(all)
        }
        _ => None,
    }
}

fn ids(value: &Value) -> Result<Vec<Uuid>, ApiError> {
    let one = std::slice::from_ref(value);
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        _ => one,
    };
    if items.len() > MAX_MEMBERS {
        return Err(ApiError::field("members", "has too many values"));
    }
    let id = |item: &Value| item["value"].as_str().or(item.as_str()).and_then(tenancy::id);
    items
        .iter()
        .map(|item| id(item).ok_or_else(|| ApiError::field("members", "must name users by their ids")))
        .collect()
}

/// What was asked of the members, for the audit trail.
pub fn spoken(members: &[MemberChange]) -> Value {
    let one = |change: &MemberChange| match change {
        MemberChange::Add(ids) => json!({ "added": ids }),
        MemberChange::Remove(ids) => json!({ "removed": ids }),
        MemberChange::Set(ids) => json!({ "set": ids }),
    };
    members.iter().map(one).collect()
}
