//! Finding providers. Slugs repeat across workspaces, so an admin key must say which workspace it means, unless it
//! names a provider by its id.

use crate::app::App;
use crate::crud::{self, Answer, Resource};
use crate::http::ApiError;
use crate::identity::{Call, tenancy};
use axum::extract::{Path, State};

pub async fn list<R: Resource>(state: State<App>, call: Call) -> Answer {
    may_list(&call)?;
    crud::list::<R>(state, call).await
}

pub async fn read_by_name<R: Resource>(state: State<App>, call: Call, name: Path<String>) -> Answer {
    in_workspace(&call, &name)?;
    crud::read::<R>(state, call, name).await
}

fn may_list(call: &Call) -> Result<(), ApiError> {
    let is_known = call.caller.workspace_id().is_some() || call.query().text("workspace_id").is_some();
    if is_known { Ok(()) } else { Err(ApiError::field("workspace_id", "is required")) }
}

fn in_workspace(call: &Call, name: &str) -> Result<(), ApiError> {
    if tenancy::id(name).is_some() { Ok(()) } else { may_list(call) }
}
