//! Purges of kept answers, found by what they concern: a row replaces the one before it for the same target, so a few
//! lookups tell whether an answer still counts.

use super::Snapshot;
use super::collection::Tracked;
use chrono::{DateTime, Utc};
use shared::model::{CachePurge, PurgeTarget};
use tokio_postgres::Row;
use uuid::Uuid;

/// A workspace, or an organisation for a purge of all its workspaces; and what is purged there.
pub type PurgeKey = (Uuid, PurgeTarget);

impl Tracked for CachePurge {
    type Key = PurgeKey;
    const TABLE: &'static str = "cache_purges";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> PurgeKey {
        (self.workspace_id.map_or(self.organisation_id.uuid(), |workspace| workspace.uuid()), self.target)
    }
}

impl Snapshot {
    /// When this was last purged, of one workspace (its id) or of a whole organisation (its id).
    pub fn purged_at(&self, place: Uuid, target: PurgeTarget) -> Option<DateTime<Utc>> {
        self.cache_purges.find(&(place, target)).map(|purge| purge.purged_at)
    }

    /// How often purges came or went.
    pub fn purge_changes(&self) -> u64 {
        self.cache_purges.changes()
    }
}
