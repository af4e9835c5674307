//! Everything the proxy knows of the control plane, in memory. Requests read it without a lock, an await or an
//! allocation; the follower alone writes it.
//!
//! Rows come from Postgres (`feed`, driven by `follower`) or, while Postgres is away at start, from the copy on disk
//! (`disk`, written by `disk_keeper`). What is not here does not exist: an unknown key is refused also while Postgres is
//! away. To follow a further table, say what it is in `tables`, and add a field and its line in `collections`.

pub mod backoff;
pub mod collection;
pub mod disk;
pub mod disk_keeper;
pub mod feed;
pub mod follower;
pub mod list_pool;
mod policies;
mod progress;
pub mod saved_config;
pub mod sharded;
mod tables;

pub use follower::Follower;
pub use policies::Policies;
pub use progress::{Confirmed, FeedProgress};
pub use saved_config::SavedConfig;

use chrono::{DateTime, Utc};
use collection::{Collection, Followed, Incoming, Merged};
use disk::SnapshotView;
use policies::ByWorkspace;
use saved_config::ConfigKey;
use shared::id::{IntegrationId, OrganisationId, PolicyId, WorkspaceId};
use shared::identity::api_key::KeyHash;
use shared::model::{
    ApiKey, Deployment, EmailDigest, Integration, IntegrationModel, IntegrationWorkspace, Organisation, Person,
    PolicyEntity, Provider, RateLimitsPolicy, SecretReference, UsageLimitsPolicy, Workspace,
};
use shared::seal::data_key::DataKey;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tables::{PersonKey, ProviderKey, WorkspaceKey};
use tokio::sync::watch;
use uuid::Uuid;

pub struct Snapshot {
    api_keys: Collection<ApiKey>,
    workspaces: Collection<Workspace>,
    organisations: Collection<Organisation>,
    people: Collection<Person>,
    deployments: Collection<Deployment>,
    configs: Collection<SavedConfig>,
    providers: Collection<Provider>,
    integrations: Collection<Integration>,
    integration_models: Collection<IntegrationModel>,
    integration_workspaces: Collection<IntegrationWorkspace>,
    data_keys: Collection<DataKey>,
    secret_references: Collection<SecretReference>,
    rate_policies: Collection<RateLimitsPolicy>,
    usage_policies: Collection<UsageLimitsPolicy>,
    policy_entities: Collection<PolicyEntity>,
    policies: ByWorkspace,
    /// How often the rows changed that `policies` is made of, when it was made.
    policies_of: AtomicU64,
    /// Rows change only while this is held for writing, so a copy taken while it is read is whole.
    progress: watch::Sender<FeedProgress>,
    loaded: AtomicBool,
    connected: AtomicBool,
    resting: AtomicBool,
    failures: AtomicU64,
    skipped_rows: AtomicU64,
    read_rows: AtomicU64,
}

/// What an administrator sets up for applications, to make a snapshot of.
#[derive(Default)]
pub struct Catalog {
    pub integrations: Vec<Integration>,
    pub models: Vec<IntegrationModel>,
    pub grants: Vec<IntegrationWorkspace>,
    pub providers: Vec<Provider>,
    pub data_keys: Vec<DataKey>,
    pub configs: Vec<SavedConfig>,
}

impl Snapshot {
    pub fn empty() -> Self {
        Self {
            api_keys: Collection::empty(),
            workspaces: Collection::empty(),
            organisations: Collection::empty(),
            people: Collection::empty(),
            deployments: Collection::empty(),
            configs: Collection::empty(),
            providers: Collection::empty(),
            integrations: Collection::empty(),
            integration_models: Collection::empty(),
            integration_workspaces: Collection::empty(),
            data_keys: Collection::empty(),
            secret_references: Collection::empty(),
            rate_policies: Collection::empty(),
            usage_policies: Collection::empty(),
            policy_entities: Collection::empty(),
            policies: ByWorkspace::default(),
            policies_of: AtomicU64::new(0),
            progress: watch::Sender::new(FeedProgress::default()),
            loaded: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            skipped_rows: AtomicU64::new(0),
            read_rows: AtomicU64::new(0),
        }
    }

    /// A snapshot of just these rows, as if read from Postgres a moment ago.
    pub fn with_rows(api_keys: Vec<ApiKey>, workspaces: Vec<Workspace>) -> Self {
        let snapshot = Self::empty();
        snapshot.api_keys.replace(api_keys);
        snapshot.workspaces.replace(workspaces);
        snapshot.advance(|progress| progress.confirmed = Some(Confirmed::now(Utc::now())));
        snapshot
    }

    /// The same with just these organisations.
    pub fn with_organisations(self, organisations: Vec<Organisation>) -> Self {
        self.organisations.replace(organisations);
        self
    }

    /// The same with just these policies.
    pub fn with_policies(self, rates: Vec<RateLimitsPolicy>, budgets: Vec<UsageLimitsPolicy>) -> Self {
        self.rate_policies.replace(rates);
        self.usage_policies.replace(budgets);
        self.advance(|_| {});
        self
    }

    /// Takes over what is remembered of one group of a policy.
    #[cfg(test)]
    pub fn remember(&self, entity: PolicyEntity) {
        self.policy_entities.merge(&[], vec![entity]);
    }

    /// The same with just these providers and what stands behind them.
    pub fn with_catalog(self, catalog: Catalog) -> Self {
        self.integrations.replace(catalog.integrations);
        self.integration_models.replace(catalog.models);
        self.integration_workspaces.replace(catalog.grants);
        self.providers.replace(catalog.providers);
        self.data_keys.replace(catalog.data_keys);
        self.configs.replace(catalog.configs);
        self
    }

    pub fn api_key(&self, hash: &KeyHash) -> Option<Arc<ApiKey>> {
        self.api_keys.find(hash)
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

    /// Those of a workspace, in no order. Costs the size of the table.
    pub fn providers_of(&self, workspace: WorkspaceId) -> Vec<Arc<Provider>> {
        let mut all = self.providers.all();
        all.retain(|provider| provider.workspace_id == workspace);
        all
    }

    pub fn integration(&self, id: &IntegrationId) -> Option<Arc<Integration>> {
        self.integrations.find(id)
    }

    pub fn integration_model(&self, integration: IntegrationId, model: &str) -> Option<Arc<IntegrationModel>> {
        self.integration_models.find(&(integration, model.to_owned()))
    }

    /// What these integrations say about single models. Costs the size of the table.
    pub fn models_of(&self, integrations: &HashSet<IntegrationId>) -> Vec<Arc<IntegrationModel>> {
        let mut all = self.integration_models.all();
        all.retain(|model| integrations.contains(&model.integration_id));
        all
    }

    pub fn integration_workspace(
        &self,
        integration: IntegrationId,
        workspace: WorkspaceId,
    ) -> Option<Arc<IntegrationWorkspace>> {
        self.integration_workspaces.find(&(integration, workspace))
    }

    pub fn data_key(&self, id: &Uuid) -> Option<Arc<DataKey>> {
        self.data_keys.find(id)
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

    /// Every table the proxy follows, in the order they are read.
    pub fn collections(&self) -> [&dyn Followed; 15] {
        [
            &self.organisations,
            &self.workspaces,
            &self.api_keys,
            &self.people,
            &self.deployments,
            &self.data_keys,
            &self.secret_references,
            &self.integrations,
            &self.integration_models,
            &self.integration_workspaces,
            &self.providers,
            &self.configs,
            &self.rate_policies,
            &self.usage_policies,
            &self.policy_entities,
        ]
    }

    /// Whether there is something to answer from, be it from Postgres or from disk.
    pub fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    /// Time since Postgres last vouched for the rows.
    pub fn age(&self) -> Option<Duration> {
        self.progress.borrow().confirmed.map(|confirmed| confirmed.age())
    }

    pub fn cursor(&self) -> u64 {
        self.progress.borrow().cursor
    }

    pub fn progress(&self) -> FeedProgress {
        *self.progress.borrow()
    }

    /// Wakes at every read of the feed: to wait for a first load, or for a change to have arrived.
    pub fn subscribe(&self) -> watch::Receiver<FeedProgress> {
        self.progress.subscribe()
    }

    /// Rows in memory by table.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.collections().into_iter().map(|collection| (collection.table(), collection.len()))
    }

    /// Everything that was announced is read; the follower waits for more.
    pub fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed)
    }

    /// Whether the feed stands on a live connection to Postgres.
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Lost connections and failed reads since the start.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Rows that could not be understood, and were therefore left out.
    pub fn skipped_rows(&self) -> u64 {
        self.skipped_rows.load(Ordering::Relaxed)
    }

    /// Changed and deleted rows that were read since the start; full loads do not count.
    pub fn read_rows(&self) -> u64 {
        self.read_rows.load(Ordering::Relaxed)
    }

    pub fn view(&self) -> SnapshotView {
        let progress = self.progress.borrow();
        SnapshotView {
            progress: *progress,
            tables: self.collections().iter().map(|collection| collection.frozen()).collect(),
        }
    }

    /// Puts changed rows among the others.
    fn merge(&self, news: Vec<Box<dyn Incoming + '_>>, cursor: u64, confirmed_at: DateTime<Utc>) -> Merged {
        let mut merged = Merged::default();
        self.advance(|progress| {
            for incoming in news {
                self.skipped_rows.fetch_add(incoming.skipped(), Ordering::Relaxed);
                merged += incoming.merge();
            }
            self.read_rows.fetch_add((merged.put + merged.removed) as u64, Ordering::Relaxed);
            progress.version += u64::from(merged.shards > 0);
            progress.reads += 1;
            progress.cursor = cursor;
            progress.confirmed = Some(Confirmed::now(confirmed_at));
        });
        merged
    }

    /// Takes these rows for the whole world; what is not among them is gone.
    fn replace(&self, world: Vec<Box<dyn Incoming + '_>>, cursor: u64, confirmed_at: DateTime<Utc>) {
        self.advance(|progress| {
            for incoming in world {
                self.skipped_rows.fetch_add(incoming.skipped(), Ordering::Relaxed);
                incoming.replace();
            }
            progress.version += 1;
            progress.reads += 1;
            progress.reloads += 1;
            progress.cursor = cursor;
            progress.confirmed = Some(Confirmed::now(confirmed_at));
        });
    }

    /// Starts from a disk copy. Not a read: nothing of it came from Postgres.
    fn restore(&self, world: Vec<Box<dyn Incoming + '_>>, cursor: u64, confirmed: Confirmed) {
        self.advance(|progress| {
            world.into_iter().for_each(|incoming| incoming.replace());
            progress.cursor = cursor;
            progress.confirmed = Some(confirmed);
        });
    }

    /// Requests ask whether anything is loaded, and must not wait for the one who loads: hence a flag of its own.
    fn advance(&self, step: impl FnOnce(&mut FeedProgress)) {
        self.progress.send_modify(|progress| {
            step(progress);
            let changes = self.rate_policies.changes() + self.usage_policies.changes();
            if self.policies_of.swap(changes, Ordering::Relaxed) != changes {
                self.policies.rebuild(&self.rate_policies, &self.usage_policies);
            }
        });
        self.loaded.store(true, Ordering::Release);
    }
}
