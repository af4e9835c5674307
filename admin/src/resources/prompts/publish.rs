//! Publishing: which version of a prompt or partial is served by default. The same for both.

use super::Prompt;
use super::partials::Partial;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource};
use crate::http::ApiError;
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;
use shared::db::table::Columns;
use shared::prompt::VersionName;
use tokio_postgres::Transaction;
use uuid::Uuid;

/// What has versions of which one is the default.
pub trait Publishable: Resource {
    fn version_id(
        &self,
        tx: &Transaction<'_>,
        name: VersionName<'_>,
    ) -> impl Future<Output = Result<Uuid, ApiError>> + Send;
}

impl Publishable for Prompt {
    async fn version_id(&self, tx: &Transaction<'_>, name: VersionName<'_>) -> Result<Uuid, ApiError> {
        Ok(self.version(tx, name).await?.id)
    }
}

impl Publishable for Partial {
    async fn version_id(&self, tx: &Transaction<'_>, name: VersionName<'_>) -> Result<Uuid, ApiError> {
        Ok(self.version(tx, name).await?.id)
    }
}

#[derive(Deserialize)]
struct Publication {
    version: i32,
}

pub async fn make_default<R: Publishable>(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<R>(&mut action, &name, None).await?;
    let asked: Publication = call.body()?;
    let version = current.version_id(&action.tx, VersionName::Number(asked.version)).await?;
    let columns = Columns::default().set("version_id", version);
    let row = R::TABLE.update(&action.tx, current.id(), &columns).await?;
    let changed = R::from_row(&row.ok_or(ApiError::NotFound(R::OBJECT))?)?;
    let (before, after) = (Some(current.recorded(&call)), Some(changed.recorded(&call)));
    action.commit(Change { resource_id: current.id().to_string(), before, after }).await?;
    Ok(Json(json!({})))
}
