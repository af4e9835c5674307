//! A prompt filled in and not sent: the body that running it would send to a model.

use super::find_version;
use super::partial_set::{load, refused};
use super::version::PromptVersion;
use crate::app::App;
use crate::crud::{Answer, text_of};
use crate::http::ApiError;
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};
use shared::prompt::{PartialSet, PromptBody, PromptParts, RenderRequest, render};

/// Templates of strangers take their time, so no connection and no thread that others wait for is held meanwhile.
pub async fn render_prompt(State(app): State<App>, call: Call, Path(reference): Path<String>) -> Answer {
    let mut sent = call.object()?;
    let asked = text_of(&sent, "workspace_id")?;
    sent.shift_remove("workspace_id");
    let request = RenderRequest::parse(sent).map_err(refused)?;
    let db = app.db.get().await?;
    let (prompt, version) = find_version(&*db, &call, &reference, asked.as_deref()).await?;
    drop(db);
    let (version, body, components) = blocking(move || {
        let body = version.body()?;
        let components = body.components();
        Ok((version, body, components))
    })
    .await?;
    let partials = load(&app, prompt.prompt_owning_workspace_id, &components).await?;
    let data = blocking(move || filled(&version, &body, request, &partials)).await?;
    Ok(Json(json!({ "success": true, "data": data })))
}

fn filled(
    version: &PromptVersion,
    body: &PromptBody,
    request: RenderRequest,
    partials: &PartialSet,
) -> Result<Map<String, Value>, ApiError> {
    let parts = PromptParts {
        body,
        parameters: &version.parameters,
        model: version.model.as_deref(),
        functions: version.functions.as_ref(),
        tools: version.tools.as_ref(),
        tool_choice: version.tool_choice.as_ref(),
    };
    render(&parts, request, partials).map_err(refused)
}

/// On a thread that nobody else waits for.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::Internal)?
}
