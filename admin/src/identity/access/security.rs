//! Security settings: switches of an organisation that widen or narrow what managers and members may do. A workspace
//! has values of its own for those categories that its organisation opened for override.

use crate::http::ApiError;
use crate::openapi::schema::{self, Schema};
use serde_json::{Map, Value};

pub struct SecuritySetting {
    pub name: &'static str,
    /// What `workspace_overrides` calls the group this setting belongs to.
    pub category: &'static str,
    pub default: bool,
}

/// Effective values, in the order of `SETTINGS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecuritySettings(Vec<bool>);

impl Default for SecuritySettings {
    fn default() -> Self {
        Self(SETTINGS.iter().map(|setting| setting.default).collect())
    }
}

impl SecuritySettings {
    /// An unknown name is off.
    pub fn is_on(&self, name: &str) -> bool {
        SETTINGS.iter().zip(&self.0).any(|(setting, value)| setting.name == name && *value)
    }

    /// As the interface shows them.
    pub fn shown(&self) -> Map<String, Value> {
        SETTINGS.iter().zip(&self.0).map(|(setting, value)| (setting.name.to_owned(), (*value).into())).collect()
    }
}

/// The workspace's value where its category is open for override, else the organisation's, else the default.
pub fn effective(organisation: &Value, workspace: &Value, overrides: &Value) -> SecuritySettings {
    let value = |setting: &SecuritySetting| {
        let is_open = overrides[setting.category].as_bool().unwrap_or(false);
        let own = workspace[setting.name].as_bool().filter(|_| is_open);
        own.or_else(|| organisation[setting.name].as_bool()).unwrap_or(setting.default)
    };
    SecuritySettings(SETTINGS.iter().map(value).collect())
}

pub fn setting(name: &str) -> Option<&'static SecuritySetting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The groups of settings, each once, in the order of `SETTINGS`.
pub fn categories() -> impl Iterator<Item = &'static str> {
    let is_first = |n: usize| n.checked_sub(1).is_none_or(|before| SETTINGS[before].category != SETTINGS[n].category);
    (0..SETTINGS.len()).filter(move |n| is_first(*n)).map(|n| SETTINGS[n].category)
}

/// The stored values with those that were sent. Names are checked here: a mistyped one would protect nothing.
pub fn changed(stored: &Value, sent: &Map<String, Value>) -> Result<Value, ApiError> {
    let mut values = stored.as_object().cloned().unwrap_or_default();
    for (name, value) in sent {
        if setting(name).is_none() {
            return Err(ApiError::field(name, "is not a security setting"));
        }
        if !value.is_boolean() {
            return Err(ApiError::field(name, "must be a boolean"));
        }
        values.insert(name.clone(), value.clone());
    }
    Ok(Value::Object(values))
}

/// Refuses those whom a switch narrows to change it: what narrows admins is set by owners.
pub fn may_change(acts_as_owner: bool, before: &SecuritySettings, after: &SecuritySettings) -> Result<(), ApiError> {
    let narrows_admins = |setting: &&SecuritySetting| setting.name.starts_with("organisationAdmins");
    let is_changed = SETTINGS.iter().filter(narrows_admins).any(|one| before.is_on(one.name) != after.is_on(one.name));
    if is_changed && !acts_as_owner {
        return Err(ApiError::Forbidden(
            "What narrows the organisation's admins is set by an owner's session, or by an organisation key with every \
             admin scope",
        ));
    }
    Ok(())
}

/// The organisation's values in categories that are open now and were not before.
pub fn opened(organisation: &Value, before: &Value, now: &Value) -> Value {
    let is_open = |overrides: &Value, category: &str| overrides[category].as_bool().unwrap_or(false);
    let is_opened = |one: &&SecuritySetting| !is_open(before, one.category) && is_open(now, one.category);
    let value = |one: &SecuritySetting| organisation[one.name].as_bool().unwrap_or(one.default);
    let values = SETTINGS.iter().filter(is_opened).map(|one| (one.name.to_owned(), value(one).into()));
    Value::Object(values.collect())
}

/// As the document shows them.
pub fn docs(title: &str) -> Schema {
    SETTINGS.iter().fold(schema::object(title), |all, one| all.may(one.name, schema::flag().eg(one.default))).closed()
}

const fn on(name: &'static str, category: &'static str) -> SecuritySetting {
    SecuritySetting { name, category, default: true }
}

const fn off(name: &'static str, category: &'static str) -> SecuritySetting {
    SecuritySetting { name, category, default: false }
}

pub static SETTINGS: &[SecuritySetting] = &[
    on("membersViewAllData", "data_visibility"),
    on("managersViewAllData", "data_visibility"),
    on("membersViewAnalytics", "analytics"),
    on("managersViewAnalytics", "analytics"),
    on("membersViewPrompts", "prompts"),
    off("membersWritePrompts", "prompts"),
    on("managersViewPrompts", "prompts"),
    on("managersWritePrompts", "prompts"),
    on("membersViewLogs", "logs"),
    on("managersViewLogs", "logs"),
    on("membersViewLogMetadata", "logs"),
    on("managersViewLogMetadata", "logs"),
    on("organisationAdminsViewLogs", "logs"),
    on("organisationAdminsViewLogMetadata", "logs"),
    on("membersViewApiKeys", "api_keys"),
    off("membersWriteApiKeys", "api_keys"),
    on("managersViewApiKeys", "api_keys"),
    on("managersWriteApiKeys", "api_keys"),
    on("membersViewVirtualKeys", "virtual_keys"),
    off("membersWriteVirtualKeys", "virtual_keys"),
    on("managersViewVirtualKeys", "virtual_keys"),
    on("managersWriteVirtualKeys", "virtual_keys"),
    on("membersViewConfigs", "configs"),
    off("membersWriteConfigs", "configs"),
    on("managersViewConfigs", "configs"),
    on("managersWriteConfigs", "configs"),
    on("membersViewGuardrails", "guardrails"),
    off("membersWriteGuardrails", "guardrails"),
    on("managersViewGuardrails", "guardrails"),
    on("managersWriteGuardrails", "guardrails"),
    on("managersWriteWsIntegrations", "integrations"),
    on("managersWriteWsMcpIntegrations", "integrations"),
    on("managersWriteMcpServers", "integrations"),
    on("managersUpdateWs", "workspace_management"),
    on("managersWriteWsUsers", "workspace_management"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workspaces_value_counts_only_where_its_category_is_open() {
        let organisation = json!({ "membersViewPrompts": false, "membersViewLogs": false });
        let workspace = json!({ "membersViewPrompts": true, "membersViewLogs": true, "membersViewConfigs": false });
        let settings = effective(&organisation, &workspace, &json!({ "prompts": true, "logs": false }));
        for (name, expected) in [
            ("membersViewPrompts", true),
            ("membersViewLogs", false),
            ("membersViewConfigs", true),
            ("membersWritePrompts", false),
            ("invented", false),
        ] {
            assert_eq!(settings.is_on(name), expected, "{name}");
        }
    }

    #[test]
    fn without_any_value_the_defaults_hold() {
        assert_eq!(effective(&Value::Null, &json!({}), &Value::Null), SecuritySettings::default());
        assert_eq!(SecuritySettings::default().shown().len(), SETTINGS.len());
    }

    #[test]
    fn each_category_is_named_once() {
        let mut names: Vec<_> = categories().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), count), (10, 10));
    }

    #[test]
    fn an_opened_category_starts_with_the_organisations_values() {
        let organisation = json!({ "membersViewAnalytics": false, "membersViewLogs": false });
        let values = opened(&organisation, &json!({ "logs": true }), &json!({ "logs": true, "analytics": true }));
        assert_eq!(values, json!({ "membersViewAnalytics": false, "managersViewAnalytics": true }));
    }
}
