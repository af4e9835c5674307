//! Everything the proxy knows of the control plane, in memory. Requests read it without a lock, an await or an
//! allocation; the follower alone writes it.
//!
//! Rows come from Postgres (`feed`, driven by `follower`) or, while Postgres is away at start, from the copy on disk
//! (`disk`, written by `disk_keeper`). What is not here does not exist: an unknown key is refused also while Postgres is
//! away. To follow a further table, say what it is in `tables`, and add a field and its line in `collections`.

pub mod backoff;
mod cache_purges;
pub mod collection;
pub mod disk;
pub mod disk_keeper;
pub mod feed;
pub mod follower;
mod guardrails;
pub mod list_pool;
mod lookups;
mod made_of;
mod mcp;
mod policies;
mod progress;
mod prompts;
mod ready_version;
pub mod saved_config;
pub mod sharded;
mod tables;
pub(crate) mod unheld_versions;
mod workspace_catalog;

pub use follower::Follower;
pub use guardrails::DefaultGuardrails;
pub use made_of::Catalog;
pub use mcp::{McpIndex, Pins, SwitchedOff};
pub use policies::Policies;
pub use progress::{Confirmed, FeedProgress};
pub use ready_version::{ReadyPartial, ReadyVersion, VersionKey};
pub use saved_config::SavedConfig;
pub use unheld_versions::NotFetched;

use chrono::{DateTime, Utc};
use collection::{Collection, Followed, Incoming, Merged};
use disk::SnapshotView;
use mcp::McpTables;
use policies::ByWorkspace;
use shared::model::{
    ApiKey, CachePurge, Deployment, Guardrail, GuardrailVersion, Integration, IntegrationModel, IntegrationWorkspace,
    Label, Organisation, Partial, Person, Plugin, PolicyEntity, Prompt, PromptLabel, Provider, RateLimitsPolicy,
    SecretReference, UsageLimitsPolicy, Workspace,
};
use shared::secrets::seal::data_key::DataKey;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use unheld_versions::UnheldVersions;
use workspace_catalog::WorkspaceCatalog;

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
    catalog: WorkspaceCatalog,
    /// How often the rows changed that `catalog` is made of, when it was made.
    catalog_of: AtomicU64,
    data_keys: Collection<DataKey>,
    secret_references: Collection<SecretReference>,
    guardrails: Collection<Guardrail>,
    guardrail_versions: Collection<GuardrailVersion>,
    plugins: Collection<Plugin>,
    labels: Collection<Label>,
    prompts: Collection<Prompt>,
    prompt_labels: Collection<PromptLabel>,
    prompt_versions: Collection<ReadyVersion>,
    partials: Collection<Partial>,
    partial_versions: Collection<ReadyPartial>,
    /// Versions of prompts and partials that are not followed.
    unheld: UnheldVersions,
    cache_purges: Collection<CachePurge>,
    mcp: McpTables,
    rate_policies: Collection<RateLimitsPolicy>,
    usage_policies: Collection<UsageLimitsPolicy>,
    policy_entities: Collection<PolicyEntity>,
    policies: ByWorkspace,
    /// How often the rows changed that `policies` is made of, when it was made.
    policies_of: AtomicU64,
    /// Changes of guardrails and their versions that were looked at for what is left over.
    guardrails_of: AtomicU64,
    /// Rows change only while this is held for writing, so a copy taken while it is read is whole.
    progress: watch::Sender<FeedProgress>,
    loaded: AtomicBool,
    connected: AtomicBool,
    resting: AtomicBool,
    failures: AtomicU64,
    skipped_rows: AtomicU64,
    read_rows: AtomicU64,
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
            catalog: WorkspaceCatalog::default(),
            catalog_of: AtomicU64::new(0),
            data_keys: Collection::empty(),
            secret_references: Collection::empty(),
            guardrails: Collection::empty(),
            guardrail_versions: Collection::empty(),
            plugins: Collection::empty(),
            labels: Collection::empty(),
            prompts: Collection::empty(),
            prompt_labels: Collection::empty(),
            prompt_versions: Collection::empty(),
            partials: Collection::empty(),
            partial_versions: Collection::empty(),
            unheld: UnheldVersions::empty(),
            cache_purges: Collection::empty(),
            mcp: McpTables::empty(),
            rate_policies: Collection::empty(),
            usage_policies: Collection::empty(),
            policy_entities: Collection::empty(),
            policies: ByWorkspace::default(),
            policies_of: AtomicU64::new(0),
            guardrails_of: AtomicU64::new(0),
            progress: watch::Sender::new(FeedProgress::default()),
            loaded: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            skipped_rows: AtomicU64::new(0),
            read_rows: AtomicU64::new(0),
        }
    }

    /// Every table the proxy follows, in the order they are read.
    pub fn collections(&self) -> [&dyn Followed; 33] {
        [
            &self.organisations,
            &self.workspaces,
            &self.api_keys,
            &self.people,
            &self.deployments,
            &self.data_keys,
            &self.secret_references,
            &self.guardrails,
            &self.guardrail_versions,
            &self.plugins,
            &self.labels,
            &self.prompts,
            &self.prompt_labels,
            &self.prompt_versions,
            &self.partials,
            &self.partial_versions,
            &self.integrations,
            &self.integration_models,
            &self.integration_workspaces,
            &self.providers,
            &self.configs,
            &self.rate_policies,
            &self.usage_policies,
            &self.policy_entities,
            &self.cache_purges,
            &self.mcp.integrations,
            &self.mcp.grants,
            &self.mcp.capabilities,
            &self.mcp.servers,
            &self.mcp.server_capabilities,
            &self.mcp.user_access,
            &self.mcp.connections,
            &self.mcp.clients,
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

    /// Resolves once Postgres itself has said what there is. What was read from disk before that may be old.
    pub async fn until_followed(&self) {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        while !self.is_connected() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
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
            let changes = self.providers.changes() + self.integration_models.changes();
            if self.catalog_of.swap(changes, Ordering::Relaxed) != changes {
                self.catalog.rebuild(&self.providers, &self.integration_models);
            }
            let changes = self.guardrails.changes() + self.guardrail_versions.changes();
            if self.guardrails_of.swap(changes, Ordering::Relaxed) != changes {
                self.forget_orphaned_versions();
            }
            self.mcp.index();
        });
        self.loaded.store(true, Ordering::Release);
    }
}
