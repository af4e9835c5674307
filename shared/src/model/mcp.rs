//! MCP servers as the proxy needs them: which server an address means, what stands behind it, who may use it, what of it
//! is switched off, and the tokens for it, sealed.

use super::id::{OrganisationId, UserId, WorkspaceId};
use super::status::Status;
use crate::mcp::Kind;
use crate::secrets::seal::{Sealed, SealedPlace};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;
use uuid::Uuid;

/// A workspace's instance of an integration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpServer {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub integration_id: Uuid,
    pub slug: String,
    /// Whether people may use it of whom nothing else is said.
    pub is_open: bool,
    pub status: Status,
}

impl McpServer {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, mcp_integration_id, slug,
                               default_user_access = 'allow' AS is_open, status";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            integration_id: row.try_get("mcp_integration_id")?,
            slug: row.try_get("slug")?,
            is_open: row.try_get("is_open")?,
            status: row.try_get("status")?,
        })
    }
}

/// A server somewhere, and how it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpIntegration {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    /// None for those of the organisation, which workspaces are granted by an `McpGrant`.
    pub workspace_id: Option<WorkspaceId>,
    pub slug: String,
    pub url: String,
    pub auth_type: String,
    pub transport: String,
    /// Without its secret fields.
    pub configurations: Value,
    /// A `Credentials`; none when nothing is secret.
    pub sealed: Option<Sealed>,
    /// Which fields come from secret managers.
    #[serde(default)]
    pub secret_mappings: Value,
    pub status: Status,
}

impl McpIntegration {
    pub const COLUMNS: &str =
        "id, organisation_id, workspace_id, slug, url, auth_type, transport, configurations, sealed,
                               secret_mappings, status";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            slug: row.try_get("slug")?,
            url: row.try_get("url")?,
            auth_type: row.try_get("auth_type")?,
            transport: row.try_get("transport")?,
            configurations: row.try_get("configurations")?,
            secret_mappings: row.try_get("secret_mappings")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
            status: row.try_get("status")?,
        })
    }

    /// Where `sealed` belongs.
    pub fn place(&self) -> SealedPlace {
        let organisation = self.organisation_id.uuid();
        SealedPlace { organisation, table: "mcp_integrations", row: self.id, field: "sealed" }
    }
}

/// That a workspace may use an integration of its organisation, or may not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpGrant {
    pub id: Uuid,
    pub integration_id: Uuid,
    pub workspace_id: WorkspaceId,
    pub enabled: bool,
}

impl McpGrant {
    pub const COLUMNS: &str = "id, integration_id, workspace_id, enabled";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            integration_id: row.try_get("integration_id")?,
            workspace_id: row.try_get("workspace_id")?,
            enabled: row.try_get("enabled")?,
        })
    }
}

/// Something that an integration offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpCapability {
    pub id: Uuid,
    pub integration_id: Uuid,
    /// A `Kind`.
    pub kind: String,
    pub name: String,
    /// Of a resource, or the pattern of a template, once it was listed.
    pub uri: Option<String>,
    /// Whether anybody may see and call it.
    pub is_usable: bool,
    /// Of what was approved of a tool or prompt, once it was listed; and of the same as older clients are told it.
    #[serde(default)]
    pub hash: Option<[u8; 32]>,
    #[serde(default)]
    pub plain_hash: Option<[u8; 32]>,
    /// Of a call, in US cents.
    #[serde(default)]
    pub price: Option<Decimal>,
}

impl McpCapability {
    pub const COLUMNS: &str = "id, integration_id, type, name,
                               COALESCE(definition->>'uri', definition->>'uriTemplate') AS uri, is_usable,
                               CASE WHEN type IN ('tool', 'prompt', 'instructions') AND is_usable THEN definition_hash END AS hash,
                               CASE WHEN type IN ('tool', 'prompt', 'instructions') AND is_usable THEN plain_hash END AS plain_hash,
                               price";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            integration_id: row.try_get("integration_id")?,
            kind: row.try_get("type")?,
            name: row.try_get("name")?,
            uri: row.try_get("uri")?,
            is_usable: row.try_get("is_usable")?,
            hash: hash(row, "hash")?,
            plain_hash: hash(row, "plain_hash")?,
            price: row.try_get("price")?,
        })
    }

    pub fn kind(&self) -> Option<Kind> {
        Kind::parse(&self.kind)
    }
}

fn hash(row: &Row, column: &str) -> Result<Option<[u8; 32]>, tokio_postgres::Error> {
    let bytes: Option<&[u8]> = row.try_get(column)?;
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()))
}

/// Something that one server switches off of its integration, which may be unknown yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpServerCapability {
    pub id: Uuid,
    pub server_id: Uuid,
    pub kind: String,
    pub name: String,
    pub enabled: bool,
}

impl McpServerCapability {
    pub const COLUMNS: &str = "id, server_id, type, name, enabled";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            server_id: row.try_get("server_id")?,
            kind: row.try_get("type")?,
            name: row.try_get("name")?,
            enabled: row.try_get("enabled")?,
        })
    }

    pub fn kind(&self) -> Option<Kind> {
        Kind::parse(&self.kind)
    }
}

/// Whether one person may use a server, whatever holds for the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpUserAccess {
    pub id: Uuid,
    pub server_id: Uuid,
    pub user_id: UserId,
    pub enabled: bool,
}

impl McpUserAccess {
    pub const COLUMNS: &str = "id, server_id, user_id, enabled";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            server_id: row.try_get("server_id")?,
            user_id: row.try_get("user_id")?,
            enabled: row.try_get("enabled")?,
        })
    }
}

/// A person's token at the server behind an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpConnection {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub server_id: Uuid,
    pub user_id: UserId,
    pub access_token: Sealed,
    pub expires_at: Option<DateTime<Utc>>,
}

impl McpConnection {
    pub const COLUMNS: &str = "id, organisation_id, server_id, user_id, access_token, expires_at";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            server_id: row.try_get("server_id")?,
            user_id: row.try_get("user_id")?,
            access_token: Sealed::from(row.try_get::<_, &[u8]>("access_token")?),
            expires_at: row.try_get("expires_at")?,
        })
    }

    /// Where `access_token` belongs.
    pub fn place(&self) -> SealedPlace {
        let organisation = self.organisation_id.uuid();
        SealedPlace { organisation, table: "mcp_connections", row: self.id, field: "access_token" }
    }
}

/// The gateway's own token at the server behind an integration, where one serves everybody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpClient {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub integration_id: Uuid,
    pub access_token: Option<Sealed>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl McpClient {
    pub const COLUMNS: &str = "id, organisation_id, integration_id, access_token, expires_at";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            integration_id: row.try_get("integration_id")?,
            access_token: row.try_get::<_, Option<&[u8]>>("access_token")?.map(Sealed::from),
            expires_at: row.try_get("expires_at")?,
        })
    }

    /// Where `access_token` belongs.
    pub fn place(&self) -> SealedPlace {
        let organisation = self.organisation_id.uuid();
        SealedPlace { organisation, table: "mcp_clients", row: self.id, field: "access_token" }
    }
}
