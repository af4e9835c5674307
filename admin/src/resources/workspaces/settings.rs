//! A workspace's defaults and its own security settings: what may be sent, and how it joins what is stored.

use crate::crud::{Action, metadata_schema};
use crate::http::{ApiError, Field};
use crate::identity::access::security as known;
use crate::resources::guardrails::named;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// What every request of the workspace starts from. Fields beyond these are ignored: clients send back what they read.
#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "struct Defaults", default)]
pub struct WorkspaceDefaults {
    metadata: Field<BTreeMap<String, String>>,
    input_guardrails: Field<Vec<String>>,
    output_guardrails: Field<Vec<String>>,
    user_api_key_config: Field<String>,
}

impl WorkspaceDefaults {
    /// Key by key over what is stored; metadata is replaced whole.
    pub fn over(self, stored: Option<&Value>) -> Result<Value, ApiError> {
        let mut merged = stored.and_then(Value::as_object).cloned().unwrap_or_default();
        put(&mut merged, "metadata", self.metadata.try_map(metadata)?.sent());
        put(&mut merged, "input_guardrails", self.input_guardrails.sent().map(|names| names.map(|names| json!(names))));
        put(
            &mut merged,
            "output_guardrails",
            self.output_guardrails.sent().map(|names| names.map(|names| json!(names))),
        );
        put(&mut merged, "user_api_key_config", self.user_api_key_config.sent().map(|name| name.map(Value::from)));
        Ok(merged.into())
    }
}

/// Puts slugs in the place of the guardrails that were named, and refuses names that nothing has: of the workspace, which
/// a new one is not yet, and of the organisation.
pub async fn find_guardrails(
    action: &Action<'_>,
    workspace: Option<Uuid>,
    sent: &mut Field<WorkspaceDefaults>,
) -> Result<(), ApiError> {
    let Field::Value(defaults) = sent else { return Ok(()) };
    for (field, names) in [
        ("defaults.input_guardrails", &mut defaults.input_guardrails),
        ("defaults.output_guardrails", &mut defaults.output_guardrails),
    ] {
        if let Field::Value(names) = names {
            let found = named::find(action, workspace, field, names).await?;
            *names = found.into_iter().map(|one| one.slug).collect();
        }
    }
    Ok(())
}

/// Refuses metadata of a new workspace that the organisation's schema does not allow.
pub fn conform(schema: &Value, sent: &Field<WorkspaceDefaults>) -> Result<(), ApiError> {
    let metadata = match sent {
        Field::Value(WorkspaceDefaults { metadata: Field::Value(metadata), .. }) => {
            metadata.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
        }
        _ => Map::new(),
    };
    metadata_schema::conforms(schema, &metadata).map_err(|error| error.under("defaults.metadata"))
}

fn metadata(metadata: BTreeMap<String, String>) -> Result<Value, ApiError> {
    if metadata.iter().any(|(name, value)| name.len() > 255 || value.len() > 4096) || metadata.len() > 100 {
        return Err(ApiError::field("defaults.metadata", "must have at most 100 short entries"));
    }
    Ok(json!(metadata))
}

fn put(merged: &mut Map<String, Value>, name: &str, sent: Option<Option<Value>>) {
    match sent {
        None => {}
        Some(None) => {
            merged.remove(name);
        }
        Some(Some(value)) => {
            merged.insert(name.to_owned(), value);
        }
    }
}

pub fn shown_defaults(stored: Option<&Value>, is_default: bool) -> Value {
    let Some(stored) = stored else { return Value::Null };
    let list = |name: &str| if stored[name].is_array() { stored[name].clone() } else { json!([]) };
    json!({
        "metadata": stored["metadata"],
        "is_default": i64::from(is_default),
        "input_guardrails": list("input_guardrails"),
        "output_guardrails": list("output_guardrails"),
        "user_api_key_config": stored["user_api_key_config"],
        "object": "workspace",
    })
}

/// Security settings of the workspace: known names, and only in categories that the organisation opened.
pub fn security(sent: Map<String, Value>, stored: &Value, overrides: &Value) -> Result<Value, ApiError> {
    let mut merged = stored.as_object().cloned().unwrap_or_default();
    for (name, value) in sent {
        let path = format!("security_settings.{name}");
        let Some(setting) = known::setting(&name) else {
            return Err(ApiError::field(path, "is not a security setting"));
        };
        if !value.is_boolean() {
            return Err(ApiError::field(path, "must be true or false"));
        }
        if !overrides[setting.category].as_bool().unwrap_or(false) {
            return Err(ApiError::field(path, "is not open to workspaces; the organisation decides"));
        }
        merged.insert(name, value);
    }
    Ok(merged.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_merged_by_key_and_metadata_is_replaced() {
        let stored = json!({ "metadata": { "a": "1", "b": "2" }, "user_api_key_config": "pc-1" });
        for (sent, expected) in [
            (json!({ "metadata": { "c": "3" } }), json!({ "metadata": { "c": "3" }, "user_api_key_config": "pc-1" })),
            (json!({ "user_api_key_config": null, "is_default": 1 }), json!({ "metadata": { "a": "1", "b": "2" } })),
        ] {
            let sent: WorkspaceDefaults = serde_json::from_value(sent).unwrap();
            assert_eq!(sent.over(Some(&stored)).unwrap(), expected);
        }
        assert!(serde_json::from_value::<WorkspaceDefaults>(json!({ "metadata": { "a": 1 } })).is_err());
    }

    #[test]
    fn only_open_known_settings_are_taken() {
        let overrides = json!({ "prompts": true });
        for (sent, accepted) in [
            (json!({ "membersViewPrompts": false }), true),
            (json!({ "membersViewLogs": false }), false),
            (json!({ "invented": true }), false),
            (json!({ "membersViewPrompts": "no" }), false),
        ] {
            let fields = sent.as_object().cloned().unwrap();
            assert_eq!(security(fields, &json!({}), &overrides).is_ok(), accepted, "{sent}");
        }
    }
}
