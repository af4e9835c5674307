//! The `settings` of an organisation: stored is what was set, shown is that over the defaults. A setting that is sent
//! as null has its default again; settings that are not sent stay.

use super::merge;
use crate::crud::tenant_settings::{count, seconds};
use crate::http::{ApiError, Field};
use crate::identity::access::security;
use crate::logs::exports::fields;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsChange {
    debug_log: Field<SwitchSetting>,
    user_api_key_ttl: Field<i64>,
    user_api_key_max_ttl: Field<i64>,
    service_api_key_ttl: Field<i64>,
    service_api_key_max_ttl: Field<i64>,
    admin_api_key_ttl: Field<i64>,
    admin_api_key_max_ttl: Field<i64>,
    user_api_key_count: Field<i64>,
    user_api_key_auto_create: Field<SwitchSetting>,
    user_api_key_rotation_period: Field<RotationSetting>,
    block_inline_config: Field<bool>,
    cost_in_answers: Field<SwitchSetting>,
    cache_max_age: Field<i64>,
    relay_with_guardrails: Field<Vec<String>>,
    export_settings: Field<ExportSettings>,
    scim_only_user_management: Field<bool>,
    workspace_overrides: Field<BTreeMap<String, bool>>,
}

/// A switch that is written as 0 or 1; clients also send booleans.
#[derive(Deserialize)]
#[serde(untagged, expecting = "0 or 1")]
enum SwitchSetting {
    Number(i64),
    Bool(bool),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of days, `weekly` or `monthly`")]
enum RotationSetting {
    Days(i64),
    Name(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportSettings {
    #[serde(rename = "deniedFields")]
    denied_fields: Vec<String>,
}

pub fn shown(stored: &Value) -> Value {
    let mut shown = json!({
        "debug_log": 1,
        "user_api_key_ttl": 0,
        "user_api_key_max_ttl": 0,
        "service_api_key_ttl": 0,
        "service_api_key_max_ttl": 0,
        "admin_api_key_ttl": 0,
        "admin_api_key_max_ttl": 0,
        "user_api_key_count": -1,
        "user_api_key_auto_create": 0,
        "user_api_key_rotation_period": null,
        "block_inline_config": false,
        "cost_in_answers": 1,
        "cache_max_age": null,
        "relay_with_guardrails": [],
        "export_settings": { "deniedFields": [] },
        "scim_only_user_management": false,
    });
    let overrides: Map<String, Value> = security::categories()
        .map(|name| (name.to_owned(), stored["workspace_overrides"][name].as_bool().unwrap_or(false).into()))
        .collect();
    for (name, value) in shown.as_object_mut().into_iter().flatten() {
        if let Some(set) = stored.get(name) {
            *value = set.clone();
        }
    }
    shown["workspace_overrides"] = Value::Object(overrides);
    shown
}

pub fn changed(stored: &Value, change: SettingsChange) -> Result<Value, ApiError> {
    let mut settings = stored.as_object().cloned().unwrap_or_default();
    merge(&mut settings, "debug_log", change.debug_log.try_map(|flag| flag.checked("debug_log"))?);
    for (name, sent) in [
        ("user_api_key_ttl", change.user_api_key_ttl),
        ("user_api_key_max_ttl", change.user_api_key_max_ttl),
        ("service_api_key_ttl", change.service_api_key_ttl),
        ("service_api_key_max_ttl", change.service_api_key_max_ttl),
        ("admin_api_key_ttl", change.admin_api_key_ttl),
        ("admin_api_key_max_ttl", change.admin_api_key_max_ttl),
    ] {
        merge(&mut settings, name, sent.try_map(|ttl| seconds(name, ttl))?);
    }
    merge(
        &mut settings,
        "user_api_key_count",
        change.user_api_key_count.try_map(|sent| count("user_api_key_count", sent))?,
    );
    let auto = change.user_api_key_auto_create.try_map(|flag| flag.checked("user_api_key_auto_create"))?;
    merge(&mut settings, "user_api_key_auto_create", auto);
    let period = change.user_api_key_rotation_period.try_map(RotationSetting::days)?;
    merge(&mut settings, "user_api_key_rotation_period", period);
    merge(&mut settings, "block_inline_config", change.block_inline_config);
    let cost_in_answers = change.cost_in_answers.try_map(|flag| flag.checked("cost_in_answers"))?;
    merge(&mut settings, "cost_in_answers", cost_in_answers);
    merge(&mut settings, "cache_max_age", change.cache_max_age.try_map(cache_age)?);
    merge(&mut settings, "relay_with_guardrails", change.relay_with_guardrails.try_map(relayed_paths)?);
    merge(&mut settings, "export_settings", change.export_settings.try_map(ExportSettings::checked)?);
    merge(&mut settings, "scim_only_user_management", change.scim_only_user_management);
    let overrides = change.workspace_overrides.try_map(|sent| overrides(&stored["workspace_overrides"], sent))?;
    merge(&mut settings, "workspace_overrides", overrides);
    let ttl = |name: &str| settings.get(name).and_then(Value::as_i64).unwrap_or(0);
    for (usual, longest) in [
        ("user_api_key_ttl", "user_api_key_max_ttl"),
        ("service_api_key_ttl", "service_api_key_max_ttl"),
        ("admin_api_key_ttl", "admin_api_key_max_ttl"),
    ] {
        if ttl(longest) > 0 && ttl(usual) > ttl(longest) {
            return Err(ApiError::field(usual, format!("must not be longer than {longest}")));
        }
    }
    Ok(Value::Object(settings))
}

/// In seconds.
pub const CACHE_AGES: RangeInclusive<i64> = 60..=25_923_000;

fn cache_age(sent: i64) -> Result<i64, ApiError> {
    match CACHE_AGES.contains(&sent) {
        true => Ok(sent),
        false => {
            let (least, most) = (CACHE_AGES.start(), CACHE_AGES.end());
            Err(ApiError::field("cache_max_age", format!("must be from {least} to {most} seconds")))
        }
    }
}

/// Patterns of paths that pass where guardrails cannot judge what is relayed.
pub const MAX_RELAYED_PATHS: usize = 100;
pub const MAX_RELAYED_PATH_LENGTH: usize = 200;

fn relayed_paths(sent: Vec<String>) -> Result<Vec<String>, ApiError> {
    let field = |n: usize| format!("relay_with_guardrails[{n}]");
    if sent.len() > MAX_RELAYED_PATHS {
        return Err(ApiError::field("relay_with_guardrails", format!("must be at most {MAX_RELAYED_PATHS} paths")));
    }
    for (n, path) in sent.iter().enumerate() {
        let is_path = path.starts_with('/')
            && path.len() <= MAX_RELAYED_PATH_LENGTH
            && path.bytes().all(|byte| byte.is_ascii_graphic())
            && !path.contains("..")
            && !path.contains("//")
            && !path.contains(['?', '#', '%', '\\', ';']);
        if !is_path {
            let why = "must be a path as /v1/files or /v1/audio/**, without a query, of at most 200 letters";
            return Err(ApiError::field(field(n), why));
        }
    }
    Ok(sent)
}

impl SwitchSetting {
    fn checked(self, field: &str) -> Result<i64, ApiError> {
        match self {
            Self::Number(number @ (0 | 1)) => Ok(number),
            Self::Bool(is_on) => Ok(is_on.into()),
            Self::Number(_) => Err(ApiError::field(field, "must be 0 or 1")),
        }
    }
}

impl RotationSetting {
    fn days(self) -> Result<i64, ApiError> {
        match self {
            Self::Days(days @ 1..=365) => Ok(days),
            Self::Name(name) if name == "weekly" => Ok(7),
            Self::Name(name) if name == "monthly" => Ok(30),
            _ => Err(ApiError::field("user_api_key_rotation_period", "must be 1 to 365 days, `weekly` or `monthly`")),
        }
    }
}

impl ExportSettings {
    fn checked(self) -> Result<Value, ApiError> {
        match self.denied_fields.iter().position(|name| !fields::names().any(|one| one == name)) {
            Some(n) => {
                Err(ApiError::field(format!("export_settings.deniedFields[{n}]"), "is not a field of log exports"))
            }
            None => {
                let mut fields = self.denied_fields;
                fields.sort_unstable();
                fields.dedup();
                Ok(json!({ "deniedFields": fields }))
            }
        }
    }
}

fn overrides(stored: &Value, sent: BTreeMap<String, bool>) -> Result<Value, ApiError> {
    let mut overrides = stored.as_object().cloned().unwrap_or_default();
    for (name, is_open) in sent {
        if !security::categories().any(|category| category == name) {
            return Err(ApiError::field(format!("workspace_overrides.{name}"), "is not a category of settings"));
        }
        overrides.insert(name, is_open.into());
    }
    Ok(Value::Object(overrides))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::json;

    fn apply(stored: Value, sent: Value) -> Result<Value, String> {
        let change = json::parse(sent).map_err(|error| error.to_string())?;
        changed(&stored, change).map_err(|error| error.to_string())
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_and_null_brings_the_default_back() {
        let stored = json!({ "debug_log": 0, "user_api_key_ttl": 60, "unknown_to_this_version": 1 });
        let settings = apply(stored, json!({ "debug_log": null, "user_api_key_rotation_period": "weekly" })).unwrap();
        assert_eq!(
            settings,
            json!({ "user_api_key_ttl": 60, "unknown_to_this_version": 1, "user_api_key_rotation_period": 7 })
        );
        assert_eq!(shown(&settings)["debug_log"], 1);
        assert_eq!(shown(&settings)["workspace_overrides"]["logs"], false);
    }

    #[test]
    fn overrides_are_changed_one_category_at_a_time() {
        let stored = json!({ "workspace_overrides": { "logs": true } });
        let settings = apply(stored, json!({ "workspace_overrides": { "prompts": true } })).unwrap();
        assert_eq!(settings["workspace_overrides"], json!({ "logs": true, "prompts": true }));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (sent, field) in [
            (json!({ "invented": 1 }), "invented"),
            (json!({ "debug_log": 2 }), "debug_log"),
            (json!({ "debug_log": "on" }), "debug_log"),
            (json!({ "user_api_key_ttl": -1 }), "user_api_key_ttl"),
            (json!({ "user_api_key_ttl": 61, "user_api_key_max_ttl": 60 }), "user_api_key_ttl"),
            (json!({ "user_api_key_max_ttl": 99_999_999_999_i64 }), "user_api_key_max_ttl"),
            (json!({ "service_api_key_ttl": 61, "service_api_key_max_ttl": 60 }), "service_api_key_ttl"),
            (json!({ "admin_api_key_ttl": 61, "admin_api_key_max_ttl": 60 }), "admin_api_key_ttl"),
            (json!({ "admin_api_key_max_ttl": -1 }), "admin_api_key_max_ttl"),
            (json!({ "user_api_key_count": -2 }), "user_api_key_count"),
            (json!({ "user_api_key_rotation_period": 366 }), "user_api_key_rotation_period"),
            (json!({ "user_api_key_rotation_period": "daily" }), "user_api_key_rotation_period"),
            (json!({ "relay_with_guardrails": ["/v1/files", "files"] }), "relay_with_guardrails[1]"),
            (json!({ "relay_with_guardrails": ["/v1/../x"] }), "relay_with_guardrails[0]"),
            (json!({ "cache_max_age": 59 }), "cache_max_age"),
            (json!({ "cache_max_age": 25_923_001 }), "cache_max_age"),
            (json!({ "export_settings": { "deniedFields": ["id", "x"] } }), "export_settings.deniedFields[1]"),
            (json!({ "workspace_overrides": { "invented": true } }), "workspace_overrides.invented"),
            (json!({ "workspace_overrides": { "logs": 1 } }), "workspace_overrides.logs"),
        ] {
            let refused = apply(json!({}), sent.clone()).unwrap_err();
            assert!(refused.starts_with(&format!("{field}: ")), "{sent}: {refused}");
        }
    }
}
