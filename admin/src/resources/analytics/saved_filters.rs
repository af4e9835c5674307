//! Filters that people keep, to look at analytics with again. A workspace's key sees those of its workspace, an admin key all
//! of the organisation.

use crate::app::App;
use crate::crud::{Action, Answer, Change, Routes};
use crate::http::{ApiError, Field, Query, Time, text};
use crate::identity::{Call, Caller, tenancy};
use crate::log_data::filters;
use crate::openapi::{Doc, schema};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::Filter;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

const PATH: &str = "/analytics/saved-filters";
const COLUMNS: &str = "id, name, filters, workspace_id, created_by, created_at, last_updated_at";
const ONE: &str = "/analytics/saved-filters/{id}";
const OBJECT: &str = "saved-filter";

/// Of one organisation.
const MAX_FILTERS: i64 = 1000;
/// Bytes of filters, written as JSON.
const MAX_FILTER_BYTES: usize = 16 << 10;
const MAX_NAME: usize = 255;

pub fn routes() -> Routes {
    Routes::default().post(PATH, create).get(PATH, list).put(ONE, update).delete(ONE, remove).describe(docs())
}

#[derive(Deserialize)]
struct NewFilter {
    name: String,
    filters: Map<String, Value>,
    #[serde(default)]
    workspace_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FilterChange {
    name: Field<String>,
    filters: Field<Map<String, Value>>,
}

async fn create(State(app): State<App>, call: Call) -> Answer {
    const ADD: &str = "INSERT INTO saved_filters (organisation_id, workspace_id, name, filters, created_by)
        SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM saved_filters WHERE organisation_id = $1) < $6
        RETURNING id, name, filters, workspace_id, created_by, created_at, last_updated_at";
    let sent: NewFilter = call.body()?;
    let name = text::sized("name", sent.name, 1..=MAX_NAME)?;
    let filters = checked(sent.filters)?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let organisation = call.caller.organisation_id();
    let workspace = tenancy::asked(&action.tx, &call.caller, sent.workspace_id.as_deref()).await?;
    action.workspace_id = workspace;
    let by = call.caller.actor_id().to_string();
    let added = action.tx.query_opt(ADD, &[&organisation, &workspace, &name, &filters, &by, &MAX_FILTERS]).await?;
    let added = added.ok_or_else(|| ApiError::Conflict(format!("There are {MAX_FILTERS} saved filters already")))?;
    let (id, after) = (added.try_get::<_, Uuid>("id")?, Some(shown(&added)?));
    action.commit(Change { resource_id: id.to_string(), before: None, after }).await?;
    Ok(Json(json!({ "id": id, "object": OBJECT })))
}

async fn list(State(app): State<App>, call: Call) -> Answer {
    let filter = visible(&call.caller);
    let sql = format!(
        "SELECT {COLUMNS} FROM saved_filters
         WHERE {} ORDER BY created_at DESC, id LIMIT {MAX_FILTERS}",
        filter.sql()
    );
    let rows = app.db.get().await?.query(&sql, &filter.values()).await?;
    let data = rows.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Ok(Json(json!({ "object": "list", "total": data.len(), "data": data })))
}

async fn update(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    const CHANGE: &str = "UPDATE saved_filters SET name = coalesce($2, name), filters = coalesce($3, filters),
        last_updated_at = now() WHERE organisation_id = $4 AND id = $1
        RETURNING id, name, filters, workspace_id, created_by, created_at, last_updated_at";
    let sent: FilterChange = call.body()?;
    let name = sent.name.try_map(|name| text::sized("name", name, 1..=MAX_NAME))?;
    let filters = sent.filters.try_map(checked)?;
    let (name, filters) = (name.value(), filters.value());
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let (id, before) = held(&mut action, &id).await?;
    let after = shown(&action.tx.query_one(CHANGE, &[&id, &name, &filters, &action.organisation_id()]).await?)?;
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: Some(after) }).await?;
    Ok(Json(json!({})))
}

async fn remove(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    const REMOVE: &str = "DELETE FROM saved_filters WHERE organisation_id = $2 AND id = $1";
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let (id, before) = held(&mut action, &id).await?;
    action.tx.execute(REMOVE, &[&id, &action.organisation_id()]).await?;
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: None }).await?;
    Ok(Json(json!({})))
}

/// One that the caller may change, as it is now; nobody else changes it until the action is over.
async fn held(action: &mut Action<'_>, id: &str) -> Result<(Uuid, Value), ApiError> {
    let filter = visible(&action.call.caller).equals("id", known(id)?);
    let find = format!("SELECT {COLUMNS} FROM saved_filters WHERE {} FOR UPDATE", filter.sql());
    let row = action.tx.query_opt(&find, &filter.values()).await?.ok_or(NONE)?;
    action.workspace_id = row.try_get("workspace_id")?;
    Ok((row.try_get("id")?, shown(&row)?))
}

const NONE: ApiError = ApiError::NotFound("saved filter");

fn known(id: &str) -> Result<Uuid, ApiError> {
    tenancy::id(id).ok_or(NONE)
}

/// Those that the caller may use and change.
fn visible(caller: &Caller) -> Filter {
    let filter = Filter::default().equals("organisation_id", caller.organisation_id());
    match (caller.workspace_id(), caller.own_workspace_ids()) {
        (Some(workspace), _) => filter.equals("workspace_id", workspace),
        (None, Some(own)) => filter.one_of("workspace_id", own),
        (None, None) => filter,
    }
}

/// The query that a saved filter stands for.
pub async fn query(db: &impl GenericClient, caller: &Caller, id: Uuid) -> Result<Query, ApiError> {
    let filter = visible(caller).equals("id", id);
    let find = format!("SELECT filters FROM saved_filters WHERE {}", filter.sql());
    let row = db.query_opt(&find, &filter.values()).await?;
    let row = row.ok_or_else(|| ApiError::no_such("saved_filter_id", "saved filter"))?;
    match row.try_get("filters")? {
        Value::Object(filters) => filters::of_json(&filters),
        _ => Ok(Query::default()),
    }
}

/// Names and values that analytics read; kept as they were sent.
fn checked(filters: Map<String, Value>) -> Result<Value, ApiError> {
    let names: Vec<String> = filters::names();
    if let Some(unknown) = filters.keys().find(|name| !names.iter().any(|known| known == *name)) {
        let shown: String = unknown.chars().take(100).collect();
        return Err(ApiError::field(format!("filters.{shown}"), "is no filter of analytics"));
    }
    let query = filters::of_json(&filters).map_err(|error| error.under("filters"))?;
    filters::conditions(&query).map_err(|error| error.under("filters"))?;
    let stored = Value::Object(filters);
    if stored.to_string().len() > MAX_FILTER_BYTES {
        return Err(ApiError::field("filters", format!("must be at most {MAX_FILTER_BYTES} bytes")));
    }
    Ok(stored)
}

fn shown(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "id": row.try_get::<_, Uuid>("id")?,
        "object": OBJECT,
        "name": row.try_get::<_, &str>("name")?,
        "filters": row.try_get::<_, Value>("filters")?,
        "workspace_id": row.try_get::<_, Option<Uuid>>("workspace_id")?,
        "created_by": row.try_get::<_, &str>("created_by")?,
        "created_at": row.try_get::<_, Time>("created_at")?,
        "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
    }))
}

fn docs() -> [Doc; 4] {
    let filters = || {
        schema::any_object()
            .eg(json!({ "ai_org_model": "openai__gpt-4o", "status_code": [429, 500], "workspace_slug": "ws-market-3f9a01" }))
            .says("Names and values as in the query of a graph; lists may be arrays, workspaces slugs or ids.")
    };
    let name = || schema::text(1..=MAX_NAME).eg("Failed calls");
    let sent = schema::object("NewSavedFilter")
        .need("name", name())
        .need("filters", filters())
        .may("workspace_id", schema::text(0..=255).eg(Value::Null).or_null().says("Slug or id; for admin keys."));
    let change = schema::object("SavedFilterChange").may("name", name().or_null()).may("filters", filters().or_null());
    let made = schema::shown("SavedFilterMade", OBJECT);
    let saved = schema::shown("SavedFilter", OBJECT)
        .need("name", name())
        .need("filters", filters())
        .need("workspace_id", schema::uuid().or_null())
        .need("created_by", schema::any_text())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    let list = schema::object("SavedFilterList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=MAX_FILTERS).eg(1))
        .need("data", schema::list(saved));
    [
        Doc::post(PATH, "Keep filters of analytics").body(sent).answer(made).also(409),
        Doc::get(PATH, "List the filters that were kept").answer(list),
        Doc::put(ONE, "Change filters that were kept").body(change),
        Doc::remove(ONE, "Forget filters that were kept"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filters_that_analytics_know_are_kept() {
        let stored = |filters: Value| checked(filters.as_object().unwrap().clone());
        for good in [
            json!({}),
            json!({ "status_code": [429, 500], "metadata": { "_user": "ada" } }),
            json!({ "time_of_generation_min": "2026-01-15T10:30:00Z", "workspace_slug": "a,b" }),
        ] {
            assert_eq!(stored(good.clone()).unwrap(), good);
        }
        for (bad, field) in [
            (json!({ "statuscode": 429 }), "filters.statuscode"),
            (json!({ "status_code": "x" }), "filters.status_code"),
            (json!({ "cost_min": -1 }), "filters.cost_min"),
            (json!({ "metadata": "{" }), "filters.metadata"),
        ] {
            let error = stored(bad).unwrap_err();
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }
}
