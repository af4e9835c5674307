//! `POST /explain` for a request of the past: what it tried, in which order and why, and what came of it, from its logs and
//! the version of the config it followed. What would become of a request is answered by the proxy, which passes only questions
//! with a `request_id` on to here.

mod docs;
mod explanation;
mod request;

use crate::app::App;
use crate::crud::{Answer, Routes};
use crate::http::{ApiError, text};
use crate::identity::Call;
use crate::log_data::LogView;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;

/// The longest id of a trace that a request can have.
const MAX_TRACE_ID: usize = 1024;

pub fn routes() -> Routes {
    Routes::default().post("/explain", explain).describe([docs::docs()])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    request_id: Option<String>,
    /// Of a trace that has one request.
    trace_id: Option<String>,
}

async fn explain(State(app): State<App>, call: Call) -> Answer {
    const ELSEWHERE: &str =
        "Send `request_id` or `trace_id`; what would become of a request is told by the proxy, on this path";
    let fields = call.object()?;
    if !fields.contains_key("request_id") && !fields.contains_key("trace_id") {
        return Err(ApiError::invalid(ELSEWHERE));
    }
    let asked = match call.body()? {
        Question { request_id: Some(id), trace_id: None } => text::sized("request_id", id, 1..=MAX_TRACE_ID)?,
        Question { request_id: None, trace_id: Some(id) } => text::sized("trace_id", id, 1..=MAX_TRACE_ID)?,
        _ => return Err(ApiError::invalid("Send either `request_id` or `trace_id`")),
    };
    let view = LogView::whole(&call.caller)?;
    let db = app.db.get().await?;
    let request = request::find(&db, &view, &asked).await?;
    let version = request::version(&*db, &request, &app.config_limits).await?;
    drop(db);
    Ok(Json(explanation::explanation(&request, version.as_ref())))
}
