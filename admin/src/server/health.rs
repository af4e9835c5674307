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

/// The process can do its work: Postgres answers.
pub async fn ready(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    const LONGEST: Duration = Duration::from_secs(2);
    match tokio::time::timeout(LONGEST, async { Ok(app.db.get().await?.simple_query("").await?) }).await {
        Ok(Ok(_)) => Ok(Json(json!({ "status": "ready" }))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ApiError::Unavailable),
    }
}

pub async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    let text = app.metrics.text(app.db.state()).map_err(anyhow::Error::from)?;
    Ok(([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text))
}
