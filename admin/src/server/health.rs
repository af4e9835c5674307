//! For those who watch the process: alive, ready, metrics. No credentials; nothing here tells about tenants.

use crate::app::App;
use crate::http::ApiError;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::time::Duration;

/// The process runs.
pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// The process can do its work: Postgres answers. Background tasks that do not do theirs are named.
pub async fn ready(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    const MAX_WAIT: Duration = Duration::from_secs(2);
    match tokio::time::timeout(MAX_WAIT, async { Ok(app.db.get().await?.simple_query("").await?) }).await {
        // Another admin does the work of a dead task, or this one does after its restart: no reason to refuse requests.
        Ok(Ok(_)) => Ok(Json(match app.supervisor.problems().lines {
            lines if lines.is_empty() => json!({ "status": "ready" }),
            lines => json!({ "status": "ready", "tasks": lines }),
        })),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ApiError::Unavailable),
    }
}

pub async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    app.metrics.measure_tasks(&app.supervisor.reports());
    let text = app.metrics.text(app.db.state()).map_err(anyhow::Error::from)?;
    Ok(([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text))
}
