//! The tables the proxy follows: what each row is found by.

use super::collection::Tracked;
use super::list_pool::ListPool;
use shared::identity::api_key::KeyHash;
use shared::model::id::{IntegrationId, OrganisationId, PolicyId, ProviderId, WorkspaceId};
use shared::model::{
    AccessStatus, ApiKey, Deployment, EmailDigest, Integration, IntegrationModel, IntegrationWorkspace, Organisation,
    Person, PolicyEntity, Provider, RateLimitsPolicy, SecretReference, UsageLimitsPolicy, Workspace,
};
use shared::secrets::seal::data_key::DataKey;
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
        self.id.uuid()
    }

    fn key(&self) -> KeyHash {
        self.hash
    }

    fn other_keys(&self) -> Vec<KeyHash> {
        self.previous.iter().map(|previous| previous.hash).collect()
    }

    fn share(&mut self, pool: &mut ListPool) {
        pool.share(&mut self.scopes);
    }
}

/// Keys name a workspace by id, tokens also by its slug.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WorkspaceKey {
    Id(WorkspaceId),
    Slug(OrganisationId, String),
}

impl Tracked for Workspace {
    type Key = WorkspaceKey;
    const TABLE: &'static str = "workspaces";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> WorkspaceKey {
        WorkspaceKey::Id(self.id)
    }

    fn other_keys(&self) -> Vec<WorkspaceKey> {
        vec![WorkspaceKey::Slug(self.organisation_id, self.slug.clone())]
    }
}

impl Tracked for Organisation {
    type Key = OrganisationId;
    const TABLE: &'static str = "organisations";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> OrganisationId {
        self.id
    }
}

/// An address may be of several rows, of which one at most is active: somebody may leave and come back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PersonKey {
    pub organisation: OrganisationId,
    pub email: EmailDigest,
    pub is_active: bool,
}

impl Tracked for Person {
    type Key = PersonKey;
    const TABLE: &'static str = "users";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> PersonKey {
        PersonKey { organisation: self.organisation_id, email: self.email, is_active: self.is_active }
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

/// A sealed value names its key; who seals asks for the organisation's active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataKeyName {
    Id(Uuid),
    ActiveOf(Uuid),
}

impl Tracked for DataKey {
    type Key = DataKeyName;
    const TABLE: &'static str = "data_keys";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> DataKeyName {
        DataKeyName::Id(self.id)
    }

    fn other_keys(&self) -> Vec<DataKeyName> {
        self.is_active.then_some(DataKeyName::ActiveOf(self.organisation_id)).into_iter().collect()
    }
}

impl Tracked for SecretReference {
    type Key = Uuid;
    const TABLE: &'static str = "secret_references";
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

impl Tracked for Integration {
    type Key = IntegrationId;
    const TABLE: &'static str = "integrations";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> IntegrationId {
        self.id
    }
}

/// A model by its integration and its name.
impl Tracked for IntegrationModel {
    type Key = (IntegrationId, String);
    const TABLE: &'static str = "integration_models";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.integration_id, self.slug.clone())
    }
}

/// A grant by integration and workspace.
impl Tracked for IntegrationWorkspace {
    type Key = (IntegrationId, WorkspaceId);
    const TABLE: &'static str = "integration_workspaces";
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

/// A provider by its workspace and its name there. An archived one has given its name free, so it is found by its id
/// alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProviderKey {
    Named(WorkspaceId, String),
    Archived(ProviderId),
}

impl Tracked for Provider {
    type Key = ProviderKey;
    const TABLE: &'static str = "providers";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> Self::Key {
        match self.status {
            AccessStatus::Archived => ProviderKey::Archived(self.id),
            _ => ProviderKey::Named(self.workspace_id, self.slug.clone()),
        }
    }
}

impl Tracked for RateLimitsPolicy {
    type Key = PolicyId;
    const TABLE: &'static str = "rate_limits_policies";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::from_row(row)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> PolicyId {
        self.id
    }
}

impl Tracked for UsageLimitsPolicy {
    type Key = PolicyId;
    const TABLE: &'static str = "usage_limits_policies";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::from_row(row)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> PolicyId {
        self.id
    }
}

/// A group by its policy and its name.
impl Tracked for PolicyEntity {
    type Key = (PolicyId, String);
    const TABLE: &'static str = "policy_entities";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.policy_id, self.value_key.clone())
    }
}
