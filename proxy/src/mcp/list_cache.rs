//! Lists of servers as a caller was shown them a moment ago, for merged servers, which would ask all of them each time. What
//! is kept holds for seconds, and no longer than the control plane's data stays as it was.

use parking_lot::Mutex;
use serde_json::{Map, Value};
use shared::mcp::Kind;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const HOLDS: Duration = Duration::from_secs(30);
/// Lists that are kept; beyond it all are forgotten.
const MOST: usize = 1024;
/// Longer ones are not kept.
const MOST_ENTRIES: usize = 500;

/// A list of a server is kept for each key: servers may show people different ones.
pub type ListKey = (Uuid, Uuid, &'static str);
pub type ListEntries = Arc<Vec<Map<String, Value>>>;

#[derive(Debug, Default)]
pub struct ListCache(Mutex<HashMap<ListKey, KeptList>>);

#[derive(Debug)]
struct KeptList {
    since: Instant,
    /// Of the snapshot.
    version: u64,
    entries: ListEntries,
}

impl ListCache {
    pub fn key(server: Uuid, key: Uuid, kind: Kind) -> ListKey {
        (server, key, kind.as_str())
    }

    pub fn find(&self, key: &ListKey, version: u64, now: Instant) -> Option<ListEntries> {
        let all = self.0.lock();
        let holds = |kept: &&KeptList| kept.version == version && now.saturating_duration_since(kept.since) < HOLDS;
        all.get(key).filter(holds).map(|kept| kept.entries.clone())
    }

    pub fn keep(&self, key: ListKey, version: u64, entries: &ListEntries, now: Instant) {
        if entries.len() > MOST_ENTRIES {
            return;
        }
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, KeptList { since: now, version, entries: entries.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_for_a_while_and_for_as_long_as_nothing_changed() {
        let (cache, now) = (ListCache::default(), Instant::now());
        let key = ListCache::key(Uuid::from_u128(1), Uuid::from_u128(2), Kind::Tool);
        cache.keep(key, 7, &Arc::new(vec![Map::new()]), now);
        assert_eq!(cache.find(&key, 7, now).map(|entries| entries.len()), Some(1));
        assert!(cache.find(&key, 8, now).is_none());
        assert!(cache.find(&key, 7, now + HOLDS).is_none());
        assert!(cache.find(&ListCache::key(Uuid::from_u128(1), Uuid::from_u128(3), Kind::Tool), 7, now).is_none());
    }
}
