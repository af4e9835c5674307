//! Where an account's credentials go. Whoever may change an account cannot read them, and must not be able to lead them
//! to a host of their own: when a change leads to another place, it has to bring the credentials with it.

use super::credentials::OpenedAccount;
use super::secrets::{self, Fields};
use crate::http::ApiError;
use serde_json::Value;
use shared::outbound::Origin;
use std::collections::{BTreeMap, BTreeSet};

/// Settings that are addresses. Of these the origin counts, not the path.
static ADDRESSES: &[&str] = &["custom_host", "azure_foundry_url", "huggingface_base_url"];
/// Settings that are a part of the provider's host name.
static NAMES: &[&str] = &[
    "resource_name",
    "azure_resource_name",
    "azure_endpoint_name",
    "azure_region",
    DEPLOYMENT,
    DEPLOYMENT_KIND,
    "databricks_workspace",
    "snowflake_account",
];

/// A part of the host only where the kind is said; else of paths.
const DEPLOYMENT: &str = "azure_deployment_name";
const DEPLOYMENT_KIND: &str = "azure_deployment_type";

/// What decides where credentials go; equal for two that go to the same place.
#[derive(Debug, PartialEq)]
pub struct Destination(BTreeMap<&'static str, String>);

impl Destination {
    pub fn from_configurations(configurations: &Fields) -> Self {
        let text = |name: &str| configurations.get(name).and_then(Value::as_str);
        let address = |name: &'static str| Some((name, origin_text(text(name)?)));
        let name = |name: &'static str| Some((name, text(name)?.to_ascii_lowercase()));
        let addresses = ADDRESSES.iter().filter_map(|one| address(one));
        let names = NAMES.iter().filter(|one| **one != DEPLOYMENT || configurations.contains_key(DEPLOYMENT_KIND));
        Self(addresses.chain(names.filter_map(|one| name(one))).collect())
    }
}

fn origin_text(url: &str) -> String {
    Origin::parse(url).map_or_else(|_| url.to_owned(), |origin| origin.to_string())
}

/// The addresses that an account names instead of its provider's own.
pub fn origins(configurations: &Fields) -> Vec<Origin> {
    let urls = ADDRESSES.iter().filter_map(|name| configurations.get(*name)?.as_str());
    urls.filter_map(|url| Origin::parse(url).ok()).collect()
}

/// The secrets that a change brings with it.
pub struct SentSecrets {
    key: bool,
    fields: BTreeSet<String>,
}

impl SentSecrets {
    /// A mask that comes back is no secret.
    pub fn from_change(key: Option<&Option<String>>, sent: Option<&Fields>, masks: &Value) -> Self {
        let is_new = |key: &str| masks["key"].as_str() != Some(key);
        let own = |(name, value): &(&String, &Value)| masks["configurations"].get(name.as_str()) != Some(*value);
        Self {
            key: key.and_then(Option::as_deref).is_some_and(is_new),
            fields: sent.into_iter().flatten().filter(own).map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Refuses a change that leads secrets elsewhere which it does not bring.
    pub fn check(&self, before: &Destination, after: &OpenedAccount) -> Result<(), ApiError> {
        const AGAIN: &str = "must be sent again, because this change leads it to another host";
        if *before == Destination::from_configurations(&after.configurations) {
            return Ok(());
        }
        if after.key.is_some() && !self.key {
            return Err(ApiError::field("key", AGAIN));
        }
        let secret = after.configurations.iter().filter(|(name, value)| secrets::is_secret(name, value));
        match secret.map(|(name, _)| name).find(|name| !self.fields.contains(name.as_str())) {
            Some(name) => Err(ApiError::field(format!("configurations.{name}"), AGAIN)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        value.as_object().unwrap().clone()
    }

    /// The field that a change of a stored account is refused for.
    fn refused(key: Option<Option<&str>>, sent: Value) -> Option<String> {
        let masks = json!({ "key": "sk*****abc", "configurations": { "custom_headers": { "x-a": "*****" } } });
        let stored = fields(
            json!({ "custom_host": "https://a.test/v1", "custom_headers": { "x-a": "s" }, "azure_region": "eu" }),
        );
        let before = Destination::from_configurations(&stored);
        let mut account = OpenedAccount { key: Some("sk-0123456789abc".into()), configurations: stored };
        let (key, sent) = (key.map(|key| key.map(str::to_owned)), fields(sent));
        let brought = SentSecrets::from_change(key.as_ref(), Some(&sent), &masks);
        account.change(key, Some(sent), &masks);
        match brought.check(&before, &account) {
            Ok(()) => None,
            Err(ApiError::Invalid { field, .. }) => field,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_change_that_leads_elsewhere_brings_every_secret_with_it() {
        let headers = "configurations.custom_headers";
        let evil = "https://evil.test";
        for (key, sent, expected) in [
            (None, json!({ "custom_host": "https://a.test/v2", "openai_organization": "o" }), None),
            (None, json!({ "custom_host": "https://A.test:443/v1" }), None),
            (Some(Some("new")), json!({ "openai_organization": "o" }), None),
            (None, json!({ "custom_host": evil }), Some("key")),
            (None, json!({ "custom_host": "http://a.test/v1" }), Some("key")),
            (None, json!({ "custom_host": "https://a.test:8443/v1" }), Some("key")),
            (None, json!({ "custom_host": null }), Some("key")),
            (None, json!({ "azure_region": "us" }), Some("key")),
            (None, json!({ "huggingface_base_url": evil }), Some("key")),
            (Some(Some("sk*****abc")), json!({ "custom_host": evil }), Some("key")),
            (Some(Some("new")), json!({ "custom_host": evil }), Some(headers)),
            (Some(Some("new")), json!({ "custom_host": evil, "custom_headers": { "x-a": "*****" } }), Some(headers)),
            (Some(Some("new")), json!({ "custom_host": evil, "custom_headers": { "x-a": "t" } }), None),
            (Some(None), json!({ "custom_host": evil, "custom_headers": null }), None),
        ] {
            assert_eq!(refused(key, sent.clone()).as_deref(), expected, "{key:?} {sent}");
        }
    }
}
