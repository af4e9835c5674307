//! The followed tables of MCP servers: by what their rows are found, and which of them requests still need.

use crate::snapshot::collection::Tracked;
use shared::model::id::{OrganisationId, UserId, WorkspaceId};
use shared::model::{
    McpCapability, McpClient, McpConnection, McpGrant, McpIntegration, McpServer, McpServerCapability, McpUserAccess,
    Status,
};
use tokio_postgres::Row;
use uuid::Uuid;

impl Tracked for McpServer {
    type Key = (OrganisationId, String);
    const TABLE: &'static str = "mcp_servers";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.organisation_id, self.slug.clone())
    }

    fn is_live(&self) -> bool {
        self.status == Status::Active
    }
}

impl Tracked for McpIntegration {
    type Key = Uuid;
    const TABLE: &'static str = "mcp_integrations";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Uuid {
        self.id
    }

    fn is_live(&self) -> bool {
        self.status == Status::Active
    }
}

impl Tracked for McpGrant {
    type Key = (Uuid, WorkspaceId);
    const TABLE: &'static str = "mcp_integration_workspaces";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.integration_id, self.workspace_id)
    }
}

impl Tracked for McpCapability {
    type Key = (Uuid, String, String);
    const TABLE: &'static str = "mcp_capabilities";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.integration_id, self.kind.clone(), self.name.clone())
    }

    /// What is switched off; what has an address, by which a server may switch it off; what was approved; what has a price.
    fn is_live(&self) -> bool {
        !self.is_usable || self.uri.is_some() || self.hash.is_some() || self.price.is_some()
    }
}

impl Tracked for McpServerCapability {
    type Key = (Uuid, String, String);
    const TABLE: &'static str = "mcp_server_capabilities";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.server_id, self.kind.clone(), self.name.clone())
    }

    fn is_live(&self) -> bool {
        !self.enabled
    }
}

impl Tracked for McpUserAccess {
    type Key = (Uuid, UserId);
    const TABLE: &'static str = "mcp_user_access";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.server_id, self.user_id)
    }
}

impl Tracked for McpConnection {
    type Key = (Uuid, UserId);
    const TABLE: &'static str = "mcp_connections";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.server_id, self.user_id)
    }
}

impl Tracked for McpClient {
    type Key = Uuid;
    const TABLE: &'static str = "mcp_clients";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Uuid {
        self.integration_id
    }

    /// Those of people's tokens have none of their own.
    fn is_live(&self) -> bool {
        self.access_token.is_some()
    }
}
