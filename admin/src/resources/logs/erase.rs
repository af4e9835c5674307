//! Erasing what the logs hold of one person or one trace, for who asks that their data be forgotten.

use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, etag, text};
use crate::identity::Call;
use crate::logs::erase::{self, ErasureMode, ErasureSubject};
use crate::openapi::{Doc, schema};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    user: Option<String>,
    #[serde(default, alias = "traceId", alias = "traceID")]
    trace_id: Option<String>,
    mode: String,
}

pub async fn erase(State(app): State<App>, call: Call) -> Answer {
    let request: Request = call.body()?;
    let mode = mode(&request.mode)?;
    let user = request.user.map(|user| text::sized("user", user, 0..=1024)).transpose()?;
    let trace = request.trace_id.map(|trace| text::sized("trace_id", trace, 0..=1024)).transpose()?;
    let subject = ErasureSubject::from_user_or_trace(user, trace)
        .ok_or_else(|| ApiError::invalid("Name either a user or a trace_id"))?;
    if call.origin.has_open_condition() {
        // Before anything is gone: only the record of it is one transaction.
        return Err(etag::not_here());
    }
    let erased = erase::erase(&app.db, &app.log_store, call.caller.organisation_id(), &subject, mode).await?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let after = Some(erased.shown());
    action.commit(Change { resource_id: subject.name().to_owned(), before: None, after }).await?;
    let mut answer = json!({ "status": "success", "object": "log-erasure" });
    if let (Value::Object(answer), Value::Object(counts)) = (&mut answer, erased.shown()) {
        answer.extend(counts);
    }
    Ok(Json(answer))
}

fn mode(sent: &str) -> Result<ErasureMode, ApiError> {
    match sent {
        "delete" => Ok(ErasureMode::Delete),
        "anonymise" => Ok(ErasureMode::Anonymise),
        _ => Err(ApiError::field("mode", "must be delete or anonymise")),
    }
}

pub fn docs() -> Doc {
    let body = schema::object("LogErasure")
        .may("user", schema::text(0..=1024).eg("ada").or_null().says("As the metadata `_user` names them."))
        .may("trace_id", schema::text(0..=1024).eg(Value::Null).or_null())
        .need("mode", schema::choice(&["delete", "anonymise"]));
    let count = || schema::whole(0..=i64::MAX);
    let answer = schema::object("LogsErased")
        .need("status", schema::fixed("success"))
        .need("object", schema::fixed("log-erasure"))
        .need("logs", count())
        .need("bodies", count())
        .need("feedback", count())
        .need("exports", count().says("Those that may hold what was erased: their files are gone."));
    Doc::post("/logs/erase", "Erase what the logs hold of a person or a trace")
        .details(
            "Name either `user` or `trace_id`. `delete` leaves nothing; `anonymise` keeps rows for counting, without \
             bodies, metadata, and names of traces and spans. Calls from before that proxies have yet to store are erased \
             when they arrive, within minutes and for 30 days. Kept answers to a person's requests are \
             purged. Exports of those workspaces that were started since lose \
             their files and have to be started again; what was downloaded before is not reached.",
        )
        .body(body)
        .answer(answer)
}
