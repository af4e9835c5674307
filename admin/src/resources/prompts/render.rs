//! A prompt filled in and not sent: the body that running it would send to a model.

use super::find_version;
use super::partial_set::{load, refused};
use crate::app::App;
use crate::crud::{Answer, text_of};
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;
use shared::prompt::{PromptParts, RenderRequest, render};

pub async fn render_prompt(State(app): State<App>, call: Call, Path(reference): Path<String>) -> Answer {
    let mut sent = call.object()?;
    let asked = text_of(&sent, "workspace_id")?;
    sent.shift_remove("workspace_id");
    let request = RenderRequest::parse(sent).map_err(refused)?;
    let db = app.db.get().await?;
    let (prompt, version) = find_version(&*db, &call, &reference, asked.as_deref()).await?;
    let body = version.body()?;
    let partials = load(&*db, prompt.prompt_owning_workspace_id, &body).await?;
    let parts = PromptParts {
        body: &body,
        parameters: &version.parameters,
        model: version.model.as_deref(),
        functions: version.functions.as_ref(),
        tools: version.tools.as_ref(),
        tool_choice: version.tool_choice.as_ref(),
    };
    let data = render(&parts, request, &partials).map_err(refused)?;
    Ok(Json(json!({ "success": true, "data": data })))
}
