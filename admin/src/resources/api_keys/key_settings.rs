//! What a workspace sets for the keys of its people: how long they live, how many there may be, and their defaults. How long
//! other keys live is set by the organisation.

use super::expiry::Lifetimes;
use crate::crud::tenant_settings;
use crate::http::ApiError;
use serde_json::{Map, Value};
use shared::model::KeyKind;
use tokio_postgres::Transaction;
use uuid::Uuid;

#[derive(Debug, Default)]
pub struct KeySettings {
    pub lifetimes: Lifetimes,
    /// The config that keys without one of their own use.
    pub user_config: Option<String>,
    /// Days until a key is rotated, where none were asked for.
    pub rotation_days: Option<i64>,
    /// Whether who joins gets a key without asking.
    pub creates_keys: bool,
    metadata: Map<String, Value>,
    /// Whether a key's own metadata wins over the workspace's.
    may_override_metadata: bool,
    /// Negative is unlimited.
    most: i64,
    keys: i64,
}

impl KeySettings {
    /// Keeps the workspace from being archived meanwhile, and others from counting at the same time, so that the last
    /// free place is given once. None when there is no such active workspace.
    pub async fn held(tx: &Transaction<'_>, organisation: Uuid, workspace: Uuid) -> Result<Option<Self>, ApiError> {
        const COUNT: &str = "SELECT count(*) FROM api_keys
                             WHERE organisation_id = $1 AND workspace_id = $2 AND kind = 'workspace-user'
                               AND status <> 'archived' AND session_id IS NULL";
        let Some(mut place) = Self::load(tx, organisation, workspace, "FOR NO KEY UPDATE OF w").await? else {
            return Ok(None);
        };
        if place.most >= 0 {
            place.keys = tx.query_one(COUNT, &[&organisation, &workspace]).await?.try_get(0)?;
        }
        Ok(Some(place))
    }

    /// Without counting, for a key that exists.
    pub async fn seen(tx: &Transaction<'_>, organisation: Uuid, workspace: Uuid) -> Result<Self, ApiError> {
        Self::load(tx, organisation, workspace, "").await?.ok_or(ApiError::NotFound("workspace"))
    }

    /// Of a key that is nobody's: how long those of its kind live.
    pub async fn of_service(tx: &Transaction<'_>, organisation: Uuid, kind: KeyKind) -> Result<Self, ApiError> {
        const SETTINGS: &str = "SELECT settings FROM organisations WHERE id = $1";
        let settings: Value = tx.query_one(SETTINGS, &[&organisation]).await?.try_get(0)?;
        let seconds = |name: &str| settings[name].as_i64().unwrap_or(0);
        let lifetimes = match kind {
            KeyKind::OrganisationService => {
                Lifetimes { default: seconds("admin_api_key_ttl"), most: seconds("admin_api_key_max_ttl") }
            }
            _ => Lifetimes { default: seconds("service_api_key_ttl"), most: seconds("service_api_key_max_ttl") },
        };
        Ok(Self { lifetimes, ..Self::default() })
    }

    pub fn is_full(&self) -> bool {
        self.most >= 0 && self.keys >= self.most
    }

    pub fn refuse_if_full(&self) -> Result<(), ApiError> {
        match self.is_full() {
            true => {
                Err(ApiError::invalid(format!("This workspace may have {} keys of people, and has them", self.most)))
            }
            false => Ok(()),
        }
    }

    /// The metadata of a key: its own together with the workspace's.
    pub fn metadata(&self, own: Option<&Map<String, Value>>) -> Map<String, Value> {
        let (weaker, stronger) = match (own, self.may_override_metadata) {
            (None, _) => (None, &self.metadata),
            (Some(own), true) => (Some(&self.metadata), own),
            (Some(own), false) => (Some(own), &self.metadata),
        };
        weaker.into_iter().chain([stronger]).flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    async fn load(
        tx: &Transaction<'_>,
        organisation: Uuid,
        workspace: Uuid,
        lock: &str,
    ) -> Result<Option<Self>, ApiError> {
        let sql = format!(
            "SELECT w.settings, w.defaults ->> 'user_api_key_config' AS config, o.settings AS organisation
             FROM workspaces w JOIN organisations o ON o.id = w.organisation_id
             WHERE w.id = $1 AND w.organisation_id = $2 AND w.status = 'active' {lock}"
        );
        let Some(row) = tx.query_opt(&sql, &[&workspace, &organisation]).await? else { return Ok(None) };
        let (own, shared): (Value, Value) = (row.try_get("settings")?, row.try_get("organisation")?);
        Ok(Some(Self { user_config: row.try_get("config")?, ..Self::merged(&own, &shared) }))
    }

    fn merged(own: &Value, shared: &Value) -> Self {
        let setting = |name: &str| tenant_settings::number(name, own, shared);
        Self {
            lifetimes: Lifetimes { default: setting("user_api_key_ttl"), most: setting("user_api_key_max_ttl") },
            rotation_days: shared["user_api_key_rotation_period"].as_i64(),
            creates_keys: setting("user_api_key_auto_create") == 1,
            metadata: own["user_key_metadata"].as_object().cloned().unwrap_or_default(),
            may_override_metadata: setting("user_key_metadata_override") == 1,
            most: setting("user_api_key_count"),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workspaces_metadata_wins_unless_it_may_be_overridden() {
        let own = json!({ "team": "red", "app": "x" });
        for (is_open, team) in [(0, "blue"), (1, "red")] {
            let settings = json!({ "user_key_metadata": { "team": "blue" }, "user_key_metadata_override": is_open });
            let place = KeySettings::merged(&settings, &json!({}));
            assert_eq!(Value::Object(place.metadata(own.as_object())), json!({ "team": team, "app": "x" }));
            assert_eq!(Value::Object(place.metadata(None)), json!({ "team": "blue" }));
        }
        assert!(KeySettings::merged(&json!({}), &json!({})).metadata(None).is_empty());
    }

    #[test]
    fn a_workspace_is_full_with_as_many_keys_as_it_may_have() {
        for (most, keys, is_full) in [(-1, 9, false), (0, 0, true), (2, 1, false), (2, 2, true)] {
            let place = KeySettings { most, keys, ..KeySettings::default() };
            assert_eq!(place.is_full(), is_full, "{most} {keys}");
            assert_eq!(place.refuse_if_full().is_err(), is_full);
        }
    }
}
