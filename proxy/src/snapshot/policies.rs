//! The active policies of each workspace. Requests ask by workspace, and rows come by id: so whenever one changes, the
//! lists are made anew, which costs the number of policies.

use super::collection::Collection;
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use shared::model::id::WorkspaceId;
use shared::model::policy::{PolicyKey, Rule};
use shared::model::{RateLimitsPolicy, UsageLimitsPolicy};
use std::collections::HashMap;
use std::sync::Arc;

/// Those of one workspace, in the order of their ids.
#[derive(Debug, Default)]
pub struct Policies {
    pub rates: Vec<Arc<RateLimitsPolicy>>,
    pub budgets: Vec<Arc<UsageLimitsPolicy>>,
    /// Whether those that are judged before a target is chosen depend on nothing but the caller and the endpoint.
    pub are_by_caller: bool,
    /// Whether any of them is judged for each target.
    pub has_per_attempt: bool,
    /// Whether any of them depends on the model.
    pub asks_about_models: bool,
}

impl Policies {
    fn rules(&self) -> impl Iterator<Item = &Rule> {
        let rates = self.rates.iter().map(|policy| &policy.rule);
        rates.chain(self.budgets.iter().map(|policy| &policy.rule))
    }
}

#[derive(Default)]
pub(super) struct ByWorkspace(ArcSwap<HashMap<WorkspaceId, Arc<Policies>, RandomState>>);

impl ByWorkspace {
    pub fn find(&self, workspace: &WorkspaceId) -> Option<Arc<Policies>> {
        self.0.load().get(workspace).cloned()
    }

    pub fn rebuild(&self, rates: &Collection<RateLimitsPolicy>, budgets: &Collection<UsageLimitsPolicy>) {
        let mut lists: HashMap<WorkspaceId, Policies> = HashMap::new();
        for policy in rates.all().into_iter().filter(|policy| policy.is_active()) {
            lists.entry(policy.workspace_id).or_default().rates.push(policy);
        }
        for policy in budgets.all().into_iter().filter(|policy| policy.is_active()) {
            lists.entry(policy.workspace_id).or_default().budgets.push(policy);
        }
        for list in lists.values_mut() {
            list.rates.sort_by_key(|policy| policy.id);
            list.budgets.sort_by_key(|policy| policy.id);
            let are_by_caller = list.rules().all(|rule| rule.is_per_attempt() || rule.is_by_caller());
            let has_per_attempt = list.rules().any(Rule::is_per_attempt);
            let asks_about_models = list.rules().any(asks_about_model);
            (list.are_by_caller, list.has_per_attempt) = (are_by_caller, has_per_attempt);
            list.asks_about_models = asks_about_models;
        }
        self.0.store(Arc::new(lists.into_iter().map(|(workspace, list)| (workspace, Arc::new(list))).collect()));
    }
}

fn asks_about_model(rule: &Rule) -> bool {
    rule.conditions.iter().any(|one| one.key == PolicyKey::Model)
        || rule.group_by.iter().any(|one| one.key == PolicyKey::Model)
}
