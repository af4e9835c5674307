//! A saved config, compiled when its row arrives: a request finds a plan, never a text. Its breakers and budgets live
//! as long as what it says: a new name, or a turn as the workspace's default, does not reset them.

use super::collection::Tracked;
use crate::routing::plan::{Plan, compile};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shared::config::{Strictness, parse_config};
use shared::model::Config;
use shared::model::id::{OrganisationId, WorkspaceId};
use shared::settings::config_limits::ConfigLimits;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug)]
pub struct SavedConfig {
    pub row: Config,
    pub plan: Arc<Plan>,
}

/// What finds a config.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ConfigKey {
    /// Its slug or its id, in an organisation.
    Name(OrganisationId, String),
    DefaultOf(WorkspaceId),
}

impl SavedConfig {
    /// Read kindly: a row that an older or newer release wrote should work for as much of it as is understood. How large
    /// it may be was judged when it was saved.
    fn new(row: Config) -> anyhow::Result<Self> {
        let any = usize::MAX;
        let limits = ConfigLimits {
            root_targets: any,
            conditional_root_targets: any,
            nested_targets: any,
            hash_fields: any,
            ..ConfigLimits::default()
        };
        let config = parse_config(&row.config, Strictness::Inline, &limits);
        let mut config =
            config.map_err(|faults| anyhow::anyhow!("{}", faults.first().map_or("", |fault| &fault.message)))?;
        config.sealed_in(row.organisation_id.uuid(), row.id.uuid());
        Ok(Self { plan: Arc::new(compile(&config)), row })
    }
}

impl Tracked for SavedConfig {
    type Key = ConfigKey;
    const TABLE: &'static str = "configs";
    const COLUMNS: &'static str = Config::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::new(Config::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.row.id.uuid()
    }

    fn key(&self) -> ConfigKey {
        ConfigKey::Name(self.row.organisation_id, self.row.slug.clone())
    }

    fn follow(&mut self, before: &Self) {
        if self.row.config == before.row.config {
            self.plan = before.plan.clone();
        }
    }

    fn other_keys(&self) -> Vec<ConfigKey> {
        let mut keys = vec![ConfigKey::Name(self.row.organisation_id, self.row.id.to_string())];
        if self.row.is_default && self.row.is_active() {
            keys.push(ConfigKey::DefaultOf(self.row.workspace_id));
        }
        keys
    }
}

impl Serialize for SavedConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.row.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SavedConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Config::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::collection::Collection;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_keeps_its_plan_until_it_says_something_else() {
        let row = |slug: &str, attempts: u8, is_default: bool| {
            let row = json!({
                "id": Uuid::from_u128(1), "organisation_id": Uuid::from_u128(2), "workspace_id": Uuid::from_u128(3),
                "slug": slug, "config": { "retry": { "attempts": attempts } }, "is_default": is_default,
                "status": "active", "version_id": Uuid::from_u128(4),
            });
            serde_json::from_value::<SavedConfig>(row).unwrap()
        };
        let configs = Collection::empty();
        let plan = |name: &str| {
            let key = ConfigKey::Name(Uuid::from_u128(2).into(), name.to_owned());
            configs.find(&key).map(|config: Arc<SavedConfig>| config.plan.clone())
        };
        configs.merge(&[], vec![row("one", 1, false)]);
        let first = plan("one").unwrap();
        configs.merge(&[], vec![row("renamed", 1, true)]);
        assert!(plan("one").is_none());
        assert!(Arc::ptr_eq(&plan("renamed").unwrap(), &first));
        configs.replace(vec![row("renamed", 1, false)]);
        assert!(Arc::ptr_eq(&plan("renamed").unwrap(), &first), "also when everything is read anew");
        configs.merge(&[], vec![row("renamed", 2, false)]);
        assert!(!Arc::ptr_eq(&plan("renamed").unwrap(), &first));
    }
}
