//! Exports of logs: drafted, started, cancelled, and fetched by a link once they are complete. A job makes the files
//! (`exports`). People see their own exports alone, and in them what the data visibility settings let them see. One may be of
//! several workspaces, or all: then only who acts for the organisation can make and see it.

mod docs;
mod download;
mod runs;
mod status;
mod workspaces;

use crate::app::App;
use crate::crud::{self, Action, Answer, Resource, Routes};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::{Call, Caller, tenancy};
use crate::log_data::view::{LogView, VisibleWorkspaces};
use crate::log_data::{COUNTED, LogData as _, LogSearch, PostgresLogs, filters};
use crate::logs::exports::step::ExportPage;
use crate::logs::exports::{ExportFormat, fields, files};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::KeyKind;
use status::ExportStatus;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

const SCOPE: &str = "logs.export";

pub fn routes() -> Routes {
    Routes::default()
        .get("/logs/exports", crud::list::<LogExport>)
        .post("/logs/exports", crud::create::<LogExport>)
        .get("/logs/exports/{id}", crud::read::<LogExport>)
        .put("/logs/exports/{id}", crud::update::<LogExport>)
        .post("/logs/exports/{id}/start", runs::start)
        .post("/logs/exports/{id}/cancel", runs::cancel)
        .get("/logs/exports/{id}/download", download::links)
        .get("/logs/exports/{id}/files/{number}", download::file)
        .get("/logs/exports/field-restrictions", field_restrictions)
        .describe(docs::docs())
}

#[derive(Serialize)]
struct LogExport {
    id: Uuid,
    organisation_id: Uuid,
    workspace_id: Option<Uuid>,
    workspace_ids: Option<Vec<Uuid>>,
    filters: Value,
    requested_data: Vec<String>,
    format: String,
    status: ExportStatus,
    description: Option<String>,
    created_by: Uuid,
    total_records: i64,
    total_is_capped: bool,
    exported_records: i64,
    files: i64,
    error: Option<String>,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip)]
    run: i32,
    #[serde(skip)]
    own_data_of: Option<Uuid>,
    #[serde(skip)]
    shows_metadata: bool,
}

#[derive(Deserialize)]
struct NewExport {
    filters: Map<String, Value>,
    requested_data: Vec<String>,
    format: Option<String>,
    description: Option<String>,
    workspace_id: Option<Value>,
    workspace_slug: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExportChange {
    filters: Option<Map<String, Value>>,
    requested_data: Option<Vec<String>>,
    format: Option<String>,
    description: Field<String>,
}

impl Resource for LogExport {
    type Create = NewExport;
    type Update = ExportChange;
    const OBJECT: &'static str = "export";
    const PATH: &'static str = "/logs/exports";
    const TABLE: Table = Table {
        name: "exports",
        columns: SelectList::Sql(
            "id, organisation_id, workspace_id, workspace_ids, filters, requested_data, format, status, description, created_by,
                  total_records, total_is_capped, exported_records, error, run, own_data_of, shows_metadata, created_at,
                  last_updated_at",
        ),
        slug: None,
        tenancy: Tenancy::OneOrSeveral,
        on_delete: OnDelete::Delete,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        let (status, exported): (ExportStatus, i64) = (row::column(row, "status")?, row.try_get("exported_records")?);
        let workspace_id: Option<Uuid> = row.try_get("workspace_id")?;
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id,
            workspace_ids: workspace_id.map(|id| vec![id]).or(row.try_get("workspace_ids")?),
            filters: row.try_get("filters")?,
            requested_data: row.try_get("requested_data")?,
            format: row.try_get("format")?,
            description: row.try_get("description")?,
            created_by: row.try_get("created_by")?,
            total_records: row.try_get("total_records")?,
            total_is_capped: row.try_get("total_is_capped")?,
            exported_records: exported,
            files: if status == ExportStatus::Success { files::count(exported) } else { 0 },
            error: row.try_get("error")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            run: row.try_get("run")?,
            own_data_of: row.try_get("own_data_of")?,
            shows_metadata: row.try_get("shows_metadata")?,
            status,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.workspace_id
    }

    /// One or several, read from the parsed body.
    fn asked_workspace(_: &Map<String, Value>) -> Result<Option<String>, ApiError> {
        Ok(None)
    }

    async fn create(action: &Action<'_>, body: NewExport) -> Result<Columns, ApiError> {
        let view = asked_view(action, workspaces::named(&body)?.as_deref()).await?;
        let columns = seen_by(&view)
            .set("created_by", action.call.caller.actor_id())
            .set("format", checked_format(body.format.as_deref())?)
            .set("description", body.description.map(checked_description).transpose()?)
            .set("requested_data", checked_fields(action, &view, &body.requested_data).await?);
        Ok(columns.join(filtered(action, &view, body.filters).await?))
    }

    async fn update(action: &Action<'_>, current: &Self, body: ExportChange) -> Result<Columns, ApiError> {
        current.must_be(ExportStatus::AT_REST, "changed")?;
        let moved = current.moved(action, body.filters.as_ref()).await?;
        let mut columns = moved.as_ref().map(seen_by).unwrap_or_default();
        columns = columns.set_if("description", body.description.try_map(checked_description)?.sent());
        // What it holds already may be more than is seen of other workspaces.
        let requested = body.requested_data.as_ref().or(moved.as_ref().map(|_| &current.requested_data));
        let view = moved.map_or_else(|| current.view(&action.call.caller), Ok)?;
        if let Some(format) = &body.format {
            columns = columns.set("format", checked_format(Some(format))?);
        }
        if let Some(asked) = requested {
            columns = columns.set("requested_data", checked_fields(action, &view, asked).await?);
        }
        match body.filters {
            Some(filters) => Ok(columns.join(filtered(action, &view, filters).await?)),
            None => Ok(columns),
        }
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let own = is_person(&call.caller).then(|| Filter::default().equals("created_by", call.caller.actor_id()));
        let own = own.unwrap_or_default();
        Ok(match call.caller.own_workspaces_with(SCOPE) {
            Some(workspaces) => own.one_of("workspace_id", workspaces),
            None => own,
        })
    }

    fn may_read(&self, call: &Call) -> Result<(), ApiError> {
        let is_anothers = is_person(&call.caller) && self.created_by != call.caller.actor_id();
        let workspaces = call.caller.own_workspaces_with(SCOPE);
        let is_own = |own: &[Uuid]| self.workspace_id.is_some_and(|id| own.contains(&id));
        match is_anothers || workspaces.is_some_and(|own| !is_own(&own)) {
            true => Err(ApiError::NotFound(Self::OBJECT)),
            false => Ok(()),
        }
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        self.may_read(call)
    }

    fn created(&self, _: &Call) -> Value {
        json!({
            "id": self.id, "total": self.total_records, "total_is_capped": self.total_is_capped,
            "workspace_ids": self.workspace_ids, "object": Self::OBJECT,
        })
    }

    fn updated(&self, call: &Call) -> Value {
        self.created(call)
    }
}

impl LogExport {
    fn must_be(&self, statuses: &[ExportStatus], done: &str) -> Result<(), ApiError> {
        match statuses.contains(&self.status) {
            true => Ok(()),
            false => {
                let then = match self.status {
                    ExportStatus::Draft => "; POST /v1/logs/exports/{exportId}/start starts it",
                    _ => "",
                };
                let status = self.status.as_str();
                Err(ApiError::invalid(format!("An export that is `{status}` cannot be {done}{then}")))
            }
        }
    }

    fn workspaces(&self) -> VisibleWorkspaces {
        VisibleWorkspaces::from_columns(self.workspace_id, self.workspace_ids.clone())
    }

    /// The workspaces that a change of filters leads to, where they are others than before, as far as its maker sees them:
    /// nobody else leads an export on.
    async fn moved(
        &self,
        action: &Action<'_>,
        filters: Option<&Map<String, Value>>,
    ) -> Result<Option<LogView>, ApiError> {
        let Some(names) = filters.map(workspaces::among).transpose()?.flatten() else { return Ok(None) };
        let view = asked_view(action, Some(&names)).await?;
        if view.workspaces.is_same(&self.workspaces()) {
            return Ok(None);
        }
        match self.created_by == action.call.caller.actor_id() {
            true => Ok(Some(view)),
            false => Err(ApiError::Forbidden("Only who made an export can change its workspaces")),
        }
    }

    /// What the files may show: what its owner sees now, or, when somebody else acts on it, saw when it was last theirs.
    fn view(&self, caller: &Caller) -> Result<LogView, ApiError> {
        let mut view = LogView::for_caller(caller, self.workspaces())?;
        if self.created_by != caller.actor_id() {
            view.user_id = self.own_data_of;
            view.shows_metadata &= self.shows_metadata;
        }
        Ok(view)
    }
}

/// The columns that say whose logs an export has, and how much of them.
fn seen_by(view: &LogView) -> Columns {
    let (one, several) = view.workspaces.columns();
    Columns::default()
        .set("workspace_id", one)
        .set("workspace_ids", several)
        .set("own_data_of", view.user_id)
        .set("shows_metadata", view.shows_metadata)
}

/// What the caller sees of the workspaces that it names: all of the organisation's where it is bound to none and names none.
async fn asked_view(action: &Action<'_>, names: Option<&str>) -> Result<LogView, ApiError> {
    let caller = &action.call.caller;
    if caller.workspace_id().is_none() {
        return LogView::asked(&action.tx, caller, names).await;
    }
    // `*` is the one workspace that it has; any other than that is refused.
    let own = tenancy::asked(&action.tx, caller, names.filter(|names| *names != "*")).await?;
    LogView::for_caller(caller, VisibleWorkspaces::One(own.ok_or(ApiError::NotFound("workspace"))?))
}

/// Keys of people, and tokens, which act like them.
fn is_person(caller: &Caller) -> bool {
    matches!(caller.key.kind, KeyKind::WorkspaceUser | KeyKind::Jwt)
}

fn checked_format(format: Option<&str>) -> Result<&'static str, ApiError> {
    let format = ExportFormat::parse(format.unwrap_or(ExportFormat::NAMES[0]));
    format.map(ExportFormat::as_str).ok_or_else(|| ApiError::field("format", "must be jsonl or csv"))
}

fn checked_description(text: String) -> Result<String, ApiError> {
    text::sized("description", text, 0..=1000)
}

async fn checked_fields(action: &Action<'_>, view: &LogView, asked: &[String]) -> Result<Vec<String>, ApiError> {
    let denied = denied(&action.tx, action.organisation_id()).await?;
    let chosen = fields::chosen(asked, &denied)?;
    if !view.shows_metadata && chosen.iter().any(|name| name == "metadata") {
        return Err(ApiError::Forbidden("Your role may not see metadata of logs"));
    }
    Ok(chosen)
}

/// The filters, checked, and how many logs match them as far as that is counted soon.
async fn filtered(action: &Action<'_>, view: &LogView, filters: Map<String, Value>) -> Result<Columns, ApiError> {
    let query = filters::of_json(&filters).map_err(|error| error.under("filters"))?;
    ExportPage::asked(&query).map_err(|error| error.under("filters"))?;
    let which = LogSearch { view, query: &query, since: None };
    which.check().map_err(|error| error.under("filters"))?;
    // What cannot be counted soon is known once the files are made.
    let (total, is_capped) = match PostgresLogs(&action.tx).count(&which).await? {
        Some(found) => (found.min(COUNTED), found > COUNTED),
        None => (0, true),
    };
    Ok(Columns::default()
        .set("filters", Value::Object(filters))
        .set("total_records", total)
        .set("total_is_capped", is_capped))
}

/// The fields that an organisation keeps back.
async fn denied(db: &impl GenericClient, organisation: Uuid) -> Result<Vec<String>, ApiError> {
    const DENIED: &str = "SELECT settings -> 'export_settings' -> 'deniedFields' FROM organisations WHERE id = $1";
    let denied: Option<Value> = db.query_one(DENIED, &[&organisation]).await?.try_get(0)?;
    let names = denied.as_ref().and_then(Value::as_array).into_iter().flatten();
    Ok(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

async fn field_restrictions(State(app): State<App>, call: Call) -> Answer {
    let db = app.db.get().await?;
    let workspace = match tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await? {
        Some(workspace) => workspace,
        None => tenancy::default_workspace(&*db, call.caller.organisation_id()).await?,
    };
    let mut withheld = denied(&*db, call.caller.organisation_id()).await?;
    if !LogView::for_caller(&call.caller, VisibleWorkspaces::One(workspace))?.shows_metadata {
        withheld.push("metadata".to_owned());
    }
    let (denied, allowed): (Vec<&str>, Vec<&str>) =
        fields::names().partition(|name| fields::is_denied(name, &withheld));
    Ok(Json(json!({ "workspace_id": workspace, "deniedFields": denied, "allowedFields": allowed })))
}
