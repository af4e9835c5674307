//! Snapshots made of given rows instead of a feed, for tests.

use super::{Confirmed, SavedConfig, Snapshot};
use chrono::Utc;
use shared::model::{
    ApiKey, CachePurge, Guardrail, GuardrailVersion, Integration, IntegrationModel, IntegrationWorkspace, Organisation,
    Plugin, Provider, RateLimitsPolicy, UsageLimitsPolicy, Workspace,
};
use shared::secrets::seal::data_key::DataKey;

/// What an administrator sets up for applications, to make a snapshot of.
#[derive(Default)]
pub struct Catalog {
    pub integrations: Vec<Integration>,
    pub models: Vec<IntegrationModel>,
    pub grants: Vec<IntegrationWorkspace>,
    pub providers: Vec<Provider>,
    pub data_keys: Vec<DataKey>,
    pub configs: Vec<SavedConfig>,
}

impl Snapshot {
    /// A snapshot of just these rows, as if read from Postgres a moment ago.
    pub fn with_rows(api_keys: Vec<ApiKey>, workspaces: Vec<Workspace>) -> Self {
        let snapshot = Self::empty();
        snapshot.api_keys.replace(api_keys);
        snapshot.workspaces.replace(workspaces);
        snapshot.advance(|progress| progress.confirmed = Some(Confirmed::now(Utc::now())));
        snapshot
    }

    /// The same with just these organisations.
    pub fn with_organisations(self, organisations: Vec<Organisation>) -> Self {
        self.organisations.replace(organisations);
        self
    }

    /// The same with just these policies.
    pub fn with_policies(self, rates: Vec<RateLimitsPolicy>, budgets: Vec<UsageLimitsPolicy>) -> Self {
        self.rate_policies.replace(rates);
        self.usage_policies.replace(budgets);
        self.advance(|_| {});
        self
    }

    /// The same with just these guardrails, their versions and the credentials of their vendors.
    pub fn with_guardrails(
        self,
        guardrails: Vec<Guardrail>,
        versions: Vec<GuardrailVersion>,
        plugins: Vec<Plugin>,
    ) -> Self {
        self.guardrails.replace(guardrails);
        self.guardrail_versions.replace(versions);
        self.plugins.replace(plugins);
        self
    }

    /// The same with just these purges of kept answers.
    pub fn with_cache_purges(self, purges: Vec<CachePurge>) -> Self {
        self.cache_purges.replace(purges);
        self
    }

    /// Takes over what is remembered of one group of a policy.
    #[cfg(test)]
    pub fn remember(&self, entity: shared::model::PolicyEntity) {
        self.policy_entities.merge(&[], vec![entity]);
    }

    /// Publishes this version of a prompt, in place of what was there.
    #[cfg(test)]
    pub fn publish(&self, prompt: shared::model::Prompt, version: super::ReadyVersion) {
        self.prompt_versions.replace(vec![version]);
        self.prompts.replace(vec![prompt]);
    }

    /// The same with just these providers and what stands behind them.
    pub fn with_catalog(self, catalog: Catalog) -> Self {
        self.integrations.replace(catalog.integrations);
        self.integration_models.replace(catalog.models);
        self.integration_workspaces.replace(catalog.grants);
        self.providers.replace(catalog.providers);
        self.catalog.rebuild(&self.providers, &self.integration_models);
        self.data_keys.replace(catalog.data_keys);
        self.configs.replace(catalog.configs);
        self
    }
}
