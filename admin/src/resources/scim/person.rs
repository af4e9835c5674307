//! A person between the protocol's JSON and our row. Our columns are what counts; everything else that was sent is kept
//! and shown as it came, within bounds, and never a password.

use super::answer::version;
use crate::http::{ApiError, Time, text};
use serde_json::{Map, Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

pub const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
/// Attributes of a person that have several values.
pub const SEVERAL: &[&str] =
    &["emails", "roles", "groups", "phoneNumbers", "ims", "photos", "addresses", "entitlements", "x509Certificates"];
const MAX_ATTRIBUTES: usize = 32 << 10;

pub const COLUMNS: &str = "u.id, u.email, u.scim_user_name, u.first_name, u.last_name, u.role,
    u.status = 'active' AS is_active, u.scim_external_id, u.scim_attributes, u.created_at, u.last_updated_at,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('value', g.id, 'display', g.display_name)
            ORDER BY g.display_name), '[]')
     FROM scim_group_members m JOIN scim_groups g ON g.id = m.group_id WHERE m.user_id = u.id) AS groups";

pub struct Person {
    pub id: Uuid,
    pub email: String,
    pub user_name: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub role: String,
    pub is_active: bool,
    pub external_id: Option<String>,
    pub attributes: Value,
    pub created_at: Time,
    pub last_updated_at: Time,
    pub groups: Value,
}

impl Person {
    pub fn from_row(row: &Row) -> Result<Self, ApiError> {
        Ok(Self {
            id: row.try_get("id")?,
            email: row.try_get("email")?,
            user_name: row.try_get("scim_user_name")?,
            first_name: row.try_get("first_name")?,
            last_name: row.try_get("last_name")?,
            role: row.try_get("role")?,
            is_active: row.try_get("is_active")?,
            external_id: row.try_get("scim_external_id")?,
            attributes: row.try_get("scim_attributes")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            groups: row.try_get("groups")?,
        })
    }

    pub fn version(&self) -> String {
        version(self.last_updated_at.0)
    }

    pub fn shown(&self, base: &str) -> Value {
        let mut shown = self.attributes.as_object().cloned().unwrap_or_default();
        let mut schemas = vec![json!(USER)];
        schemas.extend(shown.keys().filter(|name| name.starts_with("urn:")).map(|name| json!(name)));
        shown.insert("schemas".into(), schemas.into());
        shown.insert("id".into(), json!(self.id));
        shown.insert("userName".into(), json!(self.user_name.as_ref().unwrap_or(&self.email)));
        shown.insert("active".into(), json!(self.is_active));
        put(&mut shown, "externalId", self.external_id.as_ref().map(|id| json!(id)));
        let mut name = shown.get("name").and_then(Value::as_object).cloned().unwrap_or_default();
        put(&mut name, "givenName", self.first_name.as_ref().map(|name| json!(name)));
        put(&mut name, "familyName", self.last_name.as_ref().map(|name| json!(name)));
        put(&mut shown, "name", (!name.is_empty()).then(|| Value::Object(name)));
        if shown.get("emails").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            shown.insert("emails".into(), json!([{ "value": self.email, "type": "work", "primary": true }]));
        }
        let sent = shown.get("roles").and_then(Value::as_array).cloned();
        let is_same_role = sent.as_ref().is_some_and(|sent| role_in(sent).is_none_or(|role| role == self.role));
        if !is_same_role {
            let role = (self.role != "member").then(|| json!([{ "value": self.role, "primary": true }]));
            put(&mut shown, "roles", role);
        }
        let group = |one: &Value| {
            let id = one["value"].as_str().unwrap_or_default();
            json!({ "value": id, "display": one["display"], "type": "direct", "$ref": format!("{base}/Groups/{id}") })
        };
        let groups: Vec<Value> = self.groups.as_array().into_iter().flatten().map(group).collect();
        put(&mut shown, "groups", (!groups.is_empty()).then(|| groups.into()));
        shown.insert(
            "meta".into(),
            json!({
                "resourceType": "User",
                "created": self.created_at,
                "lastModified": self.last_updated_at,
                "location": format!("{base}/Users/{}", self.id),
                "version": self.version(),
            }),
        );
        Value::Object(shown)
    }
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields.insert(name.to_owned(), value);
        }
        None => {
            fields.shift_remove(name);
        }
    }
}

/// A person as the identity provider wants them.
#[derive(Debug)]
pub struct Wanted {
    pub user_name: String,
    /// None when nothing that was sent is an address.
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub external_id: Option<String>,
    /// None when it was not sent.
    pub is_active: Option<bool>,
    /// None when no role of ours was sent.
    pub role: Option<&'static str>,
    /// None when none was sent.
    pub groups: Option<Vec<Value>>,
    pub attributes: Value,
}

impl Wanted {
    pub fn parse(mut sent: Map<String, Value>) -> Result<Self, ApiError> {
        for name in ["userName", "externalId", "active", "emails", "name", "roles", "groups"] {
            spell(&mut sent, name);
        }
        let user_name = match sent.shift_remove("userName") {
            Some(Value::String(name)) if !name.trim().is_empty() => text::sized("userName", name, 1..=320)?,
            _ => return Err(ApiError::field("userName", "is required")),
        };
        let external_id = match sent.shift_remove("externalId") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) if id.is_empty() => None,
            Some(Value::String(id)) => Some(text::sized("externalId", id, 1..=255)?),
            Some(_) => return Err(ApiError::field("externalId", "must be a text")),
        };
        let is_active = match sent.shift_remove("active") {
            None | Some(Value::Null) => None,
            Some(value) => Some(truth(&value).ok_or_else(|| ApiError::field("active", "must be true or false"))?),
        };
        let groups = match sent.shift_remove("groups") {
            Some(Value::Array(groups)) => Some(groups),
            _ => None,
        };
        for name in ["id", "meta", "schemas", "password"] {
            let spelt: Vec<String> = sent.keys().filter(|one| one.eq_ignore_ascii_case(name)).cloned().collect();
            spelt.iter().for_each(|one| {
                sent.shift_remove(one);
            });
        }
        for name in ["emails", "roles"] {
            listed(&mut sent, name)?;
        }
        let part = |name: &'static str| match &sent.get("name").unwrap_or(&Value::Null)[name] {
            Value::String(part) if !part.is_empty() => text::sized(name, part.clone(), 0..=255).map(Some),
            Value::Null | Value::String(_) => Ok(None),
            _ => Err(ApiError::field(format!("name.{name}"), "must be a text")),
        };
        let (first_name, last_name) = (part("givenName")?, part("familyName")?);
        let email = text::email("userName", &user_name).ok().or_else(|| address(sent.get("emails")));
        let role = sent.get("roles").and_then(Value::as_array).and_then(|roles| match roles.is_empty() {
            true => Some("member"),
            false => role_in(roles),
        });
        let attributes = Value::Object(sent);
        if attributes.to_string().len() > MAX_ATTRIBUTES {
            return Err(ApiError::invalid(format!(
                "A person's attributes must not be longer than {MAX_ATTRIBUTES} bytes"
            )));
        }
        Ok(Self { user_name, email, first_name, last_name, external_id, is_active, role, groups, attributes })
    }
}

/// Gives an attribute the spelling of the schema.
fn spell(sent: &mut Map<String, Value>, name: &str) {
    let other = sent.keys().find(|one| one.eq_ignore_ascii_case(name) && *one != name).cloned();
    if let Some(value) = other.and_then(|other| sent.shift_remove(&other)) {
        sent.insert(name.to_owned(), value);
    }
}

fn listed(sent: &mut Map<String, Value>, name: &str) -> Result<(), ApiError> {
    match sent.get_mut(name) {
        None => Ok(()),
        Some(Value::Null) => {
            sent.shift_remove(name);
            Ok(())
        }
        Some(Value::Array(items)) => {
            for item in items.iter_mut() {
                if !item.is_object() {
                    *item = json!({ "value": item });
                }
                if let Some(primary) = truth(&item["primary"]) {
                    item["primary"] = primary.into();
                }
            }
            Ok(())
        }
        Some(_) => Err(ApiError::field(name, "must be a list")),
    }
}

/// True or false, also as the texts that one identity provider sends.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn address(emails: Option<&Value>) -> Option<String> {
    let all = emails?.as_array()?;
    let primary = all.iter().find(|one| one["primary"] == true).or_else(|| all.first())?;
    text::email("emails", primary["value"].as_str()?).ok()
}

/// The highest role of ours among those sent. One identity provider sends a role as JSON inside a text.
fn role_in(roles: &[Value]) -> Option<&'static str> {
    let name = |one: &Value| {
        let text = one["value"].as_str().or(one.as_str()).unwrap_or_default();
        let inside =
            serde_json::from_str::<Value>(text).ok().and_then(|inside| inside["value"].as_str().map(str::to_owned));
        inside.unwrap_or_else(|| text.to_owned()).to_ascii_lowercase()
    };
    let names: Vec<String> = roles.iter().take(100).map(name).collect();
    let has = |role: &str| names.iter().any(|one| one == role);
    if has("admin") {
        Some("admin")
    } else if has("member") {
        Some("member")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(sent: Value) -> Result<Wanted, String> {
        Wanted::parse(sent.as_object().unwrap().clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn roles_and_truth_are_read_in_every_spelling() {
        for (roles, role) in [
            (json!([{ "value": "Admin" }]), Some("admin")),
            (json!(["MEMBER"]), Some("member")),
            (json!([{ "value": "{\"id\":\"1\",\"value\":\"admin\"}" }]), Some("admin")),
            (json!([{ "value": "other" }]), None),
            (json!([]), Some("member")),
        ] {
            let sent = json!({ "userName": "a@x.test", "active": "False", "roles": roles });
            let wanted = wanted(sent).unwrap();
            assert_eq!((wanted.role, wanted.is_active), (role, Some(false)), "{roles}");
        }
    }

    #[test]
    fn a_password_is_never_kept_and_the_address_is_found() {
        let sent =
            json!({ "userName": "ada", "Password": "s3cret", "emails": [{ "value": "a@x.test", "primary": "True" }] });
        let wanted = wanted(sent).unwrap();
        assert_eq!(wanted.email.as_deref(), Some("a@x.test"));
        assert!(!wanted.attributes.to_string().contains("s3cret"));
        assert!(Wanted::parse(Map::new()).is_err());
    }
}
