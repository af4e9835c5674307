//! The providers of each workspace in its order, and the models that each integration treats otherwise than the rest. Requests
//! ask by workspace and by integration, and rows come by id: so whenever one changes, the lists are made anew, which costs the
//! number of providers and of such models.

use super::collection::Collection;
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use shared::model::id::{IntegrationId, WorkspaceId};
use shared::model::{IntegrationModel, Provider};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

type Lists<K, T> = ArcSwap<HashMap<K, Arc<[Arc<T>]>, RandomState>>;

#[derive(Default)]
pub(super) struct WorkspaceCatalog {
    providers: Lists<WorkspaceId, Provider>,
    models: Lists<IntegrationId, IntegrationModel>,
}

impl WorkspaceCatalog {
    /// The oldest first: a provider that is added takes no request from those that are there.
    pub fn providers(&self, workspace: &WorkspaceId) -> Option<Arc<[Arc<Provider>]>> {
        self.providers.load().get(workspace).cloned()
    }

    /// By name.
    pub fn models(&self, integration: &IntegrationId) -> Option<Arc<[Arc<IntegrationModel>]>> {
        self.models.load().get(integration).cloned()
    }

    pub fn rebuild(&self, providers: &Collection<Provider>, models: &Collection<IntegrationModel>) {
        let in_order = |one: &Arc<Provider>| (one.created_at, one.slug.clone());
        self.providers.store(Arc::new(grouped(providers.all(), |one| one.workspace_id, in_order)));
        let by_name = |one: &Arc<IntegrationModel>| one.slug.clone();
        self.models.store(Arc::new(grouped(models.all(), |one| one.integration_id, by_name)));
    }
}

fn grouped<T, K: Hash + Eq, O: Ord>(
    all: Vec<Arc<T>>,
    group: impl Fn(&T) -> K,
    order: impl Fn(&Arc<T>) -> O,
) -> HashMap<K, Arc<[Arc<T>]>, RandomState> {
    let mut lists: HashMap<K, Vec<Arc<T>>> = HashMap::new();
    for one in all {
        lists.entry(group(&one)).or_default().push(one);
    }
    let sorted = lists.into_iter().map(|(key, mut list)| {
        list.sort_by_cached_key(&order);
        (key, list.into())
    });
    sorted.collect()
}
