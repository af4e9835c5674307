//! Integrations: the organisation's accounts with providers, or a workspace's own. Their credentials go in and never
//! come out; workspaces use them through providers.

mod access;
mod change;
mod credentials;
mod default_provider;
mod destination;
pub mod docs;
mod fields;
mod hidden;
mod list;
mod mappings;
mod models;
mod pricing;
pub mod probe;
pub mod provider_fields;
mod references;
mod secrets;

pub use change::AccountChange;
pub use credentials::OpenedAccount;
pub use default_provider::DefaultProvider;
pub use fields::headers as checked_headers;
pub use hidden::{add_hidden, change_hidden, without_secrets};
pub use mappings::{
    Mapping, may_go_to as mapped_may_go_to, parse as parse_mappings, resolved as resolved_mappings,
    stored as stored_mappings,
};
pub use secrets::{Fields, shown as shown_settings};

use crate::crud::free_slug::SlugScope;
use crate::crud::{self, Action, Resource, Routes, Verb};
use crate::http::{ApiError, InUseBy, PageSizes, Time, text};
use crate::identity::Call;
use crate::resources::providers::in_use;
use serde::Serialize;
use serde_json::{Value, json};
use shared::db::table::{Columns, OnDelete, RowError, SelectList, Table, Tenancy};
use shared::model::{self, Status};
use shared::routes::Scopes;
use shared::secrets::seal::Sealed;
use tokio_postgres::Row;
use uuid::Uuid;

pub const SLUGS: SlugScope = SlugScope { table: "integrations", owner: "organisation_id" };

pub fn routes() -> Routes {
    Routes::default()
        .post("/integrations", crud::create::<Integration>)
        .get("/integrations", list::list)
        .get("/integrations/{slug}", list::read_integration)
        .put("/integrations/{slug}", list::update)
        .delete("/integrations/{slug}", list::delete)
        .get("/integrations/{slug}/models", models::list)
        .put("/integrations/{slug}/models", models::update)
        .put("/integrations/{slug}/integration-models", models::update)
        .delete("/integrations/{slug}/models", models::delete)
        .get("/integrations/{slug}/workspaces", access::list)
        .put("/integrations/{slug}/workspaces", access::update)
        .post("/integrations/{slug}/test", probe::try_stored)
        .post("/providers/types/{type}/test", probe::try_settings)
        .describe(docs::docs())
}

#[derive(Serialize)]
pub struct Integration {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    description: Option<String>,
    pub ai_provider_id: String,
    organisation_id: Uuid,
    status: Status,
    tags: Option<Value>,
    pub created_at: Time,
    last_updated_at: Time,
    allow_all_models: bool,
    secret_mappings: Value,
    pricing_adjustments: Option<Value>,
    workspace_count: i64,
    owner_id: Option<Uuid>,
    #[serde(skip)]
    pub workspace_id: Option<Uuid>,
    #[serde(skip)]
    workspace_slug: Option<String>,
    #[serde(skip)]
    pub configurations: Value,
    #[serde(skip)]
    pub masks: Value,
    #[serde(skip)]
    sealed: Option<Sealed>,
    #[serde(skip)]
    global_workspace_access: Value,
}

impl Resource for Integration {
    type Create = change::NewIntegration;
    type Update = change::IntegrationChange;
    const OBJECT: &'static str = "integration";
    const PATH: &'static str = "/integrations";
    const UNIQUE: &'static str = "slug";
    const PAGES: PageSizes = PageSizes { default: 100, most: 100 };
    const TABLE: Table = Table {
        name: "integrations",
        columns: SelectList::Sql(
            "id, slug, name, description, ai_provider_id, organisation_id, workspace_id, status, tags, created_at,
            last_updated_at, configurations, masks, sealed, secret_mappings, pricing_adjustments, allow_all_models,
            global_workspace_access, created_by,
            (SELECT w.slug FROM workspaces w WHERE w.id = integrations.workspace_id) AS workspace_slug,
            (SELECT count(*) FROM integration_workspaces g
             WHERE g.integration_id = integrations.id AND g.enabled) AS workspace_count",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Either,
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            id: row.try_get("id")?,
            slug: row.try_get("slug")?,
            name: row.try_get("name")?,
            description: row.try_get("description")?,
            ai_provider_id: row.try_get("ai_provider_id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            workspace_slug: row.try_get("workspace_slug")?,
            status: row.try_get("status")?,
            tags: row.try_get("tags")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            configurations: row.try_get("configurations")?,
            masks: row.try_get("masks")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
            secret_mappings: row.try_get("secret_mappings")?,
            pricing_adjustments: row.try_get("pricing_adjustments")?,
            allow_all_models: row.try_get("allow_all_models")?,
            global_workspace_access: row.try_get("global_workspace_access")?,
            workspace_count: row.try_get("workspace_count")?,
            owner_id: row.try_get("created_by")?,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.workspace_id
    }

    async fn create(action: &Action<'_>, body: change::NewIntegration) -> Result<Columns, ApiError> {
        change::created(action, body).await
    }

    async fn update(action: &Action<'_>, current: &Self, body: change::IntegrationChange) -> Result<Columns, ApiError> {
        change::changed(action, current, body).await
    }

    fn may_read(&self, call: &Call) -> Result<(), ApiError> {
        require(call, self.workspace_id, "read")
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        require(call, self.workspace_id, if call.origin.operation.deletes_object() { "delete" } else { "update" })
    }

    async fn used_by(&self, action: &Action<'_>) -> Result<Vec<InUseBy>, ApiError> {
        in_use::relying_on_integration(action, self.id).await
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        const ARCHIVE: &str = "UPDATE providers SET status = 'archived', last_updated_at = now()
                               WHERE integration_id = $1 AND status <> 'archived'";
        match verb {
            Verb::Create => change::default_provider(action, self).await,
            Verb::Update => Ok(()),
            Verb::Delete => {
                action.tx.execute(ARCHIVE, &[&self.id]).await?;
                Ok(())
            }
        }
    }

    /// The whole object; lists show less.
    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["workspace_id"] = json!(self.workspace_slug);
        shown["type"] = json!(self.kind());
        shown["masked_key"] = self.masks["key"].clone();
        shown["configurations"] = secrets::shown(&self.configurations, &self.masks["configurations"]);
        // Clients differ in which of the two they read.
        shown["global_workspace_access"] = access::shown_global(&self.global_workspace_access);
        shown["global_workspace_access_settings"] = shown["global_workspace_access"].clone();
        shown
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "object": Self::OBJECT })
    }
}

impl Integration {
    fn kind(&self) -> &'static str {
        if self.workspace_id.is_some() { "workspace" } else { "organisation" }
    }

    fn place(&self) -> shared::secrets::seal::SealedPlace {
        model::Integration::place_of(self.organisation_id, self.id)
    }

    /// The item of a list.
    fn listed(&self, call: &Call) -> Value {
        const FIELDS: [&str; 13] = [
            "id",
            "slug",
            "name",
            "description",
            "ai_provider_id",
            "organisation_id",
            "workspace_id",
            "type",
            "status",
            "tags",
            "created_at",
            "last_updated_at",
            "object",
        ];
        let whole = self.shown(call);
        Value::Object(FIELDS.iter().map(|name| ((*name).to_owned(), whole[*name].clone())).collect())
    }
}

/// The route table asks for a scope of either level; here the level is known. What a workspace's own key may see at
/// all, it may see with the scope of its level.
fn require(call: &Call, workspace: Option<Uuid>, verb: &'static str) -> Result<(), ApiError> {
    let is_workspace_level = workspace.is_some() || call.caller.workspace_id().is_some();
    let needs: &'static [&'static str] = match (is_workspace_level, verb) {
        (true, "create") => &["workspace_integrations.create"],
        (true, "read") => &["workspace_integrations.read"],
        (true, "update") => &["workspace_integrations.update"],
        (true, _) => &["workspace_integrations.delete"],
        (false, "create") => &["organisation_integrations.create"],
        (false, "read") => &["organisation_integrations.read"],
        (false, "update") => &["organisation_integrations.update"],
        (false, _) => &["organisation_integrations.delete"],
    };
    let needs = Scopes::Any(needs);
    if needs.are_met_by(&call.caller.scopes) { Ok(()) } else { Err(ApiError::MissingScope { needs }) }
}

/// A slug that was chosen, or one of the name.
async fn slug_of(action: &Action<'_>, chosen: Option<String>, name: &str) -> Result<String, ApiError> {
    match chosen {
        None => SLUGS.of_name(&action.tx, action.organisation_id(), name).await,
        Some(slug) => {
            let slug = text::slug("slug", slug)?;
            match SLUGS.is_free(&action.tx, action.organisation_id(), &slug).await? {
                true => Ok(slug),
                false => Err(ApiError::Conflict("There is an integration with this slug already".into())),
            }
        }
    }
}
