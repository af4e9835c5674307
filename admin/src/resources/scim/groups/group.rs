//! One group between its row and the protocol's JSON: how it is found, shown and made.

use super::super::answer;
use crate::crud::{self, Action};
use crate::http::{ApiError, Time};
use crate::identity::tenancy;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

pub struct Group {
    pub id: Uuid,
    pub name: String,
    pub external_id: Option<String>,
    created_at: Time,
    last_updated_at: Time,
    /// None when they were not asked for.
    members: Option<Value>,
}

/// With the members, unless nobody wants them.
pub fn columns(with_members: bool) -> String {
    let members = match with_members {
        true => {
            "(SELECT coalesce(jsonb_agg(m.user_id ORDER BY m.user_id), '[]')
              FROM scim_group_members m WHERE m.group_id = g.id)"
        }
        false => "NULL::jsonb",
    };
    format!("g.id, g.display_name, g.external_id, g.created_at, g.last_updated_at, {members} AS members")
}

impl Group {
    pub fn from_row(row: &Row) -> Result<Self, ApiError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("display_name")?,
            external_id: row.try_get("external_id")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            members: row.try_get("members")?,
        })
    }

    pub fn version(&self) -> String {
        answer::version(self.last_updated_at.0)
    }

    pub fn shown(&self, base: &str) -> Value {
        let mut shown = json!({
            "schemas": [GROUP],
            "id": self.id,
            "displayName": self.name,
            "meta": {
                "resourceType": "Group",
                "created": self.created_at,
                "lastModified": self.last_updated_at,
                "location": format!("{base}/Groups/{}", self.id),
                "version": self.version(),
            },
        });
        if let Some(id) = &self.external_id {
            shown["externalId"] = json!(id);
        }
        if let Some(Value::Array(members)) = &self.members {
            let member = |one: &Value| {
                let id = one.as_str().unwrap_or_default();
                json!({ "value": id, "type": "User", "$ref": format!("{base}/Users/{id}") })
            };
            shown["members"] = members.iter().map(member).collect();
        }
        shown
    }
}

pub async fn found(
    db: &impl GenericClient,
    organisation: Uuid,
    id: &str,
    with_members: bool,
    lock: &str,
) -> Result<Group, ApiError> {
    let missing = || ApiError::NotFound("group");
    let id = tenancy::id(id).ok_or_else(missing)?;
    let sql = format!(
        "SELECT {} FROM scim_groups g WHERE g.organisation_id = $1 AND g.id = $2 {lock}",
        columns(with_members)
    );
    Group::from_row(&db.query_opt(&sql, &[&organisation, &id]).await?.ok_or_else(missing)?)
}

pub async fn insert(action: &Action<'_>, name: &str, external_id: Option<String>) -> Result<Uuid, ApiError> {
    const INSERT: &str =
        "INSERT INTO scim_groups (organisation_id, display_name, external_id) VALUES ($1, $2, $3) RETURNING id";
    let organisation = action.organisation_id();
    let values: [&(dyn ToSql + Sync); 3] = [&organisation, &name, &external_id];
    crud::id_of(&action.tx.query_one(INSERT, &values).await.map_err(taken)?)
}

pub fn taken(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => ApiError::Scim {
            status: StatusCode::CONFLICT,
            kind: "uniqueness",
            detail: "There is a group with this displayName already".into(),
        },
        other => other,
    }
}
