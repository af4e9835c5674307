//! What runs on requests of a workspace by default: found and made ready once, and kept until a row changes that it is made of.
//! Finding it anew takes longer than running it.

use super::GuardSet;
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use shared::model::Workspace;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use uuid::Uuid;

const SHARDS: usize = 64;
/// Workspaces that a shard knows; with more it begins anew.
const MAX_EACH: usize = 256;

pub struct DefaultSets {
    shards: Box<[ArcSwap<Shard>]>,
}

type Shard = HashMap<Uuid, KnownSet, RandomState>;

#[derive(Clone)]
struct KnownSet {
    /// The row that it was made of. It may be gone meanwhile, and its place is not another's as long as this is here.
    workspace: Weak<Workspace>,
    /// As the directory counts.
    at: u64,
    set: Option<Arc<GuardSet>>,
}

impl Default for DefaultSets {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| ArcSwap::default()).collect() }
    }
}

impl DefaultSets {
    /// What is known of this row, at this count, or what `make` says.
    pub fn find_or(
        &self,
        workspace: &Arc<Workspace>,
        at: u64,
        make: impl FnOnce() -> Option<Arc<GuardSet>>,
    ) -> Option<Arc<GuardSet>> {
        let id = workspace.id.uuid();
        let shard = &self.shards[usize::from(id.as_bytes()[15]) % SHARDS];
        let is_same = |known: &&KnownSet| known.at == at && known.workspace.as_ptr() == Arc::as_ptr(workspace);
        if let Some(known) = shard.load().get(&id).filter(is_same) {
            return known.set.clone();
        }
        let known = KnownSet { workspace: Arc::downgrade(workspace), at, set: make() };
        shard.rcu(|all| {
            let mut more = if all.len() < MAX_EACH { Shard::clone(all) } else { Shard::default() };
            more.insert(id, known.clone());
            more
        });
        known.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::Cell;

    fn workspace(id: u128) -> Arc<Workspace> {
        let row = json!({ "id": Uuid::from_u128(id), "organisation_id": Uuid::from_u128(1), "slug": "ws", "status": "active",
            "guardrails": {} });
        Arc::new(serde_json::from_value(row).unwrap())
    }

    #[test]
    fn a_set_is_made_once_for_each_row_and_count() {
        let sets = DefaultSets::default();
        let made = Cell::new(0);
        let find = |workspace: &Arc<Workspace>, at: u64| {
            sets.find_or(workspace, at, || {
                made.set(made.get() + 1);
                Some(Arc::new(GuardSet::default()))
            })
        };
        let (first, same_id) = (workspace(7), workspace(7));
        for (row, at, expected) in [(&first, 1, 1), (&first, 1, 1), (&first, 2, 2), (&same_id, 2, 3), (&same_id, 2, 3)]
        {
            assert!(find(row, at).is_some());
            assert_eq!(made.get(), expected, "at {at}");
        }
        for number in 0..=MAX_EACH as u128 {
            find(&workspace(number << 8), 2);
        }
        assert_eq!(sets.shards[0].load().len(), 1, "it began anew");
    }

    #[test]
    fn that_nothing_runs_is_known_too() {
        let (sets, row) = (DefaultSets::default(), workspace(7));
        assert!(sets.find_or(&row, 1, || None).is_none());
        assert!(sets.find_or(&row, 1, || panic!("it is known")).is_none());
    }
}
