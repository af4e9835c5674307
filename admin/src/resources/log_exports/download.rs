//! Fetching a complete export: links for those who may have it, and the files behind the links for whoever holds one.

use super::{ExportStatus, LogExport};
use crate::app::App;
use crate::crud::{self, Answer, Resource, RowLock};
use crate::http::ApiError;
use crate::identity::call::PublicCall;
use crate::identity::{Call, tenancy};
use crate::log_data::view::LogView;
use crate::logs::exports::files;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub async fn links(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let export = crud::find::<LogExport>(&*db, &call, &name, workspace, RowLock::No).await?;
    export.may_read(&call)?;
    export.must_be(&[ExportStatus::Success], "downloaded")?;
    must_fit(&export, &LogView::for_caller(&call.caller, export.workspaces())?)?;
    let links = files::links(&app, &*db, export.id, export.run, export.files).await?;
    Ok(Json(json!({ "signed_url": links.first(), "signed_urls": links })))
}

/// A file was made for what its owner could see then. Who sees less now must make it anew.
fn must_fit(export: &LogExport, view: &LogView) -> Result<(), ApiError> {
    let shows_others = view.user_id.is_some() && view.user_id != export.own_data_of;
    let shows_metadata = !view.shows_metadata && export.requested_data.iter().any(|name| name == "metadata");
    match shows_others || shows_metadata {
        true => Err(ApiError::Forbidden("This export holds what you may no longer see; make another")),
        false => Ok(()),
    }
}

/// Needs no key: the link is the permission.
pub async fn file(
    State(app): State<App>,
    PublicCall(origin): PublicCall,
    Path((export, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    const NO_FILE: ApiError = ApiError::NotFound("file, or the link to it is over");
    let export = tenancy::id(&export).ok_or(NO_FILE)?;
    let number: i32 = number.parse().ok().filter(|number| *number > 0).ok_or(NO_FILE)?;
    let token = origin.query.text("token").ok_or(NO_FILE)?;
    let db = app.db.get().await?;
    let file = files::opened(&*db, export, number, token).await?.ok_or(NO_FILE)?;
    drop(db);
    let headers = [
        (header::CONTENT_TYPE, file.format.content_type().to_owned()),
        (header::CONTENT_LENGTH, file.bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", file.name)),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, file.body(app.log_store.clone())).into_response())
}
