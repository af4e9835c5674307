//! Logs that applications report themselves, as they are received and answered.

use crate::app::App;
use crate::crud::{Answer, tenant_settings};
use crate::http::ApiError;
use crate::identity::Call;
use crate::logs::{add, custom};
use crate::openapi::{Doc, schema};
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use uuid::Uuid;

pub async fn create(State(app): State<App>, call: Call) -> Answer {
    let logs = custom::received(&call.origin.body)?;
    let keeps_bodies = keeps_bodies(&app, &call).await?;
    let ids = add::add(&app, &call.caller, logs, keeps_bodies).await?;
    Ok(Json(json!({ "status": "success", "message": "Logs stored", "log_ids": ids })))
}

/// Unless the installation, the workspace or the request says that rows are enough.
async fn keeps_bodies(app: &App, call: &Call) -> Result<bool, ApiError> {
    const SETTINGS: &str = "SELECT w.settings AS workspace, o.settings AS organisation
        FROM workspaces w JOIN organisations o ON o.id = w.organisation_id WHERE w.id = $1 AND o.id = $2";
    let says_no = call.origin.headers.get("x-gateway-debug").is_some_and(|value| value.as_bytes() == b"false");
    if says_no || !app.keeps_bodies {
        return Ok(false);
    }
    let workspace: Option<Uuid> = call.caller.workspace_id();
    let db = app.db.get().await?;
    let row = db.query_one(SETTINGS, &[&workspace, &call.caller.organisation_id()]).await?;
    let (workspace, organisation): (Value, Value) = (row.try_get("workspace")?, row.try_get("organisation")?);
    Ok(tenant_settings::number("debug_log", &workspace, &organisation) == 1)
}

pub fn docs() -> Doc {
    let any = || schema::anything();
    let headers = || schema::any_object().eg(json!({ "content-type": "application/json" })).or_null();
    let request = schema::object("ReportedRequest")
        .need("url", schema::text(1..=usize::MAX).eg("https://api.openai.com/v1/chat/completions"))
        .may(
            "provider",
            schema::text(0..=255)
                .eg("openai")
                .or_null()
                .says("A service, or `@slug` for a provider of the workspace, whose own prices then hold."),
        )
        .may("method", schema::any_text().eg("post").or_null())
        .may("headers", headers())
        .need("body", any().eg(json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "Hello" }] })));
    let answer = json!({ "model": "gpt-4o-2024-08-06", "usage": { "prompt_tokens": 9, "completion_tokens": 12 } });
    let response = schema::object("ReportedResponse")
        .may("status", schema::whole(100..=599).eg(200).or_null())
        .may("headers", headers())
        .need("body", any().eg(answer))
        .may("response_time", schema::number(0).eg(420).or_null().says("Milliseconds; also accepted as `time`."))
        .may("streamingMode", schema::flag().or_null());
    let says = "trace_id, span_id, span_name, parent_span_id (or in camel case), user, organization, and further pairs of \
                texts, numbers and booleans.";
    let log = schema::object("ReportedLog").need("request", request).need("response", response).may(
        "metadata",
        schema::any_object().eg(json!({ "trace_id": "checkout-42", "user": "ada" })).or_null().says(says),
    );
    let many = schema::list(log.clone()).at_least(1).at_most(custom::MAX_LOGS);
    let stored = schema::object("LogsStored")
        .need("status", schema::fixed("success"))
        .need("message", schema::any_text().eg("Logs stored"))
        .need("log_ids", schema::list(schema::uuid()));
    Doc::post("/logs", "Report a call that did not pass through the gateway")
        .details(
            "One, or a list of them. Tokens and cost are worked out from `usage` in the answer and the price list, or the \
             prices of the integration behind `@slug` (as `provider`, or before the model's name). \
             Credentials in headers and addresses are not stored.",
        )
        .body(schema::either([log, many]))
        .answer(stored)
}
