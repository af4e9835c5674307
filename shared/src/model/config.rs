//! A saved config as the proxy needs it: what the current version says, and how requests name it.

use super::id::{ConfigId, OrganisationId, WorkspaceId};
use super::status::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub id: ConfigId,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub slug: String,
    /// What requests of the workspace use when they name no config.
    pub is_default: bool,
    pub status: Status,
    pub version_id: Uuid,
    pub config: Value,
}

impl Config {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, slug, is_default, status, version_id, config";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            slug: row.try_get("slug")?,
            is_default: row.try_get("is_default")?,
            status: row.try_get("status")?,
            version_id: row.try_get("version_id")?,
            config: row.try_get("config")?,
        })
    }

    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }
}

/// Not the content, which may hold credentials.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Config({} {} {})", self.workspace_id, self.slug, self.version_id)
    }
}
