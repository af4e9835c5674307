//! Versions of a resource's content: each change adds one. A version never changes, so its id always finds the same
//! content; a rollback adds a new version with the old content.

pub mod diff;

use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource, RowLock, Verb};
use crate::http::{ApiError, PageSizes, Time};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::db::table::{Columns, row};
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// A resource that is kept in versions. Its own row holds the current content and the id of its version; its `after`
/// calls `keep`, which notes a version that is not noted yet.
pub trait Versioned: Resource {
    /// Table of the versions: `id, organisation_id, <OWNER>, number, content, created_by, created_at`.
    const VERSIONS: &'static str;
    /// The column that names the resource's row.
    const OWNER: &'static str;
    /// Of the list of versions, each of which has its content.
    const VERSION_PAGES: PageSizes = Self::PAGES;
    /// More versions of one resource are refused.
    const MAX_VERSIONS: i32 = i32::MAX;

    fn version_id(&self) -> Uuid;
    fn content(&self) -> &Value;
    /// Content as it may be shown.
    fn shown_content(content: Value) -> Value {
        content
    }
    /// The resource as it was in this version.
    fn shown_version(&self, call: &Call, version: &Version) -> Value;
    /// What makes this content the current one, under a new version. The rules may have changed since it was written.
    fn restored(action: &Action<'_>, content: Value) -> impl Future<Output = Result<Columns, ApiError>> + Send;
}

#[derive(Deserialize)]
pub struct Version {
    pub id: Uuid,
    pub number: i32,
    pub content: Value,
    /// The person or key that made it.
    pub created_by: Option<Uuid>,
    pub created_at: Time,
}

const COLUMNS: &str = "id, number, content, created_by, created_at";

/// Notes the resource's current version, unless it is known. The row is new or locked, so numbers do not collide.
pub async fn keep<R: Versioned>(resource: &R, action: &Action<'_>) -> Result<(), ApiError> {
    let sql = format!(
        "INSERT INTO {table} (id, organisation_id, {owner}, number, content, created_by)
         SELECT $1, $2, $3, 1 + coalesce(max(number), 0), $4, $5 FROM {table} WHERE {owner} = $3
         ON CONFLICT (id) DO NOTHING RETURNING number",
        table = R::VERSIONS,
        owner = R::OWNER,
    );
    let by = action.call.caller.actor_id();
    let organisation = action.organisation_id();
    let (version, id) = (resource.version_id(), resource.id());
    let noted = action.tx.query_opt(&sql, &[&version, &organisation, &id, resource.content(), &by]).await?;
    let number: Option<i32> = noted.map(|row| row.try_get("number")).transpose()?;
    within(number, R::MAX_VERSIONS)
}

/// A number that is refused is not kept: the transaction ends with the refusal.
fn within(number: Option<i32>, most: i32) -> Result<(), ApiError> {
    match number {
        Some(number) if number > most => Err(ApiError::Conflict(format!("There may be at most {most} versions"))),
        _ => Ok(()),
    }
}

/// A version of this resource and no other's.
pub async fn find<R: Versioned>(db: &impl GenericClient, resource: &R, name: &str) -> Result<Version, ApiError> {
    const NO_SUCH: ApiError = ApiError::NotFound("version");
    let (id, number) = (tenancy::id(name), name.parse::<i32>().ok());
    let sql = format!("SELECT {COLUMNS} FROM {} WHERE (id = $1 OR number = $2) AND {} = $3", R::VERSIONS, R::OWNER);
    match db.query_opt(&sql, &[&id, &number, &resource.id()]).await? {
        Some(row) => Ok(row::read(&row)?),
        None => Err(NO_SUCH),
    }
}

/// Newest first.
pub async fn list<R: Versioned>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let (size, offset) = call.query().page(R::VERSION_PAGES)?;
    let db = app.db.get().await?;
    let resource = seen::<R>(&*db, &call, &name).await?;
    let (table, owner, id) = (R::VERSIONS, R::OWNER, resource.id());
    let total: i64 =
        db.query_one(&format!("SELECT count(*) FROM {table} WHERE {owner} = $1"), &[&id]).await?.try_get(0)?;
    let sql = format!("SELECT {COLUMNS} FROM {table} WHERE {owner} = $1 ORDER BY number DESC LIMIT $2 OFFSET $3");
    let rows = db.query(&sql, &[&id, &size, &offset]).await?;
    let data: Result<Vec<_>, ApiError> =
        rows.iter().map(|row| Ok(resource.shown_version(&call, &row::read::<Version>(row)?))).collect();
    Ok(Json(json!({ "success": true, "object": "list", "total": total, "data": data? })))
}

/// What changed from one version to another; to the current one unless said otherwise.
pub async fn differences<R: Versioned>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let query = call.query();
    let db = app.db.get().await?;
    let resource = seen::<R>(&*db, &call, &name).await?;
    let from =
        query.text("from").ok_or_else(|| ApiError::field("from", "is required: the id or the number of a version"))?;
    let from = find(&*db, &resource, from).await?;
    let current = resource.version_id().to_string();
    let to = find(&*db, &resource, query.text("to").unwrap_or(&current)).await?;
    let data = diff::diff(&R::shown_content(from.content), &R::shown_content(to.content));
    Ok(Json(json!({
        "success": true, "object": "list", "total": data.len(), "data": data, "from": from.id, "to": to.id,
    })))
}

#[derive(Deserialize)]
struct Rollback {
    version_id: String,
}

/// Makes the content of an older version the current one again.
pub async fn rollback<R: Versioned>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let asked: Rollback = call.body()?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<R>(&mut action, &name, None).await?;
    let version = find(&action.tx, &current, &asked.version_id).await?;
    let columns = R::restored(&action, version.content).await?;
    let row = R::TABLE.update(&action.tx, current.id(), &columns).await?;
    let row = row.ok_or(ApiError::NotFound(R::OBJECT))?;
    let changed = R::from_row(&row)?;
    call.origin.tag(crud::tag_of(&row)?);
    changed.after(Verb::Update, &action).await?;
    let reply = changed.updated(&call);
    let (before, after) = (Some(current.shown(&call)), Some(changed.shown(&call)));
    action.commit(Change { resource_id: current.id().to_string(), before, after }).await?;
    Ok(Json(reply))
}

async fn seen<R: Versioned>(db: &impl GenericClient, call: &Call, name: &str) -> Result<R, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    let found = crud::find::<R>(db, call, name, workspace, RowLock::No).await?;
    found.may_read(call)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_too_many_is_refused_with_the_limit() {
        assert!(within(None, 200).is_ok() && within(Some(200), 200).is_ok());
        assert_eq!(within(Some(201), 200).unwrap_err().to_string(), "There may be at most 200 versions");
    }
}
