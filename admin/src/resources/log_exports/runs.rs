//! Starting an export, or starting it again from its beginning, and cancelling it.

use super::{ExportStatus, LogExport, checked_fields};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource};
use crate::http::ApiError;
use crate::identity::Call;
use crate::logs::exports::files;
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use serde_json::json;
use shared::db::table::Columns;
use uuid::Uuid;

pub async fn start(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<LogExport>(&mut action, &name, None).await?;
    current.must_be(ExportStatus::AT_REST, "started")?;
    let view = current.view(&call.caller)?;
    // What may be exported may have changed since it was drafted.
    checked_fields(&action, &view, &current.requested_data).await?;
    forget_files(&action, &current).await?;
    let now: DateTime<Utc> = action.tx.query_one("SELECT clock_timestamp()", &[]).await?.try_get(0)?;
    let columns = Columns::default()
        .set("own_data_of", view.user_id)
        .set("shows_metadata", view.shows_metadata)
        .set("run", current.run + 1)
        .set("started_at", now)
        .set("next_step_at", now)
        .set("exported_records", 0_i64)
        .set("parts", 0_i32)
        .set("last_created_at", None::<DateTime<Utc>>)
        .set("last_id", None::<Uuid>)
        .set("failures", 0_i16)
        .set("error", None::<String>);
    turned(action, current, ExportStatus::InProgress, columns, "The export was started").await
}

pub async fn cancel(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<LogExport>(&mut action, &name, None).await?;
    current.must_be(&[ExportStatus::InProgress], "cancelled")?;
    forget_files(&action, &current).await?;
    turned(action, current, ExportStatus::Stopped, Columns::default(), "The export was cancelled").await
}

/// What a run made that did not end well is of no use.
async fn forget_files(action: &Action<'_>, export: &LogExport) -> Result<(), ApiError> {
    const PARTS: &str = "DELETE FROM log_export_parts WHERE export_id = $1";
    const NOTE: &str = "INSERT INTO object_deletions (folder) VALUES ($1) ON CONFLICT DO NOTHING";
    if action.tx.execute(PARTS, &[&export.id]).await? > 0 {
        let folder = files::run_folder(export.organisation_id, export.id, export.run);
        action.tx.execute(NOTE, &[&folder]).await?;
    }
    Ok(())
}

async fn turned(
    action: Action<'_>,
    current: LogExport,
    status: ExportStatus,
    columns: Columns,
    message: &str,
) -> Answer {
    let row = LogExport::TABLE.update(&action.tx, current.id, &columns.set("status", status.as_str())).await?;
    let changed = LogExport::from_row(&row.ok_or(ApiError::NotFound(LogExport::OBJECT))?)?;
    let (before, after) = (Some(current.shown(action.call)), Some(changed.shown(action.call)));
    action.commit(Change { resource_id: current.id.to_string(), before, after }).await?;
    Ok(Json(json!({ "message": message, "object": LogExport::OBJECT })))
}
