//! List, create, read, update and delete, written once. A resource states its facts (`Resource`); tenancy, the
//! transaction, the audit record and the shape of answers are here, so that no resource can forget them. Scope, kind
//! of key, role and feature were checked by the gate; the change notice is sent by the table's triggers.

mod action;
pub mod cache_purges;
mod docs;
pub mod free_slug;
pub mod metadata_schema;
mod plain;
mod resource;
mod routes;
pub mod tags;
pub mod tenant_settings;
pub mod unchanged;
pub mod versions;

pub use action::{Action, Change};
pub use plain::{PlainResource, needed};
pub use resource::{Resource, Verb, shown};
pub use routes::Routes;

use crate::app::App;
use crate::http::{ApiError, InUseBy, etag, json};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};
use shared::db::table::{Filter, OnDelete, Tenancy};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub type Answer = Result<Json<Value>, ApiError>;

/// The five operations at the resource's path.
pub fn routes<R: Resource>() -> Routes {
    routes_at::<R>(R::PATH)
}

/// The same at another path.
pub fn routes_at<R: Resource>(path: &str) -> Routes {
    let item = format!("{path}/{{id}}");
    Routes::default()
        .get(path, list::<R>)
        .post(path, create::<R>)
        .get(&item, read::<R>)
        .put(&item, update::<R>)
        .delete(&item, delete::<R>)
}

pub async fn list<R: Resource>(State(app): State<App>, call: Call) -> Answer {
    let page = call.query().page(R::PAGES)?;
    let filter = R::filter(&call)?;
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let filter = live::<R>(tenancy::visible(&R::TABLE, &call.caller, workspace).join(filter));
    let found = R::TABLE.page(&*db, &filter, page).await?;
    let data = found.rows.iter().map(|row| Ok(R::from_row(row)?.shown(&call))).collect::<Result<Vec<_>, ApiError>>()?;
    Ok(Json(json!({ "object": "list", "total": found.total, "data": data })))
}

pub async fn read<R: Resource>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let found = find::<R>(&*db, &call, &name, workspace, RowLock::No).await?;
    found.may_read(&call)?;
    Ok(Json(found.shown(&call)))
}

pub async fn create<R: Resource>(State(app): State<App>, call: Call) -> Answer {
    let body = call.object()?;
    let asked = R::asked_workspace(&body)?;
    let new: R::Create = json::parse(Value::Object(body))?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    action.workspace_id = match R::TABLE.tenancy {
        Tenancy::Workspace("workspace_id") => Some(workspace_of_new(&action, asked.as_deref()).await?),
        // The resource says which.
        Tenancy::OneOrSeveral => None,
        Tenancy::Workspace(_) | Tenancy::Either | Tenancy::Organisation => {
            tenancy::asked(&action.tx, &call.caller, asked.as_deref()).await?
        }
    };
    if let Some(workspace) = action.workspace_id {
        tenancy::hold(&action.tx, workspace).await?;
    }
    let columns = R::create(&action, new).await?.set("organisation_id", action.organisation_id());
    let columns = match (R::TABLE.tenancy, action.workspace_id) {
        (Tenancy::Workspace("workspace_id") | Tenancy::Either, id) => columns.set("workspace_id", id),
        (Tenancy::Workspace(_) | Tenancy::OneOrSeveral | Tenancy::Organisation, _) => columns,
    };
    let row = R::TABLE.insert(&action.tx, &columns).await.map_err(refused::<R>)?;
    let made = R::from_row(&row)?;
    call.origin.tag(tag_of(&row)?);
    action.workspace_id = made.workspace_id();
    made.after(Verb::Create, &action).await?;
    let reply = made.created(&call);
    let change = Change { resource_id: made.id().to_string(), before: None, after: Some(made.recorded(&call)) };
    action.commit(change).await?;
    Ok(Json(reply))
}

/// The workspace that something is made in: where nobody names one, as clients of one workspace do not, the default one of
/// the organisation, and the answer says so.
pub async fn workspace_of_new(action: &Action<'_>, asked: Option<&str>) -> Result<Uuid, ApiError> {
    const UNNAMED: &str = "workspace_id: none was named, so this is made in the organisation's default workspace";
    if let Some(named) = tenancy::asked(&action.tx, &action.call.caller, asked).await? {
        return Ok(named);
    }
    action.call.origin.warn(UNNAMED.to_owned());
    tenancy::default_workspace(&action.tx, action.organisation_id()).await
}

/// Sets what was sent and nothing else, on a row that nobody else can change meanwhile.
pub async fn update<R: Resource>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let body = call.object()?;
    let asked = text_of(&body, "workspace_id")?;
    let change: R::Update = json::parse(Value::Object(body))?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    R::before_update(&action, &change).await?;
    let current = held::<R>(&mut action, &name, asked.as_deref()).await?;
    let columns = R::update(&action, &current, change).await?;
    if columns.is_empty() {
        return Err(ApiError::invalid("Nothing to update"));
    }
    let row = R::TABLE.update(&action.tx, current.id(), &columns).await.map_err(refused::<R>)?;
    let row = row.ok_or(ApiError::NotFound(R::OBJECT))?;
    let changed = R::from_row(&row)?;
    call.origin.tag(tag_of(&row)?);
    changed.after(Verb::Update, &action).await?;
    let reply = changed.updated(&call);
    let (before, after) = (Some(current.recorded(&call)), Some(changed.recorded(&call)));
    action.commit(Change { resource_id: current.id().to_string(), before, after }).await?;
    Ok(Json(reply))
}

pub async fn delete<R: Resource>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = held::<R>(&mut action, &name, None).await?;
    let users = current.used_by(&action).await?;
    let after = may_go(&call, R::OBJECT, users)?;
    R::TABLE.remove(&action.tx, current.id()).await.map_err(still_used::<R>)?;
    current.after(Verb::Delete, &action).await?;
    let change = Change { resource_id: current.id().to_string(), before: Some(current.recorded(&call)), after };
    action.commit(change).await?;
    Ok(Json(json!({})))
}

/// Whether something that others use may be deleted: when that is forced, and for clients of other products, which know
/// no such refusal. Who was left without it stands in the audit trail, and in a warning.
fn may_go(call: &Call, object: &'static str, by: Vec<InUseBy>) -> Result<Option<Value>, ApiError> {
    let is_forced = call.query().flag("force")?;
    if by.is_empty() {
        return Ok(None);
    }
    if !is_forced && !call.origin.is_lenient {
        return Err(ApiError::InUse { object, by });
    }
    let names: Vec<String> = by.iter().take(5).map(|one| format!("{} {}", one.object, one.name)).collect();
    call.origin.warn(format!("this {object} was in use by {} others: {}", by.len(), names.join(", ")));
    Ok(Some(json!({ "is_forced": is_forced, "in_use_by": by })))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLock {
    No,
    /// Until the transaction ends.
    ForUpdate,
}

/// The one row that a path names among those the caller may see.
pub async fn find<R: Resource>(
    db: &impl GenericClient,
    call: &Call,
    name: &str,
    workspace: Option<Uuid>,
    lock: RowLock,
) -> Result<R, ApiError> {
    let row = find_row::<R>(db, call, name, workspace, lock).await?;
    if call.origin.operation.reads_object() {
        call.origin.tag(tag_of(&row)?);
    }
    Ok(R::from_row(&row)?)
}

async fn find_row<R: Resource>(
    db: &impl GenericClient,
    call: &Call,
    name: &str,
    workspace: Option<Uuid>,
    lock: RowLock,
) -> Result<Row, ApiError> {
    let further = R::named(call, name)?;
    let named = tenancy::named(&R::TABLE, name).ok_or(ApiError::NotFound(R::OBJECT))?.join(further);
    let filter = live::<R>(tenancy::visible(&R::TABLE, &call.caller, workspace).join(named));
    let rows = match lock {
        RowLock::No => R::TABLE.find(db, &filter).await?,
        RowLock::ForUpdate => R::TABLE.lock(db, &filter).await?,
    };
    let mut rows = rows.into_iter();
    match (rows.next(), rows.next()) {
        (None, _) => Err(ApiError::NotFound(R::OBJECT)),
        (Some(row), None) => Ok(row),
        _ => Err(ApiError::field("workspace_id", "is required: several workspaces have an object of this name")),
    }
}

/// The `ETag` of the object of a row.
pub fn tag_of(row: &Row) -> Result<String, ApiError> {
    Ok(etag::tag(row.try_get("id")?, row.try_get("last_updated_at")?))
}

/// The row to be changed, locked, if the caller may change it. The workspace may be named in the body or the query.
pub async fn held<R: Resource>(action: &mut Action<'_>, name: &str, asked: Option<&str>) -> Result<R, ApiError> {
    let call = action.call;
    let asked = asked.or_else(|| call.query().text("workspace_id"));
    let workspace = tenancy::asked(&action.tx, &call.caller, asked).await?;
    let stored = find_row::<R>(&action.tx, call, name, workspace, RowLock::ForUpdate).await?;
    let row = R::from_row(&stored)?;
    row.may_change(call)?;
    let is_shared = R::TABLE.tenancy == Tenancy::Either && row.workspace_id().is_none();
    if is_shared && call.caller.workspace_id().is_some() {
        return Err(ApiError::Forbidden("This belongs to the organisation; only its admin keys may change it"));
    }
    action.workspace_id = row.workspace_id();
    // What changes something below the object does not change its tag: such a condition would hold for ever.
    if call.origin.operation.changes_object() {
        unchanged::require(action, row.id(), stored.try_get("last_updated_at")?).await?;
    }
    Ok(row)
}

/// Archived rows are gone, unless a filter asks for them by status.
fn live<R: Resource>(filter: Filter) -> Filter {
    let hides = R::TABLE.on_delete == OnDelete::Archive && !filter.mentions("status");
    if hides { filter.holds("status <> 'archived'") } else { filter }
}

/// A text field of a raw body; absent and null are the same.
pub fn text_of(body: &serde_json::Map<String, Value>, field: &str) -> Result<Option<String>, ApiError> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::field(field, "must be a string")),
    }
}

/// What a failed write says about a resource.
pub fn refused<R: Resource>(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => {
            ApiError::Conflict(format!("There is a {} with this {} already", R::OBJECT, R::UNIQUE))
        }
        other => other,
    }
}

/// On a delete a foreign key means the reverse: something still points here.
fn still_used<R: Resource>(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::NotFound(_) => ApiError::Conflict(format!("This {} is still in use", R::OBJECT)),
        other => other,
    }
}

/// For lists that are not a `Resource`.
pub fn listed(total: i64, data: Vec<Value>) -> Json<Value> {
    Json(json!({ "object": "list", "total": total, "data": data }))
}

/// The id of a row, for statements that return nothing else.
pub fn id_of(row: &Row) -> Result<Uuid, ApiError> {
    Ok(row.try_get("id")?)
}
