//! Logs of calls: listing them, and reading one with its bodies, both as far as `log_data::LogView` lets the caller see; reporting
//! calls that did not pass through the gateway; and erasing.

mod create;
mod docs;
mod erase;
mod tail;

use crate::app::App;
use crate::crud::{Answer, Routes};
use crate::http::{ApiError, PageSizes, Time};
use crate::identity::{Call, tenancy};
use crate::log_data::{FoundLog, LogData as _, LogSearch, LogView, PostgresLogs, filters, page, row};
use crate::logs::logged_body;
use axum::Json;
use axum::extract::{Path, State};
use chrono::Utc;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .get("/logs", list)
        .post("/logs", create::create)
        .get(tail::PATH, tail::tail)
        .get("/logs/{logId}", read_log)
        .post("/logs/erase", erase::erase)
        .describe(docs::docs())
        .describe([tail::docs(), create::docs(), erase::docs()])
}

async fn list(State(app): State<App>, call: Call) -> Answer {
    let query = call.query();
    let page = page::asked(query, PageSizes::USUAL)?;
    let beginning = filters::default_beginning(query, Utc::now())?;
    let _turn = app.log_queries.enter(call.caller.organisation_id()).await?;
    let db = app.db.get().await?;
    let view = LogView::asked(&*db, &call.caller, query.text("workspace_slug")).await?;
    let which = LogSearch { view: &view, query, since: beginning };
    let found = PostgresLogs(&*db).page(&which, &page).await?;
    let next = found.next(&page);
    let rows: Vec<Value> = found.rows.into_iter().map(|log| log.metrics).collect();
    Ok(Json(json!({
        "object": "list",
        "total": found.total,
        "total_is_capped": found.is_capped,
        "data": rows,
        "next": next,
        "workspaces": view.shown_workspaces(&*db).await?,
        "default_time_of_generation_min": beginning.map(Time),
    })))
}

async fn read_log(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    const NONE: ApiError = ApiError::NotFound("log");
    let view = LogView::whole(&call.caller)?;
    let id = tenancy::id(&id).ok_or(NONE)?;
    let db = app.db.get().await?;
    let found = PostgresLogs(&*db).log(&view, id).await?.ok_or(NONE)?;
    let feedbacks = feedbacks(&*db, &found, &view).await?;
    drop(db);
    let mut log = shown(&found.metrics, feedbacks);
    if let Some(path) = &found.body_key {
        for (name, part) in logged_body::load(&app, path).await {
            add_part(&mut log[name], part);
        }
    }
    Ok(Json(log))
}

/// The published shape.
fn shown(metrics: &Value, feedbacks: Vec<Value>) -> Value {
    json!({
        "_id": metrics["id"],
        "id": metrics["id"],
        "object": "log",
        "organisation_id": metrics["organisation_id"],
        "created_at": metrics["created_at"],
        "log_format": metrics["log_store_file_path_format"],
        "request": { "url": metrics["request_url"], "method": metrics["request_method"] },
        "response": {
            "status": metrics["response_status_code"],
            "responseTime": metrics["response_time"],
            "lastUsedOptionJsonPath": metrics["last_used_option_index"],
        },
        "metrics": metrics,
        "feedbacks": feedbacks,
    })
}

/// What the row says of a part stays; the rest comes from the log store.
fn add_part(shown: &mut Value, part: Value) {
    match (shown, part) {
        (Value::Object(shown), Value::Object(part)) => {
            for (name, value) in part {
                shown.entry(name).or_insert(value);
            }
        }
        (shown, part) => *shown = part,
    }
}

/// What people thought of the trace that a log is part of, newest first.
async fn feedbacks(db: &impl GenericClient, log: &FoundLog, view: &LogView) -> Result<Vec<Value>, ApiError> {
    const FIND: &str = "SELECT id, value, weight, metadata, created_at, last_updated_at FROM feedback
        WHERE organisation_id = $1 AND workspace_id = $2 AND trace_id = $3 ORDER BY created_at DESC, id DESC LIMIT 100";
    let rows = db.query(FIND, &[&view.organisation_id, &log.workspace_id, &log.trace_id]).await?;
    let shown = |row: &Row| -> Result<Value, tokio_postgres::Error> {
        let metadata: Value = if view.shows_metadata { row.try_get("metadata")? } else { json!({}) };
        Ok(json!({
            "id": row.try_get::<_, Uuid>("id")?,
            "value": row.try_get::<_, i32>("value")?,
            "weight": row::number(row.try_get::<_, Decimal>("weight")?),
            "metadata": metadata,
            "created_at": row.try_get::<_, Time>("created_at")?,
            "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
        }))
    };
    Ok(rows.iter().map(shown).collect::<Result<_, _>>()?)
}
