//! Members of a workspace and their roles. Owners and admins of the organisation act in every workspace without being
//! members; nobody gives or takes a role above their own.

pub mod docs;

use super::Workspace;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Routes, RowLock};
use crate::http::{ApiError, PageSizes, Time, json};
use crate::identity::access::{self, SecuritySettings, WorkspaceRole};
use crate::identity::{Call, tenancy};
use crate::resources::api_keys::authority::{self, KeyPower};
use crate::resources::api_keys::issue::{self, NewMemberKey};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::db::table::{Filter, OnDelete, SelectList, Table, Tenancy};
use shared::identity::scopes;
use shared::model::KeyKind;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub fn routes() -> Routes {
    ["/admin/workspaces", "/workspaces"].iter().fold(Routes::default(), |routes, base| {
        let (all, one) = (format!("{base}/{{workspaceId}}/users"), format!("{base}/{{workspaceId}}/users/{{userId}}"));
        let routes =
            routes.post(&all, invite).get(&all, list).get(&one, read_member).put(&one, update).delete(&one, remove);
        routes.describe(docs::docs(base))
    })
}

/// Somebody to add.
#[derive(Debug, Deserialize)]
pub struct NewMember {
    #[serde(alias = "user_id")]
    id: Uuid,
    role: Option<String>,
}

/// The value of `users`: objects, or ids alone.
pub fn sent(users: Value) -> Result<Vec<NewMember>, ApiError> {
    let Value::Array(items) = users else { return Err(ApiError::field("users", "must be an array")) };
    let full = |item: Value| if item.is_string() { json!({ "id": item }) } else { item };
    json::parse_at("users", items.into_iter().map(full).collect())
}

/// Adds members in the action's transaction. Answers with the keys that came with it, where the organisation gives
/// everybody one. Without `shows_keys`, and for those whose key the caller may not have, secrets are to be fetched by
/// rotating them.
pub async fn add(
    action: &Action<'_>,
    workspace: Uuid,
    members: Vec<NewMember>,
    shows_keys: bool,
) -> Result<Vec<Value>, ApiError> {
    const USER: &str = "SELECT FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active' FOR SHARE";
    const INSERT: &str = "INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role)
                          VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let organisation = action.organisation_id();
    let mut keys = Vec::new();
    for (n, member) in members.into_iter().enumerate() {
        let role =
            role_of(member.role.as_deref().unwrap_or("member")).map_err(|error| error.under(&format!("users[{n}]")))?;
        may_give(action.call, role)?;
        if action.tx.query_opt(USER, &[&member.id, &organisation]).await?.is_none() {
            return Err(ApiError::NotFound("user"));
        }
        let added = action.tx.execute(INSERT, &[&workspace, &member.id, &organisation, &role.as_str()]).await?;
        if added == 0 {
            return Err(ApiError::Conflict("This user is a member of the workspace already".into()));
        }
        let by = action.call.caller.actor_id();
        let is_shown = shows_keys && may_see_key(action, workspace, member.id).await?;
        let joiner = NewMemberKey { organisation, workspace, user: member.id, by, promise: None, is_shown };
        let made = issue::for_joiner(&action.tx, &action.app.api_key_prefix, joiner).await?;
        keys.extend(made.map(|made| issue::shown(workspace, member.id, &made, is_shown)));
    }
    Ok(keys)
}

/// Whether who adds a member may have the key that comes with joining.
async fn may_see_key(action: &Action<'_>, workspace: Uuid, user: Uuid) -> Result<bool, ApiError> {
    let (kind, scopes) = (KeyKind::WorkspaceUser, issue::usual_scopes());
    authority::may_hold(action, KeyPower { kind, scopes: &scopes, workspace: Some(workspace), owner: Some(user) }).await
}

/// Everybody in a workspace, for the workspace itself.
pub async fn load_members(db: &impl GenericClient, workspace: &Workspace) -> Result<Vec<Value>, ApiError> {
    const MAX_MEMBERS: i64 = 1000;
    let filter = Filter::default().equals("workspace_id", workspace.id);
    let found = TABLE.page(db, &filter, (MAX_MEMBERS, 0)).await?;
    let settings = workspace.effective_security();
    found.rows.iter().map(|row| Ok(shown(row, &settings)?)).collect()
}

/// A view of two tables, for reading alone.
const TABLE: Table = Table {
    name: "(SELECT m.user_id AS id, m.workspace_id, m.organisation_id, m.role, m.settings, m.created_at,
                   m.last_updated_at, u.first_name, u.last_name, u.email, u.role AS org_role
            FROM workspace_members m JOIN users u ON u.id = m.user_id AND u.status = 'active') AS members",
    columns: SelectList::Sql(
        "id, workspace_id, role, settings, created_at, last_updated_at, first_name, last_name, email, org_role",
    ),
    slug: None,
    tenancy: Tenancy::Workspace("workspace_id"),
    on_delete: OnDelete::Delete,
};

fn shown(row: &Row, settings: &SecuritySettings) -> Result<Value, tokio_postgres::Error> {
    let (id, org_role): (Uuid, &str) = (row.try_get("id")?, row.try_get("org_role")?);
    let role: &str = row.try_get("role")?;
    let counts = if matches!(org_role, "owner" | "admin") {
        WorkspaceRole::Admin
    } else {
        WorkspaceRole::parse(role).unwrap_or(WorkspaceRole::Member)
    };
    let granted =
        scopes::all_for(KeyKind::WorkspaceUser).into_iter().filter(|one| access::grants(counts, settings, one));
    Ok(json!({
        "object": "workspace-user",
        "id": id,
        "user_id": id,
        "first_name": row.try_get::<_, Option<&str>>("first_name")?,
        "last_name": row.try_get::<_, Option<&str>>("last_name")?,
        "email": row.try_get::<_, &str>("email")?,
        "org_role": org_role,
        "role": role,
        "status": "active",
        "workspace_id": row.try_get::<_, Uuid>("workspace_id")?,
        "scopes": granted.collect::<Vec<_>>(),
        "settings": row.try_get::<_, Option<Value>>("settings")?,
        "created_at": row.try_get::<_, Time>("created_at")?,
        "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
    }))
}

async fn invite(State(app): State<App>, call: Call, Path(workspace): Path<String>) -> Answer {
    let mut body = call.object()?;
    let members = match body.remove("users") {
        Some(users) => sent(users)?,
        None => vec![json::parse(Value::Object(body))?],
    };
    if members.is_empty() {
        return Err(ApiError::field("users", "must name at least one user"));
    }
    let ids: Vec<String> = members.iter().map(|member| member.id.to_string()).collect();
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let workspace = crud::held::<Workspace>(&mut action, &workspace, None).await?;
    let keys = add(&action, workspace.id, members, true).await?;
    let after = Some(json!({ "users": ids }));
    action.commit(Change { resource_id: ids.join(","), before: None, after }).await?;
    Ok(Json(if keys.is_empty() { json!({}) } else { json!({ "api_keys": keys }) }))
}

async fn list(State(app): State<App>, call: Call, Path(workspace): Path<String>) -> Answer {
    let page = call.query().page(PageSizes::USUAL)?;
    let db = app.db.get().await?;
    let workspace = crud::find::<Workspace>(&*db, &call, &workspace, None, RowLock::No).await?;
    let mut filter = Filter::default().equals("workspace_id", workspace.id);
    if let Some(role) = call.query().text("role") {
        filter = filter.equals("role", role_of(role)?.as_str());
    }
    if let Some(email) = call.query().text("email") {
        filter = filter.and("lower(email) = lower(?)", email.to_owned());
    }
    let found = TABLE.page(&*db, &filter, page).await?;
    let settings = workspace.effective_security();
    let data = found.rows.iter().map(|row| shown(row, &settings)).collect::<Result<Vec<_>, _>>()?;
    Ok(crud::listed(found.total, data))
}

async fn read_member(State(app): State<App>, call: Call, Path((workspace, user)): Path<(String, String)>) -> Answer {
    let db = app.db.get().await?;
    let workspace = crud::find::<Workspace>(&*db, &call, &workspace, None, RowLock::No).await?;
    let member = member(&*db, workspace.id, &user).await?;
    Ok(Json(shown(&member, &workspace.effective_security())?))
}

#[derive(Deserialize)]
struct MemberChange {
    role: String,
}

async fn update(State(app): State<App>, call: Call, Path((workspace, user)): Path<(String, String)>) -> Answer {
    const UPDATE: &str = "UPDATE workspace_members SET role = $3, last_updated_at = now()
                          WHERE workspace_id = $1 AND user_id = $2";
    let role = role_of(&call.body::<MemberChange>()?.role)?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let workspace = crud::held::<Workspace>(&mut action, &workspace, None).await?;
    let current = member(&action.tx, workspace.id, &user).await?;
    let (id, had): (Uuid, &str) = (current.try_get("id")?, current.try_get("role")?);
    may_give(&call, role)?;
    may_give(&call, role_of(had)?)?;
    action.tx.execute(UPDATE, &[&workspace.id, &id, &role.as_str()]).await?;
    let (before, after) = (Some(json!({ "role": had })), Some(json!({ "role": role.as_str() })));
    action.commit(Change { resource_id: id.to_string(), before, after }).await?;
    Ok(Json(json!({})))
}

/// Their keys of this workspace go with them.
async fn remove(State(app): State<App>, call: Call, Path((workspace, user)): Path<(String, String)>) -> Answer {
    const REMOVE: &str = "DELETE FROM workspace_members WHERE workspace_id = $1 AND user_id = $2";
    const KEYS: &str = "UPDATE api_keys SET status = 'archived', last_updated_at = now()
                        WHERE workspace_id = $1 AND user_id = $2 AND status <> 'archived'";
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let workspace = crud::held::<Workspace>(&mut action, &workspace, None).await?;
    refuse_implicit(&action, &user).await?;
    let current = member(&action.tx, workspace.id, &user).await?;
    let (id, role): (Uuid, &str) = (current.try_get("id")?, current.try_get("role")?);
    may_give(&call, role_of(role)?)?;
    action.tx.execute(REMOVE, &[&workspace.id, &id]).await?;
    action.tx.execute(KEYS, &[&workspace.id, &id]).await?;
    let before = Some(json!({ "role": role }));
    action.commit(Change { resource_id: id.to_string(), before, after: None }).await?;
    Ok(Json(json!({})))
}

/// Owners and admins are in every workspace; taking them out of one would change nothing.
async fn refuse_implicit(action: &Action<'_>, user: &str) -> Result<(), ApiError> {
    const ROLE: &str = "SELECT role FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active'";
    let row = action.tx.query_opt(ROLE, &[&tenancy::id(user), &action.organisation_id()]).await?;
    let role: Option<String> = row.map(|row| row.try_get("role")).transpose()?;
    match role.as_deref() {
        Some("owner" | "admin") => {
            Err(ApiError::invalid("Owners and admins of the organisation belong to every workspace"))
        }
        _ => Ok(()),
    }
}

async fn member(db: &impl GenericClient, workspace: Uuid, user: &str) -> Result<Row, ApiError> {
    let user = tenancy::id(user).ok_or(ApiError::NotFound("member"))?;
    let filter = Filter::default().equals("workspace_id", workspace).equals("id", user);
    TABLE.find(db, &filter).await?.pop().ok_or(ApiError::NotFound("member"))
}

fn role_of(text: &str) -> Result<WorkspaceRole, ApiError> {
    WorkspaceRole::parse(text).ok_or_else(|| ApiError::field("role", "must be admin, manager or member"))
}

/// Service keys act for the workspace itself and give any role.
fn may_give(call: &Call, role: WorkspaceRole) -> Result<(), ApiError> {
    let by = call.caller.standing.as_ref().map_or(Some(WorkspaceRole::Admin), |standing| standing.role);
    if by.is_some_and(|by| access::may_assign(by, role)) {
        return Ok(());
    }
    Err(ApiError::Forbidden("A role above one's own cannot be given or taken"))
}
