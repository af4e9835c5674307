//! Which group stands for which workspace, by rule: operations of administrators, with API keys. A group may be mapped
//! before the identity provider has told of it.

use super::automatic::GroupSettings;
use super::groups::insert;
use super::membership::reconcile;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, FieldFault, Query, text};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

#[derive(Deserialize)]
struct NewMapping {
    workspace_id: String,
    role: String,
    scim_group_id: Option<String>,
    scim_group_name: Option<String>,
}

/// Of a person in a workspace.
const ROLES: &[&str] = &["admin", "manager", "member"];

const SELECT: &str = "SELECT m.id, m.workspace_id, g.display_name, m.group_id, m.role FROM scim_workspace_mappings m
    JOIN scim_groups g ON g.id = m.group_id WHERE m.organisation_id = $1 AND m.status = 'active'";

fn shown(row: &Row) -> Result<Value, ApiError> {
    Ok(json!({
        "id": row.try_get::<_, Uuid>("id")?,
        "workspace_id": row.try_get::<_, Uuid>("workspace_id")?,
        "scim_group": row.try_get::<_, String>("display_name")?,
        "scim_group_id": row.try_get::<_, Uuid>("group_id")?,
        "role": row.try_get::<_, String>("role")?,
    }))
}

/// Pages from 0, of 100.
fn page(query: &Query) -> Result<(i64, i64), ApiError> {
    const MAX_PAGE: i64 = 100;
    let number = |name: &str| match query.text(name) {
        None => Ok(0),
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(text.parse::<i64>().unwrap_or(i64::MAX)),
        Some(_) => Err(ApiError::field(name, "must be a whole number of at least 0")),
    };
    let size = match number("page_size")? {
        0 => MAX_PAGE,
        size => size.min(MAX_PAGE),
    };
    Ok((size, number("page")?.saturating_mul(size)))
}

/// In capitals or not, as identity providers write it.
fn checked_role(sent: &str) -> Result<String, ApiError> {
    let role = sent.to_ascii_lowercase();
    match ROLES.contains(&role.as_str()) {
        true => Ok(role),
        false => Err(ApiError::Faults(vec![FieldFault::not_among("role", sent, ROLES)])),
    }
}

pub async fn list(State(app): State<App>, call: Call) -> Answer {
    const MATCHING: &str = "($2::uuid IS NULL OR m.workspace_id = $2) AND ($3::text IS NULL OR m.group_id::text = $3)
        AND ($4::text IS NULL OR m.role = $4)";
    let query = call.query();
    let (size, offset) = page(query)?;
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, query.text("workspace_id")).await?;
    let organisation = call.caller.organisation_id();
    let role = query.text("role").map(checked_role).transpose()?;
    let group = query.text("scim_group_id");
    let values: [&(dyn ToSql + Sync); 4] = [&organisation, &workspace, &group, &role];
    let total =
        db.query_one(&format!("SELECT count(*) FROM ({SELECT} AND {MATCHING}) AS all_of_them"), &values).await?;
    let sql = format!("{SELECT} AND {MATCHING} ORDER BY m.created_at DESC, m.id LIMIT {size} OFFSET {offset}");
    let rows = db.query(&sql, &values).await?;
    let mappings = rows.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Ok(Json(json!({ "mappings": mappings, "total_count": total.try_get::<_, i64>(0)? })))
}

pub async fn create(State(app): State<App>, call: Call) -> Answer {
    const EXISTING: &str = "SELECT m.id, m.role FROM scim_workspace_mappings m
        WHERE m.organisation_id = $1 AND m.group_id = $2 AND m.workspace_id = $3 AND m.status = 'active'";
    const INSERT: &str = "INSERT INTO scim_workspace_mappings (organisation_id, group_id, workspace_id, role)
        VALUES ($1, $2, $3, $4) RETURNING id";
    const MEMBERS: &str = "SELECT user_id FROM scim_group_members WHERE organisation_id = $1 AND group_id = $2";
    let body: NewMapping = call.body()?;
    let role = checked_role(&body.role)?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let organisation = action.organisation_id();
    let workspace = tenancy::asked(&action.tx, &call.caller, Some(&body.workspace_id)).await?;
    let workspace = workspace.ok_or_else(|| ApiError::no_such("workspace_id", "workspace"))?;
    let group = group_of(&action, body.scim_group_id, body.scim_group_name).await?;
    if let Some(row) = action.tx.query_opt(EXISTING, &[&organisation, &group, &workspace]).await? {
        if row.try_get::<_, String>("role")? != role {
            return Err(ApiError::field("role", "is another than the one that this group has in the workspace"));
        }
        let one = one(&action, crud::id_of(&row)?).await?;
        action
            .commit(Change { resource_id: text_of(&one), before: Some(one.clone()), after: Some(one.clone()) })
            .await?;
        return Ok(Json(one));
    }
    let row = action.tx.query_one(INSERT, &[&organisation, &group, &workspace, &role]).await?;
    let made = one(&action, crud::id_of(&row)?).await?;
    let people = action.tx.query(MEMBERS, &[&organisation, &group]).await?;
    let people = people.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Uuid>, _>>()?;
    reconcile(&action, &people).await?;
    action.commit(Change { resource_id: text_of(&made), before: None, after: Some(made.clone()) }).await?;
    Ok(Json(made))
}

fn text_of(mapping: &Value) -> String {
    mapping["id"].as_str().unwrap_or_default().to_owned()
}

async fn one(action: &Action<'_>, id: Uuid) -> Result<Value, ApiError> {
    let row = action.tx.query_one(&format!("{SELECT} AND m.id = $2"), &[&action.organisation_id(), &id]).await?;
    shown(&row)
}

/// By id, or by a name that is not one of those which map themselves.
async fn group_of(action: &Action<'_>, id: Option<String>, name: Option<String>) -> Result<Uuid, ApiError> {
    const BY_ID: &str = "SELECT id FROM scim_groups WHERE organisation_id = $1 AND id = $2";
    const BY_NAME: &str = "SELECT id FROM scim_groups WHERE organisation_id = $1 AND lower(display_name) = lower($2)";
    let organisation = action.organisation_id();
    match (id, name) {
        (Some(id), None) => {
            let found = action.tx.query_opt(BY_ID, &[&organisation, &tenancy::id(&id)]).await?;
            crud::id_of(&found.ok_or_else(|| ApiError::no_such("scim_group_id", "group"))?)
        }
        (None, Some(name)) => {
            let name = text::sized("scim_group_name", name, 1..=512)?;
            if GroupSettings::load(action).await?.meant(&name).is_some() {
                return Err(ApiError::field("scim_group_name", "is one that maps itself by its pattern"));
            }
            match action.tx.query_opt(BY_NAME, &[&organisation, &name]).await? {
                Some(row) => crud::id_of(&row),
                None => insert(action, &name, None).await,
            }
        }
        _ => Err(ApiError::field("scim_group_id", "or scim_group_name is required, and not both")),
    }
}

/// The mapping alone: who is a member stays, and counts as added by hand.
pub async fn remove(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    const ARCHIVE: &str = "UPDATE scim_workspace_mappings SET status = 'archived', last_updated_at = now()
        WHERE id = $1 AND organisation_id = $2";
    const STAY: &str = "UPDATE workspace_members w SET is_from_scim = false
        WHERE w.organisation_id = $1 AND w.workspace_id = $2 AND w.is_from_scim AND NOT EXISTS (
            SELECT FROM scim_group_members g JOIN scim_workspace_mappings m ON m.group_id = g.group_id
            WHERE g.user_id = w.user_id AND m.workspace_id = w.workspace_id AND m.status = 'active')";
    let missing = || ApiError::NotFound("mapping");
    let id = tenancy::id(&id).ok_or_else(missing)?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let organisation = action.organisation_id();
    let sql = format!("{SELECT} AND m.id = $2 FOR UPDATE OF m");
    let row = action.tx.query_opt(&sql, &[&organisation, &id]).await?.ok_or_else(missing)?;
    let (before, workspace): (Value, Uuid) = (shown(&row)?, row.try_get("workspace_id")?);
    action.tx.execute(ARCHIVE, &[&id, &organisation]).await?;
    action.tx.execute(STAY, &[&organisation, &workspace]).await?;
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: None }).await?;
    Ok(Json(json!({ "success": true })))
}

/// `GET /scim/groups`: what there is to map.
pub async fn groups(State(app): State<App>, call: Call) -> Answer {
    const MATCHING: &str = "FROM scim_groups g WHERE g.organisation_id = $1
        AND ($2::text IS NULL OR strpos(lower(g.display_name), lower($2)) > 0)";
    let (size, offset) = page(call.query())?;
    let organisation = call.caller.organisation_id();
    let search = call.query().text("search");
    let db = app.db.get().await?;
    let total = db.query_one(&format!("SELECT count(*) {MATCHING}"), &[&organisation, &search]).await?;
    let sql = format!(
        "SELECT g.id, g.display_name, (SELECT count(*) FROM scim_group_members m WHERE m.group_id = g.id) AS members
         {MATCHING} ORDER BY g.display_name, g.id LIMIT {size} OFFSET {offset}"
    );
    let mut groups = Vec::new();
    for row in db.query(&sql, &[&organisation, &search]).await? {
        let (id, name, members): (Uuid, String, i64) =
            (row.try_get("id")?, row.try_get("display_name")?, row.try_get("members")?);
        groups.push(json!({ "id": id, "name": name, "members_count": members }));
    }
    Ok(Json(json!({ "groups": groups, "total_count": total.try_get::<_, i64>(0)? })))
}
