//! Where values for the places of a provider's address and paths are found: a region, a project, a deployment. What a
//! target of a config says comes first, then what the request's headers say; of a stored account only its own fields
//! count, since its credential belongs to the place that they name.

use crate::request::headers::GatewayHeaders;
use serde_json::{Map, Value};
use shared::config::Placement;
use shared::model::Provider;
use shared::providers::{AccountFields, ProviderEntry};

/// What is known of one target's placement.
pub struct PlacementFields<'p> {
    pub config: Option<&'p Placement>,
    pub headers: Option<&'p GatewayHeaders<'p>>,
    /// A workspace's handle on a stored account: what it says itself comes before what the account says.
    pub handle: Option<&'p Provider>,
    /// The fields of a stored account.
    pub account: Option<&'p Value>,
    /// Chooses among deployments.
    pub model: Option<&'p str>,
}

impl<'p> PlacementFields<'p> {
    /// A field by the name it has in configs and accounts.
    pub fn get(&self, name: &str) -> Option<&'p str> {
        let in_config = || {
            let config = self.config?;
            let flag = || config.get(name)?.as_bool().map(|is_set| if is_set { "true" } else { "false" });
            config.text(name).or_else(flag).or_else(|| self.of_deployment(config.get(DEPLOYMENTS)?, name))
        };
        let in_header = || self.headers.and_then(|headers| headers.placement(name));
        let in_account = || {
            let account = self.account?;
            let own = account.get(name).and_then(Value::as_str);
            own.or_else(|| self.of_deployment(account.get(ACCOUNT_DEPLOYMENTS)?, name))
        };
        let in_handle = || self.handle.and_then(|handle| handle.own_setting(name));
        in_config().or_else(in_header).or_else(in_handle).or_else(in_account)
    }

    /// The values of all places of a provider's paths that have one.
    pub fn placed(&self, row: &ProviderEntry) -> Vec<(String, String)> {
        let filled = row.places().filter_map(|place| {
            let value = row.placed(place, |field| self.get(field))?;
            Some((place.to_owned(), value.to_owned()))
        });
        filled.collect()
    }

    /// The model of the deployment that answers in place of the one that was asked for: what is called, and paid for.
    pub fn fallback_model(&self) -> Option<&'p str> {
        let is_set = |name: &&str| {
            let in_config = self.config.is_some_and(|config| config.text(name).is_some());
            let in_account = self.account.is_some_and(|account| text(account, name).is_some());
            in_config || in_account || self.headers.is_some_and(|headers| headers.placement(name).is_some())
        };
        if ["azure_deployment_id", "deployment_id"].iter().any(is_set) {
            return None;
        }
        let in_config = self.config.and_then(|config| config.get(DEPLOYMENTS));
        let lists = [in_config, self.account.and_then(|account| account.get(ACCOUNT_DEPLOYMENTS))];
        let (chosen, is_asked) = lists.into_iter().flatten().find_map(|list| self.deployment(list))?;
        text(chosen, "azure_model_slug").filter(|_| !is_asked)
    }

    /// A field of the deployment that answers.
    fn of_deployment(&self, list: &'p Value, name: &str) -> Option<&'p str> {
        let (_, written) = DEPLOYMENT_FIELDS.iter().find(|(field, _)| *field == name)?;
        let (chosen, _) = self.deployment(list)?;
        written.iter().find_map(|name| text(chosen, name))
    }

    /// The deployment that serves the model, else the default one, else the first; and whether it is the model's own.
    fn deployment(&self, list: &'p Value) -> Option<(&'p Value, bool)> {
        let deployments = list.as_array()?;
        let is_asked = |deployment: &&'p Value| {
            NAMES.iter().any(|name| self.model.is_some() && text(deployment, name) == self.model)
        };
        if let Some(own) = deployments.iter().find(is_asked) {
            return Some((own, true));
        }
        let is_default = |deployment: &&'p Value| deployment.get("is_default") == Some(&Value::Bool(true));
        let chosen = deployments.iter().find(is_default).or(deployments.first());
        chosen.map(|chosen| (chosen, false))
    }
}

/// What the same places say of the account's credential.
impl AccountFields for PlacementFields<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        let in_config = self.config.and_then(|config| config.get(name)).and_then(Value::as_object);
        in_config.or_else(|| self.account?.get(name)?.as_object())
    }
}

fn text<'v>(deployment: &'v Value, name: &str) -> Option<&'v str> {
    deployment.get(name).and_then(Value::as_str)
}

/// Lists of deployments in a config and in an account.
const DEPLOYMENTS: &str = "deployments";
const ACCOUNT_DEPLOYMENTS: &str = "azure_deployment_config";

/// What a deployment may be asked for by.
const NAMES: [&str; 4] = ["alias", "azure_model_slug", "deployment_id", "azure_deployment_name"];

/// Fields, and how deployments of both lists write them.
const DEPLOYMENT_FIELDS: [(&str, [&str; 2]); 2] = [
    ("azure_deployment_id", ["deployment_id", "azure_deployment_name"]),
    ("azure_api_version", ["api_version", "azure_api_version"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_deployment_of_the_model_is_taken_and_else_the_default_one() {
        let account = json!({ "azure_resource_name": "acme", "azure_deployment_config": [
            { "azure_deployment_name": "one", "azure_api_version": "v-1", "azure_model_slug": "gpt-4o" },
            { "azure_deployment_name": "two", "azure_api_version": "v-2", "azure_model_slug": "o3", "is_default": true },
            { "azure_deployment_name": "three", "azure_api_version": "v-3", "azure_model_slug": "x", "alias": "fast" },
        ] });
        for (model, expected) in [
            (Some("gpt-4o"), ("one", "v-1")),
            (Some("fast"), ("three", "v-3")),
            (Some("unheard-of"), ("two", "v-2")),
            (None, ("two", "v-2")),
        ] {
            let fields = PlacementFields { config: None, headers: None, handle: None, account: Some(&account), model };
            let found = (fields.get("azure_deployment_id"), fields.get("azure_api_version"));
            assert_eq!(found, (Some(expected.0), Some(expected.1)), "{model:?}");
            assert_eq!(fields.get("azure_resource_name"), Some("acme"));
            assert_eq!(fields.get("resource_name"), None);
            let called = matches!(model, Some("unheard-of") | None).then_some("o3");
            assert_eq!(fields.fallback_model(), called, "{model:?}");
        }
    }
}
