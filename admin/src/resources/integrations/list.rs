//! Which integrations a call may see: those of the organisation and of its workspaces; for a workspace, its own and
//! those that it was granted. Accounts behind virtual keys are seen through these alone.

use super::Integration;
use crate::app::App;
use crate::crud::{self, Action, Answer, Resource as _, tags};
use crate::http::{ApiError, FieldFault};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use shared::db::table::Filter;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn list(State(app): State<App>, call: Call) -> Answer {
    let query = call.query();
    let page = query.page(Integration::PAGES)?;
    let mut filter = tags::filter(query)?.join(levels(&call)?).holds("status <> 'archived'");
    if let Some(text) = query.text("search") {
        filter = filter.contains("name", text);
    }
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, query.text("workspace_id")).await?;
    let filter = visible(&call, workspace).join(filter);
    let found = Integration::TABLE.page(&*db, &filter, page).await?;
    let data = found.rows.iter().map(|row| Ok(Integration::from_row(row)?.listed(&call)));
    Ok(crud::listed(found.total, data.collect::<Result<_, ApiError>>()?))
}

pub async fn read_integration(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let found = found(&*db, &call, &name).await?;
    found.may_read(&call)?;
    Ok(Json(found.shown(&call)))
}

/// As any update, of what the caller may see.
pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let id = id_of(&app, &call, &name).await?;
    crud::update::<Integration>(State(app), call, Path(id.to_string())).await
}

pub async fn delete(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let id = id_of(&app, &call, &name).await?;
    crud::delete::<Integration>(State(app), call, Path(id.to_string())).await
}

async fn id_of(app: &App, call: &Call, name: &str) -> Result<Uuid, ApiError> {
    let db = app.db.get().await?;
    Ok(found(&*db, call, name).await?.id)
}

/// The integration that a path names among those that the caller may see.
pub async fn found(db: &impl GenericClient, call: &Call, name: &str) -> Result<Integration, ApiError> {
    const NOT_FOUND: ApiError = ApiError::NotFound(Integration::OBJECT);
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    let named = tenancy::named(&Integration::TABLE, name).ok_or(NOT_FOUND)?;
    let filter = visible(call, workspace).join(named).holds("status <> 'archived'");
    let rows = Integration::TABLE.find(db, &filter).await?;
    let row = rows.first().ok_or(NOT_FOUND)?;
    if call.origin.operation.reads_object() {
        call.origin.tag(crud::tag_of(row)?);
    }
    Ok(Integration::from_row(row)?)
}

/// The same, held until the transaction ends, for a change.
pub async fn held(action: &mut Action<'_>, name: &str) -> Result<Integration, ApiError> {
    let id = found(&action.tx, action.call, name).await?.id;
    crud::held::<Integration>(action, &id.to_string(), None).await
}

fn visible(call: &Call, workspace: Option<Uuid>) -> Filter {
    let filter = Filter::default().equals("organisation_id", call.caller.organisation_id()).holds("NOT is_hidden");
    match workspace {
        None => filter,
        Some(id) => filter.and(
            "(workspace_id = ? OR (workspace_id IS NULL AND EXISTS (SELECT FROM integration_workspaces g
              WHERE g.integration_id = integrations.id AND g.workspace_id = ? AND g.enabled)))",
            id,
        ),
    }
}

/// What `type` asks for, within what the caller's scopes open.
fn levels(call: &Call) -> Result<Filter, ApiError> {
    let (organisation, workspace) =
        (call.caller.holds("organisation_integrations.list"), call.caller.holds("workspace_integrations.list"));
    let asked = match call.query().text("type") {
        None | Some("all") => (true, true),
        Some("organisation") => (true, false),
        Some("workspace") => (false, true),
        Some(other) => {
            let allowed = ["workspace", "organisation", "all"];
            return Err(ApiError::Faults(vec![FieldFault::not_among("type", other, &allowed)]));
        }
    };
    Ok(match (organisation && asked.0, workspace && asked.1) {
        (true, true) => Filter::default(),
        (true, false) => Filter::default().holds("workspace_id IS NULL"),
        (false, true) => Filter::default().holds("workspace_id IS NOT NULL"),
        (false, false) => Filter::default().holds("false"),
    })
}
