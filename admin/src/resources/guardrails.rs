//! Guardrails: checks of requests and answers and what follows from them, saved under a slug and kept in versions. They
//! belong to a workspace, or to the organisation, and are then seen by all its workspaces.

mod catalog;
mod check_table;
mod content;
mod docs;
mod in_use;
pub mod named;
mod remote_trial;
mod trial;
mod trial_subject;

pub use check_table::plugins;

use self::content::SentContent;
use crate::app::App;
use crate::audit;
use crate::crud::versions::{self, Version, Versioned};
use crate::crud::{self, Action, Answer, Resource, Routes, RowLock, Verb};
use crate::http::{ApiError, InUseBy, PageSizes, Time, text};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use shared::model::guardrail::canonical_name;
use shared::routes::{Method, Scopes};
use tokio_postgres::Row;
use uuid::Uuid;

/// Of one organisation. Every proxy holds them all.
const MAX_GUARDRAILS: i64 = 1000;

/// What lists read: everything but what the guardrails say, which they do not show.
const LISTED: Table = Table {
    columns: SelectList::Sql(
        "id, name, slug, organisation_id, workspace_id, status, owner_id, updated_by, created_at, last_updated_at,
        '{}'::json AS content, version_id",
    ),
    ..Guardrail::TABLE
};

pub fn routes() -> Routes {
    Routes::default()
        .post("/guardrails", create)
        .get("/guardrails", list)
        .get("/guardrails/checks", catalog::list)
        .post("/guardrails/test", trial::try_checks)
        .get("/guardrails/{id}", read_guardrail)
        .put("/guardrails/{id}", update)
        .delete("/guardrails/{id}", delete)
        .get("/guardrails/{id}/versions", list_versions)
        .post("/guardrails/{id}/rollback", rollback)
        .describe(docs::docs())
}

#[derive(Serialize, Deserialize)]
pub struct Guardrail {
    id: Uuid,
    name: String,
    slug: String,
    organisation_id: Uuid,
    workspace_id: Option<Uuid>,
    status: Status,
    owner_id: Option<Uuid>,
    updated_by: Option<Uuid>,
    created_at: Time,
    last_updated_at: Time,
    /// `{checks, actions}`.
    #[serde(skip_serializing)]
    content: Value,
    #[serde(skip_serializing)]
    version_id: Uuid,
}

#[derive(Deserialize)]
pub struct NewGuardrail {
    name: String,
    checks: Value,
    actions: Value,
    organisation_id: Option<Uuid>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct GuardrailChange {
    name: Option<String>,
    checks: Option<Value>,
    actions: Option<Value>,
}

impl Resource for Guardrail {
    type Create = NewGuardrail;
    type Update = GuardrailChange;
    const OBJECT: &'static str = "guardrail";
    const PATH: &'static str = "/guardrails";
    const UNIQUE: &'static str = "slug";
    const PAGES: PageSizes = PageSizes { default: 100, most: 1000 };
    const TABLE: Table = Table {
        name: "guardrails",
        columns: SelectList::Sql(
            "id, name, slug, organisation_id, workspace_id, status, owner_id, updated_by, created_at, last_updated_at,
            content, version_id",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Either,
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.workspace_id
    }

    async fn create(action: &Action<'_>, body: NewGuardrail) -> Result<Columns, ApiError> {
        own_organisation(action.call, body.organisation_id)?;
        if action.workspace_id.is_none() && body.organisation_id.is_none() {
            let message = "is required, or organisation_id for a guardrail of the whole organisation";
            return Err(ApiError::field("workspace_id", message));
        }
        require(action.call, action.workspace_id, &["guardrails.create"])?;
        let name = text::name("name", body.name)?;
        let content = content::new(body.checks, body.actions)?;
        refuse_too_many(action).await?;
        let by = action.call.caller.actor_id();
        Ok(Columns::default()
            .set("slug", text::generated_slug("pg", &name, 6))
            .set("name", name)
            .set("content", content)
            .set("version_id", Uuid::new_v4())
            .set("owner_id", by)
            .set("updated_by", by))
    }

    async fn update(action: &Action<'_>, current: &Self, body: GuardrailChange) -> Result<Columns, ApiError> {
        let name = body.name.map(|name| text::name("name", name)).transpose()?;
        let mut columns = Columns::default().set_if("name", name);
        if body.checks.is_some() || body.actions.is_some() {
            let content = content::changed(&current.content, body.checks, body.actions)?;
            // The order of keys is no difference.
            if content != current.content {
                columns = columns.set("version_id", Uuid::new_v4());
            }
            columns = columns.set("content", content);
        }
        Ok(if columns.is_empty() { columns } else { columns.set("updated_by", action.call.caller.actor_id()) })
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let organisation = query.uuid("organisation_id")?;
        own_organisation(call, organisation)?;
        let mut filter = Filter::default();
        let asks_for_organisation = organisation.is_some() && query.text("workspace_id").is_none();
        // A scope of the organisation's guardrails shows no workspace's.
        if asks_for_organisation || !call.caller.holds("guardrails.list") {
            filter = filter.holds("workspace_id IS NULL");
        }
        let ids: Vec<String> = query.list("ids").iter().map(|name| canonical_name(name)).collect();
        if !ids.is_empty() {
            filter = filter.and("(id::text = ANY(?) OR slug = ANY(?))", ids);
        }
        Ok(match query.text("search") {
            Some(text) => filter.contains("name", text),
            None => filter,
        })
    }

    fn may_read(&self, call: &Call) -> Result<(), ApiError> {
        require(call, self.workspace_id, &["guardrails.read"])
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        let deletes = call.origin.operation.deletes_object();
        require(call, self.workspace_id, if deletes { &["guardrails.delete"] } else { &["guardrails.update"] })
    }

    async fn used_by(&self, action: &Action<'_>) -> Result<Vec<InUseBy>, ApiError> {
        in_use::refuse_defaults(action, self.id, &self.slug).await?;
        in_use::configs_naming(action, self.id, &self.slug, self.workspace_id).await
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete {
            return Ok(());
        }
        versions::keep(self, action).await?;
        content::warn_of_missing_credentials(action, &self.content).await
    }

    /// In the audit trail parameters are masked: headers of a webhook are credentials.
    fn shown(&self, call: &Call) -> Value {
        let operation = call.origin.operation;
        match operation.method {
            Method::Get if operation.is_list() => crud::shown(Self::OBJECT, self),
            Method::Get => self.whole(self.version_id, &self.content),
            _ => self.whole(self.version_id, &audit::masked(self.content.clone())),
        }
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "version_id": self.version_id, "object": Self::OBJECT })
    }

    fn updated(&self, call: &Call) -> Value {
        self.created(call)
    }
}

impl Versioned for Guardrail {
    const VERSIONS: &'static str = "guardrail_versions";
    const OWNER: &'static str = "guardrail_id";
    const VERSION_PAGES: PageSizes = PageSizes { default: 50, most: 50 };
    // Every proxy holds them all, since a config may pin any of them.
    const MAX_VERSIONS: i32 = 200;

    fn version_id(&self) -> Uuid {
        self.version_id
    }

    fn content(&self) -> &Value {
        &self.content
    }

    fn shown_version(&self, _: &Call, version: &Version) -> Value {
        let mut shown = self.whole(version.id, &version.content);
        shown["created_at"] = json!(version.created_at);
        shown["created_by"] = json!(version.created_by);
        shown["version"] = version.number.into();
        shown
    }

    async fn restored(action: &Action<'_>, mut content: Value) -> Result<Columns, ApiError> {
        let mut part = |name: &str| content.get_mut(name).map(Value::take).unwrap_or_default();
        let (checks, actions) = (part("checks"), part("actions"));
        content::check(SentContent { checks: Some(checks.clone()), actions: Some(actions.clone()) }).await?;
        let content = content::new(checks, actions)?;
        Ok(Columns::default()
            .set("content", content)
            .set("version_id", Uuid::new_v4())
            .set("updated_by", action.call.caller.actor_id()))
    }
}

impl Guardrail {
    /// With what it says, as this version has it.
    fn whole(&self, version_id: Uuid, content: &Value) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["checks"] = content["checks"].clone();
        shown["actions"] = content["actions"].clone();
        shown["version_id"] = json!(version_id);
        shown
    }
}

/// What a guardrail says is checked before a connection is taken.
async fn create(state: State<App>, call: Call) -> Answer {
    content::check(call.body()?).await?;
    crud::create::<Guardrail>(state, call).await
}

/// As `crud::list`, without reading what they say.
async fn list(State(app): State<App>, call: Call) -> Answer {
    let page = call.query().page(Guardrail::PAGES)?;
    let filter = Guardrail::filter(&call)?.holds("status <> 'archived'");
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let filter = tenancy::visible(&LISTED, &call.caller, workspace).join(filter);
    let found = LISTED.page(&*db, &filter, page).await?;
    let data = found.rows.iter().map(|row| Ok(Guardrail::from_row(row)?.shown(&call)));
    Ok(crud::listed(found.total, data.collect::<Result<_, ApiError>>()?))
}

/// The current version, or the one that `version` asks for.
async fn read_guardrail(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let found = crud::find::<Guardrail>(&*db, &call, &canonical_name(&name), workspace, RowLock::No).await?;
    found.may_read(&call)?;
    let Some(version) = call.query().text("version") else { return Ok(Json(found.shown(&call))) };
    let version = versions::find(&*db, &found, version).await?;
    Ok(Json(found.whole(version.id, &version.content)))
}

async fn update(state: State<App>, call: Call, Path(name): Path<String>) -> Answer {
    content::check(call.body()?).await?;
    crud::update::<Guardrail>(state, call, Path(canonical_name(&name))).await
}

async fn delete(state: State<App>, call: Call, Path(name): Path<String>) -> Answer {
    crud::delete::<Guardrail>(state, call, Path(canonical_name(&name))).await
}

async fn list_versions(state: State<App>, call: Call, Path(name): Path<String>) -> Answer {
    versions::list::<Guardrail>(state, call, Path(canonical_name(&name))).await
}

async fn rollback(state: State<App>, call: Call, Path(name): Path<String>) -> Answer {
    versions::rollback::<Guardrail>(state, call, Path(canonical_name(&name))).await
}

/// The route table asks for a scope of either level. What belongs to the organisation may be touched with both; what
/// belongs to a workspace needs the one without `organisation_`.
fn require(call: &Call, workspace: Option<Uuid>, needs: &'static [&'static str]) -> Result<(), ApiError> {
    let needs = Scopes::Any(needs);
    match workspace.is_none() || needs.are_met_by(&call.caller.scopes) {
        true => Ok(()),
        false => Err(ApiError::MissingScope { needs }),
    }
}

async fn refuse_too_many(action: &Action<'_>) -> Result<(), ApiError> {
    const COUNT: &str = "SELECT count(*) FROM guardrails WHERE organisation_id = $1 AND status <> 'archived'";
    let count: i64 = action.tx.query_one(COUNT, &[&action.organisation_id()]).await?.try_get(0)?;
    match count < MAX_GUARDRAILS {
        true => Ok(()),
        false => Err(ApiError::Conflict(format!("An organisation may have at most {MAX_GUARDRAILS} guardrails"))),
    }
}

fn own_organisation(call: &Call, sent: Option<Uuid>) -> Result<(), ApiError> {
    match sent {
        Some(id) if id != call.caller.organisation_id() => {
            Err(ApiError::field("organisation_id", "must be the caller's organisation"))
        }
        _ => Ok(()),
    }
}
