//! Labels on versions: put there one by one (`label_version`), or pointed to several versions by weight (`point_label`).
//! A label points to one place of a prompt, so putting it elsewhere moves it, in one transaction with its audit record; a
//! label that is deleted points nowhere (the database sees to that).

use super::Prompt;
use super::label_targets::{self, TargetVersion, USUAL_WEIGHT};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, RowLock};
use crate::http::{ApiError, Field, PageSizes};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::prompt::VersionName;
use shared::prompt::split::{MAX_PARTS, MAX_WEIGHT};
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
    let version = prompt.version(&action.tx, VersionName::parse(&version)).await?;
    let before = attached(&action, &prompt).await?;
    match call.body::<VersionChange>()?.label_id {
        Field::Absent => return Err(ApiError::field("label_id", "is required")),
        Field::Null => label_targets::detach(&action, prompt.id, version.id).await?,
        Field::Value(label) => {
            let label = find_label(&action, &prompt, &label.to_string()).await?;
            let alone = TargetVersion { version: version.number, version_id: version.id, weight: USUAL_WEIGHT };
            label_targets::point(&action, prompt.id, label, vec![alone]).await?;
        }
    }
    finish(action, &prompt, before).await
}

#[derive(Deserialize)]
struct LabelSplit {
    versions: Vec<SplitVersion>,
}

#[derive(Deserialize)]
struct SplitVersion {
    version: i32,
    weight: Option<u32>,
}

/// Points a label to one or several versions by weight.
pub async fn point_label(State(app): State<App>, call: Call, Path(names): Path<(String, String)>) -> Answer {
    let (name, label) = names;
    let split = checked(call.body()?)?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let prompt = crud::held::<Prompt>(&mut action, &name, None).await?;
    let label = find_label(&action, &prompt, &label).await?;
    let versions = find_versions(&action, &prompt, &split).await?;
    let before = attached(&action, &prompt).await?;
    label_targets::point(&action, prompt.id, label, versions).await?;
    finish(action, &prompt, before).await
}

/// Takes a label from a prompt, wherever it points.
pub async fn remove_label(State(app): State<App>, call: Call, Path(names): Path<(String, String)>) -> Answer {
    let (name, label) = names;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let prompt = crud::held::<Prompt>(&mut action, &name, None).await?;
    let label = find_label(&action, &prompt, &label).await?;
    let targets = label_targets::all(&action.tx, prompt.id).await?;
    if !targets.iter().any(|target| target.id == label) {
        return Err(ApiError::NotFound("label"));
    }
    label_targets::point(&action, prompt.id, label, Vec::new()).await?;
    finish(action, &prompt, label_targets::summary(&targets)).await
}

/// The labels of a prompt and where they point.
pub async fn list_labels(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const COUNT: &str = "SELECT count(*) FROM prompt_version_labels WHERE prompt_id = $1";
    let (size, offset) = call.query().page(PageSizes::USUAL)?;
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let prompt = crud::find::<Prompt>(&*db, &call, &name, workspace, RowLock::No).await?;
    let total: i64 = db.query_one(COUNT, &[&prompt.id]).await?.try_get(0)?;
    let targets = label_targets::page(&*db, prompt.id, size, offset).await?;
    Ok(crud::listed(total, targets.iter().map(|target| json!(target)).collect()))
}

/// What a split must be, whatever versions there are.
fn checked(sent: LabelSplit) -> Result<Vec<(i32, u32)>, ApiError> {
    let versions: Vec<(i32, u32)> =
        sent.versions.iter().map(|one| (one.version, one.weight.unwrap_or(USUAL_WEIGHT))).collect();
    let refused = |message: String| Err(ApiError::field("versions", message));
    if !(1..=MAX_PARTS).contains(&versions.len()) {
        return refused(format!("must be 1 to {MAX_PARTS} versions"));
    }
    if versions.iter().all(|(_, weight)| *weight == 0) {
        return refused("must have a weight above 0 somewhere".into());
    }
    for (place, (version, weight)) in versions.iter().enumerate() {
        if *weight > MAX_WEIGHT {
            let message = format!("must be at most {MAX_WEIGHT}");
            return Err(ApiError::field(format!("versions[{place}].weight"), message));
        }
        if versions[..place].iter().any(|(earlier, _)| earlier == version) {
            return Err(ApiError::field(format!("versions[{place}].version"), "must not be named twice"));
        }
    }
    Ok(versions)
}

/// The label of this id or name, held so that nobody deletes it meanwhile. One of the workspace wins.
async fn find_label(action: &Action<'_>, prompt: &Prompt, name: &str) -> Result<Uuid, ApiError> {
    const FIND: &str =
        "SELECT id FROM labels WHERE organisation_id = $1 AND (workspace_id = $2 OR workspace_id IS NULL)
        AND status = 'active' AND (id = $3 OR name = $4) ORDER BY workspace_id NULLS LAST LIMIT 1 FOR SHARE";
    let (organisation, workspace) = (action.organisation_id(), prompt.prompt_owning_workspace_id);
    let row = action.tx.query_opt(FIND, &[&organisation, &workspace, &tenancy::id(name), &name]).await?;
    Ok(row.ok_or(ApiError::NotFound("label"))?.try_get("id")?)
}

async fn find_versions(
    action: &Action<'_>,
    prompt: &Prompt,
    split: &[(i32, u32)],
) -> Result<Vec<TargetVersion>, ApiError> {
    const FIND: &str = "SELECT id, number FROM prompt_versions WHERE prompt_id = $1 AND number = ANY ($2)";
    let numbers: Vec<i32> = split.iter().map(|(version, _)| *version).collect();
    let mut known = Vec::new();
    for row in action.tx.query(FIND, &[&prompt.id, &numbers]).await? {
        known.push((row.try_get::<_, i32>("number")?, row.try_get::<_, Uuid>("id")?));
    }
    let found = split.iter().enumerate().map(|(place, (version, weight))| {
        let id = known.iter().find(|(number, _)| number == version).map(|(_, id)| *id);
        let version_id = id.ok_or_else(|| ApiError::no_such(format!("versions[{place}].version"), "version"))?;
        Ok(TargetVersion { version: *version, version_id, weight: *weight })
    });
    found.collect()
}

/// Where all labels of the prompt point, for the audit trail.
async fn attached(action: &Action<'_>, prompt: &Prompt) -> Result<Value, ApiError> {
    Ok(label_targets::summary(&label_targets::all(&action.tx, prompt.id).await?))
}

async fn finish(action: Action<'_>, prompt: &Prompt, before: Value) -> Answer {
    let after = Some(attached(&action, prompt).await?);
    action.commit(Change { resource_id: prompt.id.to_string(), before: Some(before), after }).await?;
    Ok(Json(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_of_a_few_different_versions_with_some_weight() {
        let many: Vec<Value> = (1..=21).map(|version| json!({ "version": version })).collect();
        for (versions, expected) in [
            (json!([{ "version": 3 }]), Ok(vec![(3, 100)])),
            (json!([{ "version": 3, "weight": 90 }, { "version": 4, "weight": 0 }]), Ok(vec![(3, 90), (4, 0)])),
            (json!([]), Err("versions")),
            (json!(many), Err("versions")),
            (json!([{ "version": 3, "weight": 0 }]), Err("versions")),
            (json!([{ "version": 3 }, { "version": 3 }]), Err("versions[1].version")),
            (json!([{ "version": 3, "weight": 1_000_001 }]), Err("versions[0].weight")),
        ] {
            let sent: LabelSplit = serde_json::from_value(json!({ "versions": versions })).unwrap();
            let found = checked(sent).map_err(|error| match error {
                ApiError::Invalid { field, .. } => field.unwrap_or_default(),
                other => other.to_string(),
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{versions}");
        }
    }
}
