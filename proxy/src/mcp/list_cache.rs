//! Lists of servers as a caller was shown them a moment ago, for merged servers, which would ask all of them each time. What
//! is kept holds for seconds, and no longer than the control plane's data stays as it was.
//!
//! Room is shared out between tenants (`tenant_share`): a workspace that fills its part loses its own oldest lists, and when
//! all of it is full the heaviest workspace of the heaviest organisation gives way.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use shared::mcp::Kind;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const HOLDS: Duration = Duration::from_secs(30);
/// Bytes of all lists, of those of a workspace, and of one that is kept at all.
pub(crate) const MAX_BYTES: usize = 64 << 20;
const MAX_OF_WORKSPACE: usize = 4 << 20;
const MAX_OF_LIST: usize = 1 << 20;
/// What a list takes besides its texts, and a value of it.
const LIST: usize = 4 << 10;
const VALUE: usize = 32;

/// A list of a server is kept for each key: servers may show people different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListKey {
    pub tenant: Tenant,
    pub server: Uuid,
    pub key: Uuid,
    pub kind: &'static str,
}

pub type ListEntries = Arc<Vec<Map<String, Value>>>;

#[derive(Debug)]
pub struct ListCache {
    lists: Mutex<CachedLists>,
    share: Arc<TenantShare>,
}

impl Default for ListCache {
    fn default() -> Self {
        Self { lists: Mutex::default(), share: TenantShare::new(MAX_BYTES, ShareRule::EVICTING) }
    }
}

#[derive(Debug, Default)]
struct CachedLists {
    tenants: HashMap<Tenant, HashMap<ListKey, CachedList>>,
    swept: Option<Instant>,
}

#[derive(Debug)]
struct CachedList {
    since: Instant,
    /// Of the snapshot.
    version: u64,
    entries: ListEntries,
    _held: Holding,
}

impl CachedList {
    fn holds(&self, version: u64, now: Instant) -> bool {
        self.version == version && now.saturating_duration_since(self.since) < HOLDS
    }
}

impl ListCache {
    pub fn key(tenant: Tenant, server: Uuid, key: Uuid, kind: Kind) -> ListKey {
        ListKey { tenant, server, key, kind: kind.as_str() }
    }

    pub fn find(&self, key: &ListKey, version: u64, now: Instant) -> Option<ListEntries> {
        let all = self.lists.lock();
        let list = all.tenants.get(&key.tenant)?.get(key)?;
        list.holds(version, now).then(|| list.entries.clone())
    }

    pub fn keep(&self, key: ListKey, version: u64, entries: &ListEntries, now: Instant) {
        let bytes = LIST + entries.iter().map(size_of_fields).sum::<usize>();
        if bytes > MAX_OF_LIST {
            return;
        }
        let mut all = self.lists.lock();
        all.sweep(version, now);
        let held = self.share.hold_anyway(key.tenant, bytes);
        let list = CachedList { since: now, version, entries: entries.clone(), _held: held };
        all.tenants.entry(key.tenant).or_default().insert(key, list);
        while self.share.held(key.tenant).1 > MAX_OF_WORKSPACE && all.drop_oldest(key.tenant) {}
        while self.share.used() > MAX_BYTES
            && let Some(heaviest) = self.share.heaviest()
            && all.drop_oldest(heaviest)
        {}
    }
}

impl CachedLists {
    /// Drops what holds no more, once in a while.
    fn sweep(&mut self, version: u64, now: Instant) {
        if self.swept.is_some_and(|swept| now.saturating_duration_since(swept) < HOLDS) {
            return;
        }
        self.swept = Some(now);
        self.tenants.retain(|_, own| {
            own.retain(|_, list| list.holds(version, now));
            !own.is_empty()
        });
    }

    fn drop_oldest(&mut self, tenant: Tenant) -> bool {
        let Some(own) = self.tenants.get_mut(&tenant) else { return false };
        let oldest = own.iter().min_by_key(|(_, list)| list.since).map(|(key, _)| *key);
        let is_dropped = oldest.is_some_and(|key| own.remove(&key).is_some());
        if own.is_empty() {
            self.tenants.remove(&tenant);
        }
        is_dropped
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
        ListCache::key(Tenant::test(workspace, workspace), Uuid::from_u128(server), Uuid::from_u128(1), Kind::Tool)
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
        cache.keep(key(1, 2), 7, &list(MAX_OF_LIST), now);
        assert!(cache.find(&key(1, 2), 7, now).is_none(), "it is too long");
    }

    #[test]
    fn a_workspace_that_fills_its_part_loses_its_own_oldest_lists() {
        let (cache, now) = (ListCache::default(), Instant::now());
        cache.keep(key(1, 0), 7, &list(10), now);
        for server in 0..10_u64 {
            cache.keep(key(2, server.into()), 7, &list(MAX_OF_LIST / 2), now + Duration::from_millis(server));
        }
        assert!(cache.find(&key(1, 0), 7, now).is_some(), "another's list stays");
        assert!(cache.find(&key(2, 0), 7, now).is_none());
        assert!(cache.find(&key(2, 9), 7, now).is_some());
        assert!(cache.share.held(Tenant::test(2, 2)).1 <= MAX_OF_WORKSPACE);
    }

    #[test]
    fn when_all_is_full_whoever_has_most_gives_way() {
        let (cache, now) = (ListCache::default(), Instant::now());
        cache.keep(key(0, 0), 7, &list(10), now);
        for workspace in 1..30 {
            for server in 0..7 {
                cache.keep(key(workspace, server), 7, &list(MAX_OF_LIST / 2), now);
            }
        }
        assert!(cache.share.used() <= MAX_BYTES);
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
        assert_eq!(cache.lists.lock().tenants.len(), 1);
        assert_eq!(cache.share.used(), cache.share.held(Tenant::test(20, 20)).1);
    }
}
