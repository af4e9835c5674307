//! Which workspaces a reference serves: all of them, or those that are listed. An empty list would serve nobody by
//! accident, so it is refused.

use super::SecretReference;
use crate::crud::Action;
use crate::http::ApiError;
use crate::identity::tenancy;
use uuid::Uuid;

/// For a new reference; empty stands for all.
pub async fn first(action: &Action<'_>, all: Option<bool>, listed: Option<Vec<String>>) -> Result<Vec<Uuid>, ApiError> {
    match (all, listed) {
        (Some(true), Some(_)) => Err(both()),
        (_, Some(listed)) => found(action, listed).await,
        (Some(false), None) => Err(ApiError::field("allowed_workspaces", "is required unless all are allowed")),
        (Some(true) | None, None) => Ok(Vec::new()),
    }
}

/// For one that exists; none when nothing was said.
pub async fn changed(
    action: &Action<'_>,
    current: &SecretReference,
    all: Option<bool>,
    listed: Option<Vec<String>>,
) -> Result<Option<Vec<Uuid>>, ApiError> {
    match (all, listed) {
        (Some(true), Some(_)) => Err(both()),
        (_, Some(listed)) => found(action, listed).await.map(Some),
        (Some(true), None) => Ok(Some(Vec::new())),
        (Some(false), None) if current.allow_all_workspaces => {
            Err(ApiError::field("allowed_workspaces", "is required unless all are allowed"))
        }
        (Some(false) | None, None) => Ok(None),
    }
}

fn both() -> ApiError {
    ApiError::field("allowed_workspaces", "cannot stand beside allow_all_workspaces")
}

async fn found(action: &Action<'_>, listed: Vec<String>) -> Result<Vec<Uuid>, ApiError> {
    if listed.is_empty() {
        return Err(ApiError::field("allowed_workspaces", "must name at least one workspace"));
    }
    let mut ids = Vec::with_capacity(listed.len());
    for (n, name) in listed.iter().enumerate() {
        let found = tenancy::find_workspace(&action.tx, action.organisation_id(), name).await?;
        let unknown = || ApiError::field(format!("allowed_workspaces[{n}]"), "is not a workspace of the organisation");
        let id = found.ok_or_else(unknown)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
