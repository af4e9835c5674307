//! MCP integrations: servers of the Model Context Protocol that the organisation or a workspace registered. Credentials
//! go in and never come out; a background job asks each new server what it offers.

pub mod capabilities;
mod change;
pub mod docs;
mod list;
mod mapped_headers;
mod pins;
mod push;
pub mod sync;
mod workspaces;

use crate::crud::free_slug::SlugScope;
use crate::crud::{self, Action, Resource, Routes, Verb};
use crate::http::{ApiError, PageSizes, Time};
use crate::identity::Call;
use crate::resources::integrations::shown_settings;
use serde::Serialize;
use serde_json::{Value, json};
use shared::db::table::{Columns, OnDelete, RowError, SelectList, Table, Tenancy};
use shared::model::Status;
use shared::routes::Scopes;
use shared::secrets::seal::{Sealed, SealedPlace};
use tokio_postgres::Row;
use uuid::Uuid;

/// What a save of such an integration says.
const BEARER: &str = "configurations.user_identity_forwarding.method: bearer sends on tokens of other issuers alone; what \
                      opens this gateway (its keys, sessions and tokens) is never sent, and the call goes without it";

pub const SLUGS: SlugScope = SlugScope { table: "mcp_integrations", owner: "organisation_id" };

pub fn routes() -> Routes {
    Routes::default()
        .post("/mcp-integrations", crud::create::<McpIntegration>)
        .get("/mcp-integrations", list::list)
        .get("/mcp-integrations/{id}", list::read)
        .put("/mcp-integrations/{id}", list::update)
        .delete("/mcp-integrations/{id}", list::delete)
        .get("/mcp-integrations/{id}/metadata", list::metadata)
        .post("/mcp-integrations/{id}/test", sync::test)
        .post("/mcp-integrations/{id}/sync", sync::sync)
        .get("/mcp-integrations/{id}/capabilities", capabilities::list)
        .put("/mcp-integrations/{id}/capabilities", capabilities::update)
        .get("/mcp-integrations/{id}/workspaces", workspaces::list)
        .put("/mcp-integrations/{id}/workspaces", workspaces::update)
        .describe(docs::docs())
}

#[derive(Serialize)]
pub struct McpIntegration {
    pub id: Uuid,
    pub slug: String,
    name: String,
    description: Option<String>,
    owner_id: Option<Uuid>,
    status: Status,
    pub url: String,
    pub auth_type: String,
    pub transport: String,
    organisation_id: Uuid,
    pub workspace_id: Option<Uuid>,
    workspaces_count: i64,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip)]
    pub configurations: Value,
    #[serde(skip)]
    pub masks: Value,
    #[serde(skip)]
    pub sealed: Option<Sealed>,
    secret_mappings: Value,
    #[serde(skip)]
    is_for_all: bool,
    #[serde(skip)]
    server_metadata: Value,
    #[serde(skip)]
    sync_status: String,
    #[serde(skip)]
    sync_error: Option<String>,
    #[serde(skip)]
    last_synced_at: Option<Time>,
}

impl Resource for McpIntegration {
    type Create = change::NewMcpIntegration;
    type Update = change::McpIntegrationChange;
    const OBJECT: &'static str = "mcp-integration";
    const PATH: &'static str = "/mcp-integrations";
    const UNIQUE: &'static str = "slug";
    const PAGES: PageSizes = PageSizes { default: 100, most: 1000 };
    const TABLE: Table = Table {
        name: "mcp_integrations",
        columns: SelectList::Sql(
            "id, slug, name, description, organisation_id, workspace_id, status, url, auth_type, transport, created_at,
            last_updated_at, configurations, masks, sealed, secret_mappings, is_for_all, metadata, sync_status,
            sync_error, last_synced_at, created_by,
            (SELECT count(*) FROM mcp_integration_workspaces g
             WHERE g.integration_id = mcp_integrations.id AND g.enabled) AS workspaces_count",
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
            owner_id: row.try_get("created_by")?,
            status: row.try_get("status")?,
            url: row.try_get("url")?,
            auth_type: row.try_get("auth_type")?,
            transport: row.try_get("transport")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            workspaces_count: row.try_get("workspaces_count")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            configurations: row.try_get("configurations")?,
            masks: row.try_get("masks")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
            secret_mappings: row.try_get("secret_mappings")?,
            is_for_all: row.try_get("is_for_all")?,
            server_metadata: row.try_get("metadata")?,
            sync_status: row.try_get("sync_status")?,
            sync_error: row.try_get("sync_error")?,
            last_synced_at: row.try_get("last_synced_at")?,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.workspace_id
    }

    async fn create(action: &Action<'_>, body: change::NewMcpIntegration) -> Result<Columns, ApiError> {
        change::created(action, body).await
    }

    async fn update(
        action: &Action<'_>,
        current: &Self,
        body: change::McpIntegrationChange,
    ) -> Result<Columns, ApiError> {
        change::changed(action, current, body).await
    }

    fn may_read(&self, call: &Call) -> Result<(), ApiError> {
        require(call, self.workspace_id, "read")
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        require(call, self.workspace_id, if call.origin.operation.deletes_object() { "delete" } else { "update" })
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        const ARCHIVE: &str = "UPDATE mcp_servers SET status = 'archived', last_updated_at = now()
                               WHERE mcp_integration_id = $1 AND status <> 'archived'";
        match verb {
            Verb::Delete => drop(action.tx.execute(ARCHIVE, &[&self.id]).await?),
            _ if self.configurations["user_identity_forwarding"]["method"] == "bearer" => {
                action.call.origin.warn(BEARER.to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["type"] = json!(if self.workspace_id.is_some() { "workspace" } else { "organisation" });
        shown["configurations"] = shown_settings(&self.configurations, &self.masks["configurations"]);
        shown["updated_at"] = shown["last_updated_at"].clone();
        shown["metadata"] = self.metadata();
        shown["global_workspace_access"] = json!({ "enabled": self.is_for_all });
        shown
    }

    fn created(&self, call: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "object": Self::OBJECT, "warnings": call.origin.warnings() })
    }

    fn updated(&self, call: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "warnings": call.origin.warnings() })
    }
}

impl McpIntegration {
    pub fn place(&self) -> SealedPlace {
        place_of(self.organisation_id, self.id)
    }

    /// What the server said of itself, and how the last look at it went.
    pub fn metadata(&self) -> Value {
        metadata_shown(&self.server_metadata, &json!(self.sync_status), &json!(self.sync_error), self.last_synced_at)
    }
}

pub fn metadata_shown(server_metadata: &Value, status: &Value, error: &Value, last_synced_at: Option<Time>) -> Value {
    let mut shown = json!({
        "title": null, "description": null, "icons": null, "server_name": null, "server_version": null,
        "protocol_version": null, "website_url": null, "instructions": null, "capability_flags": null,
    });
    for (name, value) in server_metadata.as_object().into_iter().flatten() {
        shown[name] = value.clone();
    }
    shown["sync_status"] = status.clone();
    shown["sync_error"] = error.clone();
    shown["last_synced_at"] = json!(last_synced_at);
    shown
}

pub fn place_of(organisation: Uuid, id: Uuid) -> SealedPlace {
    SealedPlace { organisation, table: "mcp_integrations", row: id, field: "sealed" }
}

/// The route table asks for a scope of either level; here the level is known.
fn require(call: &Call, workspace: Option<Uuid>, verb: &'static str) -> Result<(), ApiError> {
    let is_workspace_level = workspace.is_some() || call.caller.workspace_id().is_some();
    let needs: &'static [&'static str] = match (is_workspace_level, verb) {
        (true, "create") => &["workspace_mcp_integrations.create"],
        (true, "read") => &["workspace_mcp_integrations.read"],
        (true, "update") => &["workspace_mcp_integrations.update"],
        (true, _) => &["workspace_mcp_integrations.delete"],
        (false, "create") => &["organisation_mcp_integrations.create"],
        (false, "read") => &["organisation_mcp_integrations.read"],
        (false, "update") => &["organisation_mcp_integrations.update"],
        (false, _) => &["organisation_mcp_integrations.delete"],
    };
    let needs = Scopes::Any(needs);
    if needs.are_met_by(&call.caller.scopes) { Ok(()) } else { Err(ApiError::MissingScope { needs }) }
}
