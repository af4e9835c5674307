//! Lists of servers as a caller was shown them a moment ago, for merged servers, which would ask all of them each time. What
//! is kept holds for seconds, and no longer than the control plane's data stays as it was.
//!
//! Room is shared by workspaces: one that fills its part loses its own oldest lists, and when all of it is full the one that
//! has most gives way.

use parking_lot::Mutex;
use serde_json::{Map, Value};
use shared::mcp::Kind;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const HOLDS: Duration = Duration::from_secs(30);
/// Bytes of all lists, of those of a workspace, and of one that is kept at all.
const MOST: usize = 64 << 20;
const MOST_OF_WORKSPACE: usize = 4 << 20;
const LONGEST: usize = 1 << 20;
/// What a list takes besides its texts, and a value of it.
const LIST: usize = 4 << 10;
const VALUE: usize = 32;

/// A list of a server is kept for each key: servers may show people different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListKey {
    pub workspace: Uuid,
    pub server: Uuid,
    pub key: Uuid,
    pub kind: &'static str,
}

pub type ListEntries = Arc<Vec<Map<String, Value>>>;

#[derive(Debug, Default)]
pub struct ListCache(Mutex<KeptLists>);

#[derive(Debug, Default)]
struct KeptLists {
    workspaces: HashMap<Uuid, WorkspaceLists>,
    bytes: usize,
    swept: Option<Instant>,
}

#[derive(Debug, Default)]
struct WorkspaceLists {
    lists: HashMap<ListKey, KeptList>,
    bytes: usize,
}

#[derive(Debug)]
struct KeptList {
    since: Instant,
    /// Of the snapshot.
    version: u64,
    entries: ListEntries,
    bytes: usize,
}

impl KeptList {
    fn holds(&self, version: u64, now: Instant) -> bool {
        self.version == version && now.saturating_duration_since(self.since) < HOLDS
    }
}

impl ListCache {
    pub fn key(workspace: Uuid, server: Uuid, key: Uuid, kind: Kind) -> ListKey {
        ListKey { workspace, server, key, kind: kind.as_str() }
    }

    pub fn find(&self, key: &ListKey, version: u64, now: Instant) -> Option<ListEntries> {
        let all = self.0.lock();
        let kept = all.workspaces.get(&key.workspace)?.lists.get(key)?;
        kept.holds(version, now).then(|| kept.entries.clone())
    }

    pub fn keep(&self, key: ListKey, version: u64, entries: &ListEntries, now: Instant) {
        let bytes = LIST + entries.iter().map(size_of_fields).sum::<usize>();
        if bytes > LONGEST {
            return;
        }
        let mut guard = self.0.lock();
        let all = &mut *guard;
        all.sweep(version, now);
        let own = all.workspaces.entry(key.workspace).or_default();
        let before = own.bytes;
        own.insert(key, KeptList { since: now, version, entries: entries.clone(), bytes });
        while own.bytes > MOST_OF_WORKSPACE && own.drop_oldest() {}
        all.bytes = all.bytes + own.bytes - before;
        while all.bytes > MOST && all.drop_of_heaviest() {}
    }
}

impl KeptLists {
    /// Drops what holds no more, once in a while.
    fn sweep(&mut self, version: u64, now: Instant) {
        if self.swept.is_some_and(|swept| now.saturating_duration_since(swept) < HOLDS) {
            return;
        }
        self.swept = Some(now);
        self.workspaces.retain(|_, own| {
            own.lists.retain(|_, kept| kept.holds(version, now));
            own.bytes = own.lists.values().map(|kept| kept.bytes).sum();
            !own.lists.is_empty()
        });
        self.bytes = self.workspaces.values().map(|own| own.bytes).sum();
    }

    fn drop_of_heaviest(&mut self) -> bool {
        let Some(own) = self.workspaces.values_mut().max_by_key(|own| own.bytes) else { return false };
        let before = own.bytes;
        let is_dropped = own.drop_oldest();
        self.bytes = self.bytes + own.bytes - before;
        is_dropped
    }
}

impl WorkspaceLists {
    fn insert(&mut self, key: ListKey, list: KeptList) {
        self.bytes += list.bytes;
        if let Some(earlier) = self.lists.insert(key, list) {
            self.bytes -= earlier.bytes;
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let oldest = self.lists.iter().min_by_key(|(_, kept)| kept.since).map(|(key, _)| *key);
        let Some(dropped) = oldest.and_then(|key| self.lists.remove(&key)) else { return false };
        self.bytes -= dropped.bytes;
        true
    }
}

/// About what a value takes in memory.
fn size_of(value: &Value) -> usize {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size_of).sum(),
            Value::Object(fields) => size_of_fields(fields),
        }
}

fn size_of_fields(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| VALUE + name.len() + size_of(value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(workspace: u128, server: u128) -> ListKey {
        ListCache::key(Uuid::from_u128(workspace), Uuid::from_u128(server), Uuid::from_u128(1), Kind::Tool)
    }

    fn list(bytes: usize) -> ListEntries {
        let tool = json!({ "name": "a", "description": "x".repeat(bytes) });
        Arc::new(vec![tool.as_object().unwrap().clone()])
    }

    #[test]
    fn a_list_holds_for_a_while_and_for_as_long_as_nothing_changed() {
        let (cache, now) = (ListCache::default(), Instant::now());
        cache.keep(key(1, 1), 7, &list(10), now);
        assert_eq!(cache.find(&key(1, 1), 7, now).map(|entries| entries.len()), Some(1));
        assert!(cache.find(&key(1, 1), 8, now).is_none());
        assert!(cache.find(&key(1, 1), 7, now + HOLDS).is_none());
        let other = ListKey { key: Uuid::from_u128(2), ..key(1, 1) };
        assert!(cache.find(&other, 7, now).is_none());
        cache.keep(key(1, 2), 7, &list(LONGEST), now);
        assert!(cache.find(&key(1, 2), 7, now).is_none(), "it is too long");
    }

    #[test]
    fn a_workspace_that_fills_its_part_loses_its_own_oldest_lists() {
        let (cache, now) = (ListCache::default(), Instant::now());
        cache.keep(key(1, 0), 7, &list(10), now);
        for server in 0..10_u64 {
            cache.keep(key(2, server.into()), 7, &list(LONGEST / 2), now + Duration::from_millis(server));
        }
        assert!(cache.find(&key(1, 0), 7, now).is_some(), "another's list stays");
        assert!(cache.find(&key(2, 0), 7, now).is_none());
        assert!(cache.find(&key(2, 9), 7, now).is_some());
        assert!(cache.0.lock().workspaces[&Uuid::from_u128(2)].bytes <= MOST_OF_WORKSPACE);
    }

    #[test]
    fn when_all_is_full_whoever_has_most_gives_way() {
        let (cache, now) = (ListCache::default(), Instant::now());
        cache.keep(key(0, 0), 7, &list(10), now);
        for workspace in 1..30 {
            for server in 0..7 {
                cache.keep(key(workspace, server), 7, &list(LONGEST / 2), now);
            }
        }
        assert!(cache.0.lock().bytes <= MOST);
        assert!(cache.find(&key(0, 0), 7, now).is_some());
        assert!((0..7).any(|server| cache.find(&key(29, server), 7, now).is_some()));
    }

    #[test]
    fn what_holds_no_more_is_dropped() {
        let (cache, now) = (ListCache::default(), Instant::now());
        for workspace in 0..10 {
            cache.keep(key(workspace, 0), 7, &list(10), now);
        }
        cache.keep(key(20, 0), 7, &list(10), now + HOLDS);
        let all = cache.0.lock();
        assert_eq!((all.workspaces.len(), all.bytes), (1, all.workspaces[&Uuid::from_u128(20)].bytes));
    }
}
