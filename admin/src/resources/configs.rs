//! Configs: how requests are routed, saved under a slug and kept in versions. The proxy reads the compiled form of the
//! current version from its snapshot; what the shared schema refuses is never saved.

mod content;
mod credentials;
mod docs;
mod guardrail_references;
mod references;
mod usage;

use crate::app::App;
use crate::audit;
use crate::crud::versions::{self, Version, Versioned};
use crate::crud::{self, Action, Answer, Resource, Routes, RowLock, Verb};
use crate::http::{ApiError, Time, text};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::config::credentials::masked;
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .get("/configs", list)
        .post("/configs", crud::create::<Config>)
        .get("/configs/{slug}", read_config)
        .put("/configs/{slug}", crud::update::<Config>)
        .delete("/configs/{slug}", crud::delete::<Config>)
        .get("/configs/{slug}/versions", versions::list::<Config>)
        .get("/configs/{slug}/versions/diff", versions::differences::<Config>)
        .post("/configs/{slug}/rollback", versions::rollback::<Config>)
        .describe(docs::docs())
}

#[derive(Serialize, Deserialize)]
pub struct Config {
    id: Uuid,
    name: String,
    slug: String,
    organisation_id: Uuid,
    workspace_id: Uuid,
    is_default: u8,
    status: Status,
    owner_id: Option<Uuid>,
    updated_by: Option<Uuid>,
    created_at: Time,
    last_updated_at: Time,
    /// Its credentials are sealed; whatever is shown of it is masked.
    #[serde(skip_serializing)]
    config: Value,
    #[serde(skip_serializing)]
    version_id: Uuid,
}

#[derive(Deserialize)]
pub struct NewConfig {
    name: String,
    slug: Option<String>,
    config: Value,
    #[serde(default, alias = "isDefault")]
    is_default: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ConfigChange {
    name: Option<String>,
    config: Option<Value>,
    status: Option<String>,
    #[serde(alias = "isDefault")]
    is_default: Option<Value>,
}

impl Resource for Config {
    type Create = NewConfig;
    type Update = ConfigChange;
    const OBJECT: &'static str = "config";
    const PATH: &'static str = "/configs";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "configs",
        columns: SelectList::Sql(
            "id, name, slug, organisation_id, workspace_id, (is_default AND status = 'active')::int AS is_default, status,
                  owner_id, updated_by, created_at, last_updated_at, config, version_id",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Workspace("workspace_id"),
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.workspace_id)
    }

    async fn create(action: &Action<'_>, body: NewConfig) -> Result<Columns, ApiError> {
        let name = text::name("name", body.name)?;
        let slug = body.slug.map(|slug| text::slug("slug", slug)).transpose()?;
        let is_default = switch(body.is_default)?.unwrap_or(false);
        let id = Uuid::new_v4();
        let config = written(action, id, body.config, &Value::Null).await?;
        if is_default {
            usage::choose_alone(action).await?;
            usage::demote(action, None).await?;
        }
        let by = action.call.caller.actor_id();
        Ok(Columns::default()
            .set("id", id)
            .set("slug", slug.unwrap_or_else(|| text::generated_slug("pc", &name, 6)))
            .set("name", name)
            .set("is_default", is_default)
            .set("config", config)
            .set("version_id", Uuid::new_v4())
            .set("owner_id", by)
            .set("updated_by", by))
    }

    async fn before_update(action: &Action<'_>, change: &ConfigChange) -> Result<(), ApiError> {
        if change.is_default.is_some() { usage::choose_alone(action).await } else { Ok(()) }
    }

    async fn update(action: &Action<'_>, current: &Self, body: ConfigChange) -> Result<Columns, ApiError> {
        let status = body.status.map(checked_status).transpose()?;
        let is_default = switch(body.is_default)?;
        let mut columns = Columns::default()
            .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set_if("status", status)
            .set_if("is_default", is_default);
        if let Some(sent) = body.config {
            let config = written(action, current.id, sent, &current.config).await?;
            // The order of keys is no difference.
            if config != current.config {
                columns = columns.set("version_id", Uuid::new_v4());
            }
            columns = columns.set("config", config);
        }
        if is_default == Some(true) {
            usage::demote(action, Some(current.id)).await?;
        }
        Ok(if columns.is_empty() { columns } else { columns.set("updated_by", action.call.caller.actor_id()) })
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let statuses = query.choices("status", &["active", "archived"])?;
        let filter = if statuses.is_empty() { Filter::default() } else { Filter::default().one_of("status", statuses) };
        Ok(match query.text("search") {
            Some(text) => filter.contains("name", text),
            None => filter,
        })
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete || self.status == Status::Archived {
            usage::refuse_while_in_use(action, self.id, &self.slug, self.workspace_id).await?;
        }
        if verb != Verb::Delete {
            versions::keep(self, action).await?;
            references::warn_of_missing(action, self.workspace_id, &self.config).await?;
            guardrail_references::warn_of_missing(action, self.workspace_id, &self.config).await?;
        }
        Ok(())
    }

    /// For the audit trail, so credentials are masked.
    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["config"] = audit::masked(masked(self.config.clone()));
        shown["version_id"] = json!(self.version_id);
        shown
    }

    fn created(&self, call: &Call) -> Value {
        let (id, slug, version_id) = (self.id, &self.slug, self.version_id);
        json!({
            "success": true,
            "data": { "id": id, "version_id": version_id, "slug": slug },
            "id": id, "slug": slug, "version_id": version_id, "object": Self::OBJECT,
            "warnings": call.origin.warnings(),
        })
    }

    fn updated(&self, call: &Call) -> Value {
        let version_id = self.version_id;
        json!({
            "success": true, "data": { "version_id": version_id }, "version_id": version_id, "object": Self::OBJECT,
            "warnings": call.origin.warnings(),
        })
    }
}

impl Versioned for Config {
    const VERSIONS: &'static str = "config_versions";
    const OWNER: &'static str = "config_id";

    fn version_id(&self) -> Uuid {
        self.version_id
    }

    fn content(&self) -> &Value {
        &self.config
    }

    fn shown_content(content: Value) -> Value {
        masked(content)
    }

    fn shown_version(&self, _: &Call, version: &Version) -> Value {
        let mut shown = self.whole(version.id, &version.content);
        shown["created_at"] = json!(version.created_at);
        shown["created_by"] = json!(version.created_by);
        shown["version"] = version.number.into();
        shown
    }

    async fn restored(action: &Action<'_>, content: Value) -> Result<Columns, ApiError> {
        let config = content::checked(content, &action.app.config_limits)?;
        Ok(Columns::default()
            .set("config", config)
            .set("version_id", Uuid::new_v4())
            .set("updated_by", action.call.caller.actor_id()))
    }
}

impl Config {
    /// The two published shapes in one: the config as text beside its fields, and as an object under `data`.
    fn whole(&self, version_id: Uuid, config: &Value) -> Value {
        let config = masked(config.clone());
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["config"] = config.to_string().into();
        shown["format"] = "json".into();
        shown["type"] = "ORG_CONFIG".into();
        shown["version_id"] = json!(version_id);
        shown["success"] = true.into();
        shown["data"] = json!({ "config": config });
        shown
    }
}

async fn list(state: State<App>, call: Call) -> Answer {
    let Json(mut list) = crud::list::<Config>(state, call).await?;
    list["success"] = true.into();
    for item in list["data"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        item.remove("config");
        item.remove("version_id");
    }
    Ok(Json(list))
}

/// The current version, or the one that `version` asks for.
async fn read_config(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let config = crud::find::<Config>(&*db, &call, &name, workspace, RowLock::No).await?;
    let Some(version) = call.query().text("version") else {
        return Ok(Json(config.whole(config.version_id, &config.config)));
    };
    let version = versions::find(&*db, &config, version).await?;
    Ok(Json(config.whole(version.id, &version.content)))
}

/// What is stored of a config that was sent: read by the rules, its credentials sealed. `stored` is what it replaces.
async fn written(action: &Action<'_>, id: Uuid, sent: Value, stored: &Value) -> Result<Value, ApiError> {
    let mut sent = content::parsed(sent)?;
    let unchanged = credentials::keep_stored(&mut sent, stored)?;
    let config = content::checked(sent, &action.app.config_limits)?;
    credentials::sealed(action, id, config, &unchanged, stored).await
}

fn checked_status(status: String) -> Result<String, ApiError> {
    if ["active", "archived"].contains(&status.as_str()) {
        return Ok(status);
    }
    Err(ApiError::field("status", "must be active or archived"))
}

/// 0 and 1, as the interface has it; true and false from those who think it a flag.
fn switch(sent: Option<Value>) -> Result<Option<bool>, ApiError> {
    match sent {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(on)),
        Some(Value::Number(number)) if number.as_u64().is_some_and(|number| number < 2) => {
            Ok(Some(number.as_u64() == Some(1)))
        }
        Some(_) => Err(ApiError::field("isDefault", "must be 0 or 1")),
    }
}
