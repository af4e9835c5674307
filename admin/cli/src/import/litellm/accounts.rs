//! Accounts at providers: LiteLLM repeats credentials at each model, here an integration has them once.

use super::reading::{Reading, Settings};
use super::vendors::{Access, Vendor};
use crate::import::result::Import;
use crate::import::source::Source;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// A model as its entry names it.
pub struct Model<'a> {
    pub vendor: &'static Vendor,
    pub name: &'a str,
    /// What is deployed there, where the entry says so.
    pub base: Option<&'a str>,
    /// Fields of the provider: its rates.
    pub limits: Map<String, Value>,
}

/// An account and what uses it. Two models share one where their settings are the same; each credential has a variable of its
/// own, so that the settings differ where credentials do.
struct Account {
    vendor: &'static str,
    settings: Settings,
    slug: String,
    /// Azure's deployments, which the integration lists, and their places by the names of their models.
    deployments: Vec<Value>,
    places: HashMap<String, usize>,
    providers: Vec<Provider>,
}

/// A handle on an account with limits of its own.
struct Provider {
    slug: String,
    limits: Map<String, Value>,
}

#[derive(Default)]
pub struct Accounts {
    accounts: Vec<Account>,
    /// Which accounts have the same settings: several where Azure's deployments need it.
    places: HashMap<String, Vec<usize>>,
}

impl Accounts {
    /// The slug of the provider that serves a model, and what the model is called there.
    pub fn provider(&mut self, import: &mut Import, model: Model<'_>, params: &mut Source) -> (String, String) {
        let entry = params.location.clone();
        let read = Reading::new(import, model.vendor, params).read(model.name, model.base);
        let settings = format!("{} {}", model.vendor.id, read.settings.text());
        let places = self.places.entry(settings).or_default();
        let takes = |at: &usize| read.deployment.as_ref().is_none_or(|one| self.accounts[*at].takes(one));
        let known = places.iter().copied().find(takes);
        let at = known.unwrap_or_else(|| {
            for (variable, what) in &read.implied {
                import.unmapped(
                    entry.clone(),
                    format!("set {variable} where `portcullis apply` runs: LiteLLM reads {what} from there"),
                );
            }
            let name = if model.vendor.access == Access::Address { model.vendor.prefix } else { model.vendor.id };
            let slug = import.free_slug("integration", name);
            places.push(self.accounts.len());
            self.accounts.push(Account::new(model.vendor.id, read.settings, slug));
            self.accounts.len() - 1
        });
        let account = &mut self.accounts[at];
        if let Some(deployment) = read.deployment {
            account.add(deployment);
        }
        (account.provider(model.limits, import), read.model)
    }

    pub fn write(self, import: &mut Import) {
        for mut account in self.accounts {
            let Settings { key, mut configurations } = account.settings;
            if let Some(first) = account.deployments.first_mut() {
                first["is_default"] = true.into();
                configurations.insert("azure_deployment_config".to_owned(), account.deployments.into());
            }
            let mut spec = Map::new();
            spec.insert("name".to_owned(), account.slug.clone().into());
            spec.insert("ai_provider_id".to_owned(), account.vendor.into());
            if let Some(key) = key {
                spec.insert("key".to_owned(), key.into());
            }
            if !configurations.is_empty() {
                spec.insert("configurations".to_owned(), configurations.into());
            }
            import.add("integration", &account.slug, spec);
            for provider in account.providers {
                let mut spec = Map::new();
                spec.insert("name".to_owned(), provider.slug.clone().into());
                spec.insert("integration_id".to_owned(), account.slug.clone().into());
                spec.extend(provider.limits);
                import.add("provider", &provider.slug, spec);
            }
        }
    }
}

impl Account {
    fn new(vendor: &'static str, settings: Settings, slug: String) -> Self {
        let (deployments, places, providers) = (Vec::new(), HashMap::new(), Vec::new());
        Self { vendor, settings, slug, deployments, places, providers }
    }

    /// A deployment is found by its model's name, so that another one of this name would never be called.
    fn takes(&self, deployment: &Value) -> bool {
        self.places.get(model_of(deployment)).is_none_or(|at| self.deployments[*at] == *deployment)
    }

    fn add(&mut self, deployment: Value) {
        if !self.places.contains_key(model_of(&deployment)) {
            self.places.insert(model_of(&deployment).to_owned(), self.deployments.len());
            self.deployments.push(deployment);
        }
    }

    /// Rates are those of one entry of the foreign file: providers with rates are not shared.
    fn provider(&mut self, limits: Map<String, Value>, import: &mut Import) -> String {
        let shared = self.providers.iter().find(|provider| limits.is_empty() && provider.limits.is_empty());
        if let Some(provider) = shared {
            return provider.slug.clone();
        }
        let slug = import.free_slug("provider", &self.slug);
        self.providers.push(Provider { slug: slug.clone(), limits });
        slug
    }
}

fn model_of(deployment: &Value) -> &str {
    deployment["azure_model_slug"].as_str().unwrap_or_default()
}
