//! MCP servers: a workspace's instances of MCP integrations. Calling them is the proxy's part; what stands here registers
//! them, says who may use what of them, keeps people's connections, and asks the server behind one.

mod capabilities;
mod connections;
mod docs;
mod tokens;
mod upstream;
mod user_access;

use crate::app::App;
use crate::crud::free_slug::SlugScope;
use crate::crud::{self, Action, Answer, Resource, Routes, RowLock};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::{Call, tenancy};
use crate::resources::integrations::shown_settings;
use crate::resources::mcp_integrations::metadata_shown;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy};
use shared::model::Status;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

const SLUGS: SlugScope = SlugScope { table: "mcp_servers", owner: "organisation_id" };

pub fn routes() -> Routes {
    Routes::default()
        .post("/mcp-servers", crud::create::<McpServer>)
        .get("/mcp-servers", list)
        .get("/mcp-servers/{id}", read)
        .put("/mcp-servers/{id}", crud::update::<McpServer>)
        .delete("/mcp-servers/{id}", delete)
        .get("/mcp-servers/{id}/metadata", upstream::metadata)
        .post("/mcp-servers/{id}/metadata/sync", upstream::sync)
        .post("/mcp-servers/{id}/test", upstream::test)
        .get("/mcp-servers/{id}/capabilities", capabilities::list)
        .put("/mcp-servers/{id}/capabilities", capabilities::update)
        .post("/mcp-servers/{id}/capabilities/sync", upstream::sync)
        .get("/mcp-servers/{id}/user-access", user_access::list)
        .put("/mcp-servers/{id}/user-access", user_access::update)
        .get("/mcp-servers/{id}/user-access/check", user_access::check)
        .get("/mcp-servers/{id}/connections", connections::list)
        .delete("/mcp-servers/{id}/connections", connections::delete)
        .get("/mcp-servers/{id}/tokens", tokens::read)
        .put("/mcp-servers/{id}/tokens", tokens::store)
        .delete("/mcp-servers/{id}/tokens", tokens::delete)
        .get("/mcp-servers/{id}/client-info", tokens::client_info)
        .get("/mcp-servers/{id}/connect", tokens::connect)
        .describe(docs::docs())
}

#[derive(Serialize)]
pub struct McpServer {
    id: Uuid,
    organisation_id: Uuid,
    slug: String,
    name: String,
    description: Option<String>,
    status: Status,
    owner_id: Option<Uuid>,
    workspace_id: Uuid,
    workspace_name: String,
    workspace_slug: String,
    pub mcp_integration_id: Uuid,
    mcp_integration_slug: String,
    mcp_integration_url: String,
    auth_type: String,
    created_at: Time,
    last_updated_at: Time,
    /// Of its integration: `configurations`, `masks`, `transport`, `status`, `said`, `sync_status` and `sync_error`.
    #[serde(skip)]
    integration: Value,
    #[serde(skip)]
    last_synced_at: Option<Time>,
}

#[derive(Deserialize)]
pub struct NewMcpServer {
    name: String,
    mcp_integration_id: String,
    slug: Option<String>,
    description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct McpServerChange {
    name: Option<String>,
    mcp_integration_id: Option<String>,
    description: Field<String>,
}

impl Resource for McpServer {
    type Create = NewMcpServer;
    type Update = McpServerChange;
    const OBJECT: &'static str = "mcp-server";
    const PATH: &'static str = "/mcp-servers";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "mcp_servers",
        columns: SelectList::Sql(
            "id, organisation_id, slug, name, description, status, created_by, workspace_id, mcp_integration_id,
            created_at, last_updated_at,
            (SELECT w.name FROM workspaces w WHERE w.id = mcp_servers.workspace_id) AS workspace_name,
            (SELECT w.slug FROM workspaces w WHERE w.id = mcp_servers.workspace_id) AS workspace_slug,
            (SELECT i.last_synced_at FROM mcp_integrations i WHERE i.id = mcp_servers.mcp_integration_id) AS last_synced_at,
            (SELECT jsonb_build_object('slug', i.slug, 'url', i.url, 'auth_type', i.auth_type, 'transport', i.transport,
                    'status', i.status, 'configurations', i.configurations, 'masks', i.masks -> 'configurations',
                    'said', i.metadata, 'sync_status', i.sync_status, 'sync_error', i.sync_error)
             FROM mcp_integrations i WHERE i.id = mcp_servers.mcp_integration_id) AS integration",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Workspace("workspace_id"),
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        let integration: Value = row.try_get("integration")?;
        let text = |name: &str| integration[name].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            slug: row.try_get("slug")?,
            name: row.try_get("name")?,
            description: row.try_get("description")?,
            status: row.try_get("status")?,
            owner_id: row.try_get("created_by")?,
            workspace_id: row.try_get("workspace_id")?,
            workspace_name: row.try_get("workspace_name")?,
            workspace_slug: row.try_get("workspace_slug")?,
            mcp_integration_id: row.try_get("mcp_integration_id")?,
            mcp_integration_slug: text("slug"),
            mcp_integration_url: text("url"),
            auth_type: text("auth_type"),
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            last_synced_at: row.try_get("last_synced_at")?,
            integration,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.workspace_id)
    }

    async fn create(action: &Action<'_>, body: NewMcpServer) -> Result<Columns, ApiError> {
        let columns = Columns::default()
            .set("name", text::name("name", body.name.clone())?)
            .set("description", body.description.map(described).transpose()?);
        let Some(workspace) = action.workspace_id else { return Err(ApiError::field("workspace_id", "is required")) };
        let integration = integration_for(action, &body.mcp_integration_id, workspace).await?;
        let slug = match body.slug {
            None => text::generated_slug("", &body.name, 40),
            Some(slug) if (3..=50).contains(&slug.len()) => text::slug("slug", slug)?,
            Some(_) => return Err(ApiError::field("slug", "must have 3 to 50 characters")),
        };
        if !SLUGS.is_free(&action.tx, action.organisation_id(), &slug).await? {
            return Err(ApiError::Conflict("There is a mcp-server with this slug already".into()));
        }
        let columns = columns.set("slug", slug).set("mcp_integration_id", integration);
        Ok(columns.set("created_by", action.call.caller.actor_id()))
    }

    async fn update(_: &Action<'_>, current: &Self, body: McpServerChange) -> Result<Columns, ApiError> {
        let own = [current.mcp_integration_id.to_string(), current.mcp_integration_slug.clone()];
        if body.mcp_integration_id.is_some_and(|sent| !own.contains(&sent)) {
            return Err(ApiError::field("mcp_integration_id", "cannot be changed"));
        }
        Ok(Columns::default()
            .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set_if("description", body.description.try_map(described)?.sent()))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let ids: Vec<Uuid> = call.query().list("id").iter().filter_map(|id| tenancy::id(id)).collect();
        let filter = match call.query().text("id") {
            Some(_) => Filter::default().one_of("id", ids),
            None => Filter::default(),
        };
        Ok(match call.query().text("search") {
            Some(text) => filter.contains("name", text),
            None => filter,
        })
    }

    fn shown(&self, _: &Call) -> Value {
        let of = &self.integration;
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["metadata"] = metadata_shown(&of["said"], &of["sync_status"], &of["sync_error"], self.last_synced_at);
        shown["mcp_integration_details"] = json!({
            "id": self.mcp_integration_id, "slug": self.mcp_integration_slug, "status": of["status"],
            "url": self.mcp_integration_url, "transport": of["transport"], "auth_type": self.auth_type,
            "configurations": shown_settings(&of["configurations"], &of["masks"]),
        });
        shown
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "object": Self::OBJECT })
    }

    fn updated(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug })
    }
}

fn described(text: String) -> Result<String, ApiError> {
    text::sized("description", text, 0..=500)
}

async fn list(state: State<App>, call: Call) -> Answer {
    let (_, offset) = call.query().page(McpServer::PAGES)?;
    let base = state.0.mcp_base_url.clone();
    let Json(mut listed) = crud::list::<McpServer>(state, call).await?;
    for one in listed["data"].as_array_mut().into_iter().flatten() {
        add_url(one, &base);
    }
    let count = listed["data"].as_array().map_or(0, Vec::len);
    let has_more = offset.saturating_add(i64::try_from(count).unwrap_or(0)) < listed["total"].as_i64().unwrap_or(0);
    listed["has_more"] = json!(has_more);
    Ok(Json(listed))
}

async fn read(state: State<App>, call: Call, name: Path<String>) -> Answer {
    let base = state.0.mcp_base_url.clone();
    let Json(mut shown) = crud::read::<McpServer>(state, call, name).await?;
    add_url(&mut shown, &base);
    Ok(Json(shown))
}

/// Where its clients reach it.
fn add_url(shown: &mut Value, base: &str) {
    shown["url"] = format!("{base}/{}/mcp", shown["slug"].as_str().unwrap_or_default()).into();
}

async fn delete(state: State<App>, call: Call, name: Path<String>) -> Answer {
    let _ = crud::delete::<McpServer>(state, call, name).await?;
    Ok(Json(json!({ "success": true })))
}

/// The integration of this slug or id, if the workspace may use it; it stays usable until the transaction ends.
async fn integration_for(action: &Action<'_>, name: &str, workspace: Uuid) -> Result<Uuid, ApiError> {
    const FIND: &str = "SELECT id, workspace_id IS NOT NULL AS is_own FROM mcp_integrations
        WHERE organisation_id = $1 AND (id = $2 OR slug = $3) AND status = 'active'
          AND (workspace_id IS NULL OR workspace_id = $4) FOR SHARE";
    const GRANTED: &str = "SELECT FROM mcp_integration_workspaces
                           WHERE integration_id = $1 AND workspace_id = $2 AND enabled FOR SHARE";
    let organisation = action.organisation_id();
    let found = match text::is_slug(name) {
        true => action.tx.query_opt(FIND, &[&organisation, &tenancy::id(name), &name, &workspace]).await?,
        false => None,
    };
    let row = found.ok_or(ApiError::NotFound("mcp-integration"))?;
    let id: Uuid = row.try_get("id")?;
    if row.try_get("is_own")? || action.tx.query_opt(GRANTED, &[&id, &workspace]).await?.is_some() {
        return Ok(id);
    }
    Err(ApiError::Forbidden(
        "The workspace has no access to this MCP integration; PUT /v1/mcp-integrations/{id}/workspaces gives it",
    ))
}

/// The server that a path names, among those that the caller may see.
async fn found(db: &impl GenericClient, call: &Call, name: &str) -> Result<McpServer, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    crud::find::<McpServer>(db, call, name, workspace, RowLock::No).await
}
