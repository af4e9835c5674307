//! What a key gives to every request made with it: metadata, and a config that may or may not be overridden.

use crate::crud::{Action, metadata_schema};
use crate::http::{ApiError, Field, text};
use crate::identity::tenancy;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// As sent, key by key; unknown ones are ignored because clients send back what they read.
#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "struct Defaults", default)]
pub struct SentKeyDefaults {
    metadata: Field<BTreeMap<String, String>>,
    pub config_id: Field<String>,
    allow_config_override: Option<bool>,
    cost_in_answers: Option<bool>,
}

impl SentKeyDefaults {
    /// Over what is stored; metadata is replaced whole.
    pub fn over(self, stored: &Value) -> Result<Value, ApiError> {
        const MAX_METADATA: usize = 100;
        let mut merged = stored.as_object().cloned().unwrap_or_default();
        if let Field::Value(metadata) = &self.metadata
            && (metadata.len() > MAX_METADATA
                || metadata.iter().any(|(name, value)| name.len() > 255 || value.len() > 4096))
        {
            return Err(ApiError::field(
                "defaults.metadata",
                format!("must have at most {MAX_METADATA} short entries"),
            ));
        }
        let fits = |name: &String| (1..=255).contains(&name.chars().count());
        if matches!(&self.config_id, Field::Value(name) if !fits(name)) {
            return Err(ApiError::field("defaults.config_id", "must be the id or slug of a config"));
        }
        put(&mut merged, "metadata", self.metadata.sent().map(|sent| json!(sent)));
        put(&mut merged, "config_id", self.config_id.sent().map(|sent| json!(sent)));
        put(&mut merged, "allow_config_override", self.allow_config_override.map(Value::from));
        put(&mut merged, "cost_in_answers", self.cost_in_answers.map(Value::from));
        Ok(merged.into())
    }
}

fn put(merged: &mut Map<String, Value>, name: &str, sent: Option<Value>) {
    if let Some(value) = sent {
        merged.insert(name.to_owned(), value);
    }
}

/// Refuses a config that is not there for the key's workspace, or for the organisation where it has none. It cannot be
/// archived before the transaction ends.
pub async fn hold_config(action: &Action<'_>, workspace: Option<Uuid>, sent: &SentKeyDefaults) -> Result<(), ApiError> {
    const HOLD: &str = "SELECT FROM configs WHERE organisation_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2)
                        AND (slug = $3 OR id = $4) AND status = 'active' LIMIT 1 FOR SHARE";
    let Field::Value(name) = &sent.config_id else { return Ok(()) };
    let found = match text::is_slug(name) {
        true => action.tx.query_opt(HOLD, &[&action.organisation_id(), &workspace, name, &tenancy::id(name)]).await?,
        false => None,
    };
    match found {
        Some(_) => Ok(()),
        None => Err(ApiError::field("defaults.config_id", "must be the id or slug of a config of the workspace")),
    }
}

/// Refuses metadata that the organisation's schema for keys does not allow.
pub async fn conform(action: &Action<'_>, defaults: &Value) -> Result<(), ApiError> {
    const SCHEMA: &str = "SELECT metadata_schemas -> 'api_key' AS schema FROM organisations WHERE id = $1";
    let row = action.tx.query_one(SCHEMA, &[&action.organisation_id()]).await?;
    let schema: Option<Value> = row.try_get("schema")?;
    let none = Map::new();
    let metadata = defaults["metadata"].as_object().unwrap_or(&none);
    metadata_schema::conforms(&schema.unwrap_or_default(), metadata).map_err(|error| error.under("defaults.metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_merged_by_key() {
        let stored = json!({ "metadata": { "a": "1" }, "config_id": "pc-1", "allow_config_override": false });
        for (sent, expected) in [
            (
                json!({ "metadata": { "b": "2" } }),
                json!({ "metadata": { "b": "2" }, "config_id": "pc-1", "allow_config_override": false }),
            ),
            (
                json!({ "config_id": null, "x": 1 }),
                json!({ "metadata": { "a": "1" }, "config_id": null, "allow_config_override": false }),
            ),
            (
                json!({ "metadata": null, "allow_config_override": true }),
                json!({ "metadata": null, "config_id": "pc-1", "allow_config_override": true }),
            ),
        ] {
            let sent: SentKeyDefaults = serde_json::from_value(sent).unwrap();
            assert_eq!(sent.over(&stored).unwrap(), expected);
        }
        let long: SentKeyDefaults = serde_json::from_value(json!({ "config_id": "" })).unwrap();
        assert!(long.over(&stored).is_err());
    }
}
