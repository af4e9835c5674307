//! Labels on versions. A label points to one version of a prompt, so putting it on another moves it; a label that is
//! deleted points nowhere (the database sees to that).

use super::Prompt;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, Field};
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::prompt::VersionName;
use uuid::Uuid;

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionChange {
    label_id: Field<Uuid>,
}

/// Puts a label on a version; null takes all labels from it.
pub async fn label_version(State(app): State<App>, call: Call, Path(names): Path<(String, String)>) -> Answer {
    let (name, version) = names;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let prompt = crud::held::<Prompt>(&mut action, &name, None).await?;
    let version = prompt.version(&action.tx, VersionName::parse(&version)).await?.id;
    let before = attached(&action, &prompt).await?;
    match call.body::<VersionChange>()?.label_id {
        Field::Absent => return Err(ApiError::field("label_id", "is required")),
        Field::Null => detach(&action, version).await?,
        Field::Value(label) => attach(&action, &prompt, version, label).await?,
    }
    let after = Some(attached(&action, &prompt).await?);
    action.commit(Change { resource_id: prompt.id.to_string(), before: Some(before), after }).await?;
    Ok(Json(json!({})))
}

async fn detach(action: &Action<'_>, version: Uuid) -> Result<(), ApiError> {
    const DETACH: &str = "DELETE FROM prompt_version_labels WHERE version_id = $1 AND organisation_id = $2";
    action.tx.execute(DETACH, &[&version, &action.organisation_id()]).await?;
    Ok(())
}

async fn attach(action: &Action<'_>, prompt: &Prompt, version: Uuid, label: Uuid) -> Result<(), ApiError> {
    // Held, so that nobody deletes it meanwhile.
    const FIND: &str = "SELECT FROM labels WHERE id = $1 AND organisation_id = $2 AND status = 'active'
                        AND (workspace_id = $3 OR workspace_id IS NULL) FOR SHARE";
    const ATTACH: &str = "INSERT INTO prompt_version_labels (organisation_id, prompt_id, version_id, label_id)
                          VALUES ($1, $2, $3, $4)
                          ON CONFLICT (prompt_id, label_id) DO UPDATE SET version_id = $3, created_at = now()";
    let organisation = action.organisation_id();
    let found = action.tx.query_opt(FIND, &[&label, &organisation, &prompt.prompt_owning_workspace_id]).await?;
    found.ok_or(ApiError::NotFound("label"))?;
    action.tx.execute(ATTACH, &[&organisation, &prompt.id, &version, &label]).await?;
    Ok(())
}

/// Which version each label of the prompt points to, for the audit trail.
async fn attached(action: &Action<'_>, prompt: &Prompt) -> Result<Value, ApiError> {
    const LABELS: &str = "SELECT coalesce(json_object_agg(l.name, v.number ORDER BY l.name), '{}') AS labels
        FROM prompt_version_labels a JOIN labels l ON l.id = a.label_id JOIN prompt_versions v ON v.id = a.version_id
        WHERE a.prompt_id = $1";
    let labels: Value = action.tx.query_one(LABELS, &[&prompt.id]).await?.try_get("labels")?;
    Ok(json!({ "labels": labels }))
}
