//! A cache of the limits that apply to a request, per thread. They mostly depend on its key and its endpoint alone, and
//! the same keys come again and again. An entry is valid for as long as the rows it was made from are the current ones.

use super::{ApplicableLimit, LimitedRequest, Switches, limits_of_request};
use crate::snapshot::{Policies, Snapshot};
use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use shared::model::id::ApiKeyId;
use shared::model::policy::PolicyTarget;
use shared::model::{ApiKey, Workspace};
use shared::providers::Family;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Entries that one thread keeps. The cache is emptied when there are more.
const MAX_ENTRIES: usize = 1024;

struct CachedLimits {
    key: Arc<ApiKey>,
    workspace: Arc<Workspace>,
    policies: Option<Arc<Policies>>,
    /// How often a group of a policy was reset alone.
    resets: u64,
    switches: Switches,
    wanted: Arc<[ApplicableLimit]>,
}

type CacheKey = (ApiKeyId, Option<Family>, PolicyTarget);

thread_local! {
    static KNOWN: RefCell<HashMap<CacheKey, CachedLimits, RandomState>> = RefCell::default();
}

/// As `limits_of_request`.
pub fn cached_limits_of_request(
    request: &LimitedRequest<'_>,
    snapshot: &Snapshot,
    switches: Switches,
    clock: impl Fn() -> DateTime<Utc>,
) -> Arc<[ApplicableLimit]> {
    let (key, workspace) = (&request.caller.key, &request.caller.workspace);
    let policies = if switches.policies { snapshot.policies(&workspace.id) } else { None };
    let has_any = key.limits.is_some() || workspace.limits.is_some() || policies.is_some();
    if request.caller.token.is_some() || policies.as_ref().is_some_and(|policies| !policies.are_by_caller) {
        return limits_of_request(request, snapshot, switches, clock).into();
    }
    if !has_any {
        return Arc::default();
    }
    let resets = snapshot.policy_entity_changes();
    KNOWN.with_borrow_mut(|all| {
        let at = (key.id, request.family, request.target);
        let holds = |known: &CachedLimits| {
            let has_same_policies = match (&known.policies, &policies) {
                (Some(known), Some(policies)) => Arc::ptr_eq(known, policies),
                (known, policies) => known.is_none() && policies.is_none(),
            };
            let has_same_rows = Arc::ptr_eq(&known.key, key) && Arc::ptr_eq(&known.workspace, workspace);
            has_same_rows && has_same_policies && known.resets == resets && known.switches == switches
        };
        if let Some(known) = all.get(&at).filter(|known| holds(known)) {
            return known.wanted.clone();
        }
        if all.len() >= MAX_ENTRIES {
            all.clear();
        }
        let wanted: Arc<[ApplicableLimit]> = limits_of_request(request, snapshot, switches, clock).into();
        let (key, workspace) = (key.clone(), workspace.clone());
        all.insert(at, CachedLimits { key, workspace, policies, resets, switches, wanted: wanted.clone() });
        wanted
    })
}
