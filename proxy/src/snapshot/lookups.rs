//! What requests ask the snapshot: the rows they name, each found by a key. Whatever costs the size of a table says so.

use super::saved_config::ConfigKey;
use super::tables::{DataKeyName, PersonKey, ProviderKey, WorkspaceKey};
use super::{Policies, SavedConfig, Snapshot};
use shared::identity::api_key::KeyHash;
use shared::model::id::{IntegrationId, OrganisationId, PolicyId, WorkspaceId};
use shared::model::{
    ApiKey, Deployment, EmailDigest, Integration, IntegrationModel, IntegrationWorkspace, Organisation, PolicyEntity,
    Provider, SecretReference, Workspace,
};
use shared::secrets::seal::data_key::DataKey;
use std::sync::Arc;
use uuid::Uuid;

impl Snapshot {
    pub fn api_key(&self, hash: &KeyHash) -> Option<Arc<ApiKey>> {
        self.api_keys.find(hash)
    }

    /// A key by its id, for what runs on behalf of it without its secret. Not for requests.
    pub fn api_key_with_id(&self, id: Uuid) -> Option<Arc<ApiKey>> {
        self.api_keys.find_by_id(id)
    }

    pub fn workspace(&self, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.workspaces.find(&WorkspaceKey::Id(*id))
    }

    /// A workspace of this organisation by its id or slug.
    pub fn workspace_named(&self, organisation: OrganisationId, name: &str) -> Option<Arc<Workspace>> {
        let by_id = name.parse().ok().and_then(|id| self.workspace(&id));
        let found = by_id.or_else(|| self.workspaces.find(&WorkspaceKey::Slug(organisation, name.to_owned())));
        found.filter(|workspace| workspace.organisation_id == organisation)
    }

    pub fn organisation(&self, id: &OrganisationId) -> Option<Arc<Organisation>> {
        self.organisations.find(id)
    }

    /// Whether something holds for an organisation. False for one that is not there.
    pub fn organisation_is(&self, id: &OrganisationId, holds: impl FnOnce(&Organisation) -> bool) -> bool {
        self.organisations.read(id, holds).unwrap_or(false)
    }

    /// For how many seconds an organisation lets answers be kept at most, if it says so.
    pub fn cache_max_age(&self, id: &OrganisationId) -> Option<u64> {
        self.organisations.read(id, |organisation| organisation.cache_max_age).flatten()
    }

    /// The organisation of an installation that has one.
    pub fn only_organisation(&self) -> Option<Arc<Organisation>> {
        self.organisations.only()
    }

    /// Whether a person of this address was in the organisation and is no longer. Who never was is not known here.
    pub fn is_removed(&self, organisation: OrganisationId, email: EmailDigest) -> bool {
        let has = |is_active: bool| self.people.find(&PersonKey { organisation, email, is_active }).is_some();
        has(false) && !has(true)
    }

    /// A deployment by the hash of its token.
    pub fn deployment(&self, token: &KeyHash) -> Option<Arc<Deployment>> {
        self.deployments.find(token)
    }

    /// A config of an organisation by its slug or its id.
    pub fn config(&self, organisation: OrganisationId, name: &str) -> Option<Arc<SavedConfig>> {
        self.configs.find(&ConfigKey::Name(organisation, name.to_owned()))
    }

    /// What a workspace's requests use when they name no config.
    pub fn default_config(&self, workspace: WorkspaceId) -> Option<Arc<SavedConfig>> {
        self.configs.find(&ConfigKey::DefaultOf(workspace))
    }

    /// Costs the size of the table.
    pub fn all_configs(&self) -> Vec<Arc<SavedConfig>> {
        self.configs.all()
    }

    pub fn provider(&self, workspace: WorkspaceId, slug: &str) -> Option<Arc<Provider>> {
        self.providers.find(&ProviderKey::Named(workspace, slug.to_owned()))
    }

    /// Those of a workspace, the oldest first, if it has any.
    pub fn providers_in_order(&self, workspace: WorkspaceId) -> Option<Arc<[Arc<Provider>]>> {
        self.catalog.providers(&workspace)
    }

    pub fn integration(&self, id: &IntegrationId) -> Option<Arc<Integration>> {
        self.integrations.find(id)
    }

    pub fn integration_model(&self, integration: IntegrationId, model: &str) -> Option<Arc<IntegrationModel>> {
        self.integration_models.find(&(integration, model.to_owned()))
    }

    /// The models that an integration treats otherwise than the rest, if there are any.
    pub fn models_of(&self, integration: &IntegrationId) -> Option<Arc<[Arc<IntegrationModel>]>> {
        self.catalog.models(integration)
    }

    pub fn integration_workspace(
        &self,
        integration: IntegrationId,
        workspace: WorkspaceId,
    ) -> Option<Arc<IntegrationWorkspace>> {
        self.integration_workspaces.find(&(integration, workspace))
    }

    pub fn data_key(&self, id: &Uuid) -> Option<Arc<DataKey>> {
        self.data_keys.find(&DataKeyName::Id(*id))
    }

    /// The data key that an organisation's values are sealed with now, if it has one.
    pub fn sealing_key(&self, organisation: Uuid) -> Option<Arc<DataKey>> {
        self.data_keys.find(&DataKeyName::ActiveOf(organisation))
    }

    /// All that an organisation has. Costs the size of the table.
    pub fn data_keys_of(&self, organisation: Uuid) -> Vec<Arc<DataKey>> {
        let mut all = self.data_keys.all();
        all.retain(|key| key.organisation_id == organisation);
        all
    }

    pub fn secret_reference(&self, id: &Uuid) -> Option<Arc<SecretReference>> {
        self.secret_references.find(id)
    }

    /// All of them: to fetch them before they are needed.
    pub fn secret_references(&self) -> Vec<Arc<SecretReference>> {
        self.secret_references.all()
    }

    /// The active policies of a workspace, if it has any.
    pub fn policies(&self, workspace: &WorkspaceId) -> Option<Arc<Policies>> {
        self.policies.find(workspace)
    }

    /// What is remembered of one group of a usage-limits policy.
    pub fn policy_entity(&self, policy: PolicyId, value_key: &str) -> Option<Arc<PolicyEntity>> {
        self.policy_entities.find(&(policy, value_key.to_owned()))
    }

    /// How often that was another.
    pub fn policy_entity_changes(&self) -> u64 {
        self.policy_entities.changes()
    }
}
