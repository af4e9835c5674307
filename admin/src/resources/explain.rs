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
use crate::logs::LogView;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;

/// The longest id of a trace that a request can have.
const LONGEST: usize = 1024;

pub fn routes() -> Routes {
    Routes::default().post("/explain", explain).describe([docs::docs()])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    request_id: String,
}

async fn explain(State(app): State<App>, call: Call) -> Answer {
    if !call.object()?.contains_key("request_id") {
        const ELSEWHERE: &str = "Send `request_id`; what would become of a request is told by the proxy, on this path";
        return Err(ApiError::invalid(ELSEWHERE));
    }
    let Question { request_id } = call.body()?;
    let asked = text::sized("request_id", request_id, 1..=LONGEST)?;
    let view = LogView::whole(&call.caller)?;
    let db = app.db.get().await?;
    let request = request::find(&*db, &view, &asked).await?;
    let version = request::version(&*db, &request, &app.config_limits).await?;
    drop(db);
    Ok(Json(explanation::explanation(&request, version.as_ref())))
}
