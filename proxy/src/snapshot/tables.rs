//! The tables the proxy follows: what each row is found by.

use super::collection::Tracked;
use super::pool::Pool;
use shared::api_key::KeyHash;
use shared::model::{ApiKey, Deployment, Organisation, Workspace};
use tokio_postgres::Row;
use uuid::Uuid;

impl Tracked for ApiKey {
    type Key = KeyHash;
    const TABLE: &'static str = "api_keys";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::from_row(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> KeyHash {
        self.hash
    }

    fn other_key(&self) -> Option<KeyHash> {
        self.previous.as_ref().map(|previous| previous.hash)
    }

    fn share(&mut self, pool: &mut Pool) {
        pool.share(&mut self.scopes);
    }
}

/// Keys name a workspace by id, tokens also by its slug.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WorkspaceKey {
    Id(Uuid),
    Slug(Uuid, String),
}

impl Tracked for Workspace {
    type Key = WorkspaceKey;
    const TABLE: &'static str = "workspaces";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> WorkspaceKey {
        WorkspaceKey::Id(self.id)
    }

    fn other_key(&self) -> Option<WorkspaceKey> {
        Some(WorkspaceKey::Slug(self.organisation_id, self.slug.clone()))
    }
}

impl Tracked for Organisation {
    type Key = Uuid;
    const TABLE: &'static str = "organisations";
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
}

impl Tracked for Deployment {
    type Key = KeyHash;
    const TABLE: &'static str = "deployments";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::from_row(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> KeyHash {
        self.token_hash
    }
}
