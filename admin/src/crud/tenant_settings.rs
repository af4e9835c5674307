//! Settings that a workspace may have for itself and otherwise takes from its organisation: body logging, and what
//! holds for the keys of people. Pure.

use crate::http::{ApiError, Field};
use crate::openapi::schema::{self, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The longest lifetime of keys, in seconds: a hundred years. Longer is a slip of the keyboard, and times must stay
/// within what can be written.
const MAX_LIFETIME: i64 = 100 * 365 * 86400;

/// A lifetime as an organisation or a workspace may set it; zero is none.
pub fn seconds(field: &str, sent: i64) -> Result<i64, ApiError> {
    within(field, sent, 0..=MAX_LIFETIME)
}

/// A number of keys; -1 is unlimited.
pub fn count(field: &str, sent: i64) -> Result<i64, ApiError> {
    within(field, sent, -1..=i64::from(i32::MAX))
}

fn within(field: &str, sent: i64, range: RangeInclusive<i64>) -> Result<i64, ApiError> {
    match range.contains(&sent) {
        true => Ok(sent),
        false => Err(ApiError::field(field, format!("must be from {} to {}", range.start(), range.end()))),
    }
}

/// Settings as sent; what is absent is kept, null returns to the organisation's value.
#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "struct Sent", default, deny_unknown_fields)]
pub struct SentTenantSettings {
    debug_log: Field<BoolOrBit>,
    cost_in_answers: Field<BoolOrBit>,
    plain_model_names: Field<BoolOrBit>,
    own_credentials: Field<BoolOrBit>,
    user_api_key_ttl: Field<i64>,
    user_api_key_max_ttl: Field<i64>,
    user_api_key_count: Field<i64>,
    user_key_metadata: Field<BTreeMap<String, String>>,
    user_key_metadata_override: Field<BoolOrBit>,
}

/// `true`, `false`, 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct BoolOrBit(pub bool);

impl TryFrom<Value> for BoolOrBit {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, &'static str> {
        match (value.as_bool(), value.as_i64()) {
            (Some(flag), _) => Ok(Self(flag)),
            (None, Some(0)) => Ok(Self(false)),
            (None, Some(1)) => Ok(Self(true)),
            (None, _) => Err("must be true, false, 1 or 0"),
        }
    }
}

impl SentTenantSettings {
    /// The stored settings with these put over them. Errors are named below `settings`.
    pub fn over(self, stored: &Value) -> Result<Value, ApiError> {
        let ttl = self.user_api_key_ttl.try_map(|sent| seconds("settings.user_api_key_ttl", sent))?;
        let longest = self.user_api_key_max_ttl.try_map(|sent| seconds("settings.user_api_key_max_ttl", sent))?;
        let most = self.user_api_key_count.try_map(|sent| count("settings.user_api_key_count", sent))?;
        let mut merged = stored.as_object().cloned().unwrap_or_default();
        put(&mut merged, "debug_log", self.debug_log, |flag| i64::from(flag.0).into());
        put(&mut merged, "cost_in_answers", self.cost_in_answers, |flag| i64::from(flag.0).into());
        put(&mut merged, "plain_model_names", self.plain_model_names, |flag| i64::from(flag.0).into());
        put(&mut merged, "own_credentials", self.own_credentials, |flag| i64::from(flag.0).into());
        put(&mut merged, "user_api_key_ttl", ttl, Value::from);
        put(&mut merged, "user_api_key_max_ttl", longest, Value::from);
        put(&mut merged, "user_api_key_count", most, Value::from);
        put(&mut merged, "user_key_metadata", self.user_key_metadata, |metadata| json!(metadata));
        put(&mut merged, "user_key_metadata_override", self.user_key_metadata_override, |flag| {
            i64::from(flag.0).into()
        });
        Ok(merged.into())
    }
}

fn put<T>(settings: &mut Map<String, Value>, name: &str, sent: Field<T>, write: impl FnOnce(T) -> Value) {
    match sent {
        Field::Absent => {}
        Field::Null => {
            settings.remove(name);
        }
        Field::Value(value) => {
            settings.insert(name.to_owned(), write(value));
        }
    }
}

static DEFAULTS: &[(&str, i64)] = &[
    ("debug_log", 1),
    ("cost_in_answers", 1),
    ("plain_model_names", 0),
    ("own_credentials", 0),
    ("user_api_key_ttl", 0),
    ("user_api_key_max_ttl", 0),
    ("user_api_key_count", -1),
];

/// The value that counts: the workspace's, else the organisation's, else the default.
pub fn number(name: &str, workspace: &Value, organisation: &Value) -> i64 {
    let default = DEFAULTS.iter().find(|(one, _)| *one == name).map_or(0, |(_, value)| *value);
    workspace[name].as_i64().or_else(|| organisation[name].as_i64()).unwrap_or(default)
}

/// What a new workspace begins with, as the column's own default says it.
pub fn of_new_workspace() -> Value {
    json!({ "plain_model_names": 1 })
}

/// All of them, as a workspace shows them.
pub fn shown(workspace: &Value, organisation: &Value) -> Value {
    let numbers = DEFAULTS.iter().map(|(name, _)| ((*name).to_owned(), number(name, workspace, organisation).into()));
    let mut shown: Map<String, Value> = numbers.collect();
    shown.insert("user_key_metadata".into(), workspace["user_key_metadata"].clone());
    let overrides = workspace["user_key_metadata_override"].as_i64().unwrap_or(0);
    shown.insert("user_key_metadata_override".into(), overrides.into());
    shown.into()
}

/// As the document shows them, sent and shown.
pub fn docs() -> (Schema, Schema) {
    let switch = || schema::either([schema::bit(), schema::flag(), schema::nothing()]);
    let sent = schema::object("WorkspaceSettingsChange")
        .may("debug_log", switch().says("Whether bodies are logged."))
        .may("cost_in_answers", switch())
        .may("plain_model_names", switch())
        .may("own_credentials", switch())
        .may("user_api_key_ttl", schema::whole(0..=MAX_LIFETIME).eg(86400).or_null().says("In seconds; 0 is for ever."))
        .may("user_api_key_max_ttl", schema::whole(0..=MAX_LIFETIME).eg(604_800).or_null())
        .may(
            "user_api_key_count",
            schema::whole(-1..=i64::from(i32::MAX)).eg(10).or_null().says("-1 is without limit."),
        )
        .may("user_key_metadata", schema::map(schema::any_text().eg("search")).or_null())
        .may("user_key_metadata_override", switch());
    let number = |example: i64| schema::whole(-1..=i64::MAX).eg(example);
    let shown = schema::object("WorkspaceSettings")
        .need("debug_log", schema::bit())
        .need("cost_in_answers", schema::bit())
        .need("plain_model_names", schema::bit())
        .need("own_credentials", schema::bit())
        .need("user_api_key_ttl", number(86400))
        .need("user_api_key_max_ttl", number(604_800))
        .need("user_api_key_count", number(10))
        .need("user_key_metadata", schema::map(schema::any_text().eg("search")).or_null())
        .need("user_key_metadata_override", schema::bit());
    (sent.closed(), shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_its_own_value_or_its_organisations_or_the_default() {
        let (workspace, organisation) =
            (json!({ "user_api_key_ttl": 60 }), json!({ "user_api_key_ttl": 5, "user_api_key_count": 3 }));
        for (name, expected) in
            [("user_api_key_ttl", 60), ("user_api_key_count", 3), ("user_api_key_max_ttl", 0), ("debug_log", 1)]
        {
            assert_eq!(number(name, &workspace, &organisation), expected, "{name}");
        }
        assert_eq!(number("user_api_key_count", &json!({}), &json!({})), -1);
        assert_eq!(shown(&workspace, &organisation)["user_api_key_count"], 3);
    }

    #[test]
    fn what_is_sent_is_put_over_what_is_stored() {
        let stored = json!({ "user_api_key_ttl": 60, "user_api_key_count": 3 });
        let sent = json!({ "user_api_key_ttl": null, "debug_log": false, "user_key_metadata": { "a": "b" } });
        let merged = serde_json::from_value::<SentTenantSettings>(sent).unwrap().over(&stored).unwrap();
        assert_eq!(merged, json!({ "user_api_key_count": 3, "debug_log": 0, "user_key_metadata": { "a": "b" } }));
        let wrong =
            serde_json::from_value::<SentTenantSettings>(json!({ "user_api_key_count": -2 })).unwrap().over(&stored);
        assert!(wrong.unwrap_err().to_string().starts_with("settings.user_api_key_count"));
        for wrong in [json!({ "debug_log": 2 }), json!({ "user_key_metadata": { "a": 1 } }), json!({ "x": 1 })] {
            assert!(serde_json::from_value::<SentTenantSettings>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
