//! Whether an answer that is kept was purged since. Purges are rows of the snapshot, so every replica knows them within a
//! moment, and nothing has to be found or deleted in any store.

use super::entry::Tags;
use crate::snapshot::Snapshot;
use shared::model::PurgeTarget;
use shared::model::id::WorkspaceId;
use std::sync::Arc;
use uuid::Uuid;

/// What is left between the clocks: answers carry the beginning of their call by Postgres' clock, which each proxy measures
/// through its connection (`limits`). Rather too many answers are purged than one too few.
const MARGIN_MS: i64 = 2_000;

#[derive(Clone)]
pub struct Purges {
    pub snapshot: Arc<Snapshot>,
    /// Milliseconds since 1970 by Postgres' clock, which stamps purges.
    pub database_clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Purges {
    /// As long as it stays the same, what was not purged is not.
    pub fn version(&self) -> u64 {
        self.snapshot.purge_changes()
    }

    pub fn now_ms(&self) -> i64 {
        (self.database_clock)()
    }

    pub fn is_purged(&self, workspace: Uuid, tags: &Tags, asked_at_ms: i64) -> bool {
        let is_over = |place: Uuid, target: PurgeTarget| {
            let purged_at = self.snapshot.purged_at(place, target);
            purged_at.is_some_and(|at| asked_at_ms < at.timestamp_millis().saturating_add(MARGIN_MS))
        };
        let by = |tags: &Tags| {
            let namespace = tags.namespace.map(PurgeTarget::Namespace);
            let (config, user) = (tags.config.map(PurgeTarget::Config), tags.user.map(PurgeTarget::User));
            [Some(PurgeTarget::All), namespace, config, user].into_iter().flatten()
        };
        if by(tags).any(|target| is_over(workspace, target)) {
            return true;
        }
        // Of the whole organisation only people and everything are purged.
        let wide = Tags { user: tags.user, ..Tags::default() };
        let organisation = self.snapshot.workspace(&WorkspaceId::new(workspace)).map(|found| found.organisation_id);
        organisation.is_some_and(|organisation| by(&wide).any(|target| is_over(organisation.uuid(), target)))
    }
}

#[cfg(test)]
mod tests;
