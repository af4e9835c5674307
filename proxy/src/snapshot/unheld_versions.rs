//! Versions that are not followed, fetched when somebody names one and kept as long as there is room. They are read beside the
//! follower, over one connection for all: requests hold none, a caller needs no leave to read prompts to run one, and however
//! many are asked for, no change waits behind them. While Postgres is away, what was not kept cannot be had.
//!
//! What is kept is bounded and shared out between tenants (`tenant_share`); what was not used for longest goes first.

use super::ready_version::{ReadyPartial, ReadyVersion, VersionKey};
use crate::runtime::small_pool::{PostgresAway, SmallPool, bounded};
use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use shared::model::id::{OrganisationId, WorkspaceId};
use shared::model::{PartialVersion, PromptVersion};
use shared::prompt::RequestSkeleton;
use shared::settings::Database;
use shared::telemetry::{Brief, LogLimit};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

/// Bytes of everything that is kept.
pub(crate) const MAX_BYTES: usize = 64 << 20;
pub(crate) const MAX_OF_WORKSPACE: usize = 8 << 20;
/// What a version takes beside its texts, of which there are three: as written, and parsed twice.
const VERSION_OVERHEAD: usize = 4 << 10;
/// Requests that wait for a version, of all and of one workspace; more are told to come again.
const MAX_WAITING: usize = 256;
const MAX_WAITING_OF_WORKSPACE: usize = 8;
/// That a version does not exist is remembered so long, of so many.
const ABSENCE: Duration = Duration::from_secs(10);
const MAX_ABSENT: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 1;

/// Which version, of what and of whom.
#[derive(Debug, Clone)]
pub struct VersionPlace {
    pub organisation: OrganisationId,
    pub workspace: WorkspaceId,
    /// The prompt or the partial.
    pub owner: Uuid,
    pub key: VersionKey,
    /// What was fetched before its owner changed is fetched again: a correction may have been made to it.
    pub revision: String,
}

impl VersionPlace {
    fn tenant(&self) -> Tenant {
        Tenant { organisation: self.organisation.uuid(), workspace: self.workspace.uuid() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFetched {
    /// There is no such version.
    Missing,
    /// Nobody can tell at the moment.
    Away,
}

/// What can be fetched.
pub trait Fetchable: Sized + Send + Sync + 'static {
    /// Table, columns and the column of the owner.
    const FROM: (&'static str, &'static str, &'static str);
    fn read(row: &Row) -> anyhow::Result<Self>;
    fn bytes(&self) -> usize;
}

impl Fetchable for ReadyVersion {
    const FROM: (&'static str, &'static str, &'static str) = ("prompt_versions", PromptVersion::COLUMNS, "prompt_id");

    fn read(row: &Row) -> anyhow::Result<Self> {
        Self::new(PromptVersion::from_row(row)?)
    }

    fn bytes(&self) -> usize {
        let row = &self.row;
        let parameters = serde_json::to_string(&row.parameters).map_or(0, |text| text.len());
        let values = [&row.functions, &row.tools, &row.tool_choice];
        let values = values.into_iter().flatten().map(|value| value.to_string().len()).sum::<usize>();
        let skeleton = self.skeleton.as_ref().map_or(0, RequestSkeleton::bytes);
        weight(&row.template) + (parameters + values) * 3 + skeleton
    }
}

impl Fetchable for ReadyPartial {
    const FROM: (&'static str, &'static str, &'static str) =
        ("partial_versions", PartialVersion::COLUMNS, "partial_id");

    fn read(row: &Row) -> anyhow::Result<Self> {
        Self::new(PartialVersion::from_row(row)?)
    }

    fn bytes(&self) -> usize {
        weight(&self.row.template)
    }
}

/// Somebody waits for this version.
pub struct VersionAsk<T> {
    place: VersionPlace,
    tell: oneshot::Sender<Result<Arc<T>, NotFetched>>,
}

pub struct VersionStore<T> {
    cache: Mutex<VersionCache<T>>,
    /// Places of those who wait.
    waiting: Arc<TenantShare>,
    /// What nobody has.
    absent: Mutex<HashMap<(Uuid, VersionKey), Instant>>,
    ask: mpsc::Sender<VersionAsk<T>>,
    asked: tokio::sync::Mutex<mpsc::Receiver<VersionAsk<T>>>,
}

/// Both sorts.
pub struct UnheldVersions {
    pub prompts: VersionStore<ReadyVersion>,
    pub partials: VersionStore<ReadyPartial>,
}

impl UnheldVersions {
    pub fn empty() -> Self {
        Self { prompts: VersionStore::empty(), partials: VersionStore::empty() }
    }

    /// Reads what is waited for, one after the other, for as long as the process lives.
    pub async fn serve(&self, database: Database) {
        let pool = SmallPool::new(database, CONNECTIONS);
        let (mut prompts, mut partials) = (self.prompts.asked.lock().await, self.partials.asked.lock().await);
        loop {
            tokio::select! {
                Some(ask) = prompts.recv() => self.prompts.serve(&pool, ask).await,
                Some(ask) = partials.recv() => self.partials.serve(&pool, ask).await,
                else => return,
            }
        }
    }
}

impl<T: Fetchable> VersionStore<T> {
    fn empty() -> Self {
        let (ask, asked) = mpsc::channel(MAX_WAITING);
        let rule = ShareRule { least: 1, workspace: MAX_WAITING_OF_WORKSPACE, ..ShareRule::REFUSING };
        let waiting = TenantShare::new(MAX_WAITING, rule);
        Self { cache: Mutex::default(), waiting, absent: Mutex::default(), ask, asked: tokio::sync::Mutex::new(asked) }
    }

    pub fn find(&self, place: &VersionPlace) -> Option<Arc<T>> {
        self.cache.lock().find(place)
    }

    pub async fn fetch(&self, place: VersionPlace) -> Result<Arc<T>, NotFetched> {
        if self.is_absent(&place) {
            return Err(NotFetched::Missing);
        }
        let _waiting = self.waiting.hold(place.tenant(), 1).map_err(|_| NotFetched::Away)?;
        let (tell, answered) = oneshot::channel();
        self.ask.try_send(VersionAsk { place, tell }).map_err(|_| NotFetched::Away)?;
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(fetched)) => fetched,
            _ => Err(NotFetched::Away),
        }
    }

    async fn serve(&self, pool: &SmallPool, ask: VersionAsk<T>) {
        if ask.tell.is_closed() {
            return;
        }
        // Somebody else may have asked for the same.
        let fetched = match self.find(&ask.place) {
            Some(cached) => Ok(cached),
            None => match tokio::time::timeout(PATIENCE, read_from::<T>(pool, &ask.place)).await {
                Ok(Ok(Some(version))) => Ok(self.keep(&ask.place, version)),
                Ok(Ok(None)) => {
                    self.note_absent(&ask.place);
                    Err(NotFetched::Missing)
                }
                Ok(Err(PostgresAway)) | Err(_) => Err(NotFetched::Away),
            },
        };
        let _ = ask.tell.send(fetched);
    }

    fn is_absent(&self, place: &VersionPlace) -> bool {
        self.absent.lock().get(&(place.owner, place.key)).is_some_and(|since| since.elapsed() < ABSENCE)
    }

    fn note_absent(&self, place: &VersionPlace) {
        let mut absent = self.absent.lock();
        if absent.len() >= MAX_ABSENT {
            absent.clear();
        }
        absent.insert((place.owner, place.key), Instant::now());
    }

    fn keep(&self, place: &VersionPlace, version: T) -> Arc<T> {
        let bytes = version.bytes() + VERSION_OVERHEAD;
        let version = Arc::new(version);
        self.cache.lock().keep(place, version.clone(), bytes);
        version
    }
}

/// What a parsed template takes: each tag becomes a node of its own.
fn weight(template: &str) -> usize {
    const OF_A_TAG: usize = 128;
    template.len() * 3 + template.matches("{{").count() * OF_A_TAG
}

async fn read_from<T: Fetchable>(pool: &SmallPool, place: &VersionPlace) -> Result<Option<T>, PostgresAway> {
    let lent = pool.lend_own().await?;
    let version = bounded(read(&lent.client, place)).await?;
    lent.give_back();
    Ok(version)
}

async fn read<T: Fetchable>(client: &Client, place: &VersionPlace) -> Result<Option<T>, tokio_postgres::Error> {
    let (table, columns, owner) = T::FROM;
    let (column, value, kind): (&str, &(dyn ToSql + Sync), Type) = match &place.key {
        VersionKey::Id(id) => ("id", id, Type::UUID),
        VersionKey::Number(_, number) => ("number", number, Type::INT4),
    };
    let sql = format!("SELECT {columns} FROM {table} WHERE {owner} = $1 AND organisation_id = $2 AND {column} = $3");
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&place.owner, Type::UUID), (&place.organisation, Type::UUID), (value, kind)];
    let rows = client.query_typed(&sql, &values).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    match T::read(row) {
        Ok(version) => Ok(Some(version)),
        Err(error) => {
            static UNREAD: LogLimit = LogLimit::new();
            if let Some(skipped) = UNREAD.pass() {
                let (owner, error) = (place.owner, Brief(error));
                tracing::error!(table, %owner, %error, skipped, "a version cannot be understood");
            }
            Ok(None)
        }
    }
}

pub(crate) struct VersionCache<T> {
    versions: HashMap<(Uuid, VersionKey), CachedVersion<T>>,
    /// Their bytes.
    share: Arc<TenantShare>,
    /// Counts uses.
    clock: u64,
}

struct CachedVersion<T> {
    version: Arc<T>,
    revision: String,
    used: u64,
    held: Holding,
}

impl<T> Default for VersionCache<T> {
    fn default() -> Self {
        Self { versions: HashMap::new(), share: TenantShare::new(MAX_BYTES, ShareRule::EVICTING), clock: 0 }
    }
}

impl<T> VersionCache<T> {
    fn find(&mut self, place: &VersionPlace) -> Option<Arc<T>> {
        let known = self.versions.get_mut(&(place.owner, place.key))?;
        if known.revision != place.revision {
            return None;
        }
        self.clock += 1;
        known.used = self.clock;
        Some(known.version.clone())
    }

    fn keep(&mut self, place: &VersionPlace, version: Arc<T>, bytes: usize) {
        let (key, tenant) = ((place.owner, place.key), place.tenant());
        self.versions.remove(&key);
        if bytes > MAX_OF_WORKSPACE {
            return;
        }
        while self.share.held(tenant).1 + bytes > MAX_OF_WORKSPACE && self.forget_oldest(tenant) {}
        while self.share.used() + bytes > MAX_BYTES
            && let Some(heaviest) = self.share.heaviest()
            && self.forget_oldest(heaviest)
        {}
        self.clock += 1;
        let (held, revision) = (self.share.hold_anyway(tenant, bytes), place.revision.clone());
        self.versions.insert(key, CachedVersion { version, revision, used: self.clock, held });
    }

    fn forget_oldest(&mut self, tenant: Tenant) -> bool {
        let own = self.versions.iter().filter(|(_, cached)| cached.held.tenant() == tenant);
        let oldest = own.min_by_key(|(_, cached)| cached.used).map(|(key, _)| *key);
        oldest.is_some_and(|key| self.versions.remove(&key).is_some())
    }
}

#[cfg(test)]
impl<T: Default> VersionCache<T> {
    fn test_place(tenant: Tenant, number: u32) -> VersionPlace {
        let owner = Uuid::from_u128(tenant.workspace.as_u128() << 32 | u128::from(number));
        VersionPlace {
            organisation: tenant.organisation.into(),
            workspace: tenant.workspace.into(),
            owner,
            key: VersionKey::Id(owner),
            revision: String::new(),
        }
    }

    pub(crate) fn keep_for_test(&mut self, tenant: Tenant, number: u32, bytes: usize) {
        self.keep(&Self::test_place(tenant, number), Arc::default(), bytes);
    }

    pub(crate) fn has_for_test(&mut self, tenant: Tenant, number: u32) -> bool {
        self.find(&Self::test_place(tenant, number)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(workspace: u128, owner: u128, revision: &str) -> VersionPlace {
        VersionPlace {
            organisation: Uuid::from_u128(1).into(),
            workspace: Uuid::from_u128(workspace).into(),
            owner: Uuid::from_u128(owner),
            key: VersionKey::Number(Uuid::from_u128(owner), 1),
            revision: revision.to_owned(),
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_only_of_the_same_workspace() {
        let mut cached = VersionCache::default();
        cached.keep(&place(9, 99, ""), Arc::new(0), MAX_OF_WORKSPACE);
        for owner in 1..=4 {
            cached.keep(&place(2, owner, ""), Arc::new(owner), MAX_OF_WORKSPACE / 4);
        }
        assert!(cached.find(&place(2, 1, "")).is_some());
        cached.keep(&place(2, 5, ""), Arc::new(5), MAX_OF_WORKSPACE / 4);
        let left: Vec<u128> = (1..=5).filter(|owner| cached.find(&place(2, *owner, "")).is_some()).collect();
        assert_eq!(left, [1, 3, 4, 5]);
        assert!(cached.find(&place(9, 99, "")).is_some());
        assert_eq!(cached.share.used(), 2 * MAX_OF_WORKSPACE);
    }

    #[test]
    fn all_workspaces_together_keep_no_more_than_there_is_room_for() {
        let mut cached = VersionCache::default();
        for workspace in 1..=20 {
            cached.keep(&place(workspace, workspace, ""), Arc::new(()), MAX_OF_WORKSPACE);
        }
        assert_eq!(cached.share.used(), MAX_BYTES);
        assert_eq!(cached.versions.len(), MAX_BYTES / MAX_OF_WORKSPACE);
        cached.keep(&place(1, 1, ""), Arc::new(()), MAX_OF_WORKSPACE + 1);
        assert!(cached.find(&place(1, 1, "")).is_none(), "what is too large is not kept");
    }

    #[test]
    fn what_was_fetched_before_a_change_is_not_found_after_it() {
        let mut cached = VersionCache::default();
        cached.keep(&place(2, 1, "7"), Arc::new(()), VERSION_OVERHEAD);
        assert!(cached.find(&place(2, 1, "7")).is_some());
        assert!(cached.find(&place(2, 1, "8")).is_none());
        cached.keep(&place(2, 1, "8"), Arc::new(()), VERSION_OVERHEAD);
        assert_eq!((cached.versions.len(), cached.share.used()), (1, VERSION_OVERHEAD));
    }
}
