//! An object as the API shows it, in the words in which it is written: without what the server adds, counts and masks.

use crate::kinds::Kind;
use serde_json::{Map, Value};

/// What the server counts in budgets, or computes from other fields.
const COUNTED: &[&str] = &[
    "current_usage",
    "unconfirmed",
    "status",
    "is_threshold_alerts_sent",
    "is_exhausted_alerts_sent",
    "is_expired_alerts_sent",
    "next_usage_reset_at",
    "last_reset_at",
];
pub const MASK: &str = "masked_";

/// The fields that can be written. Masks of secrets are left out.
pub fn editable(kind: &Kind, live: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = with_masks(kind, live);
    for value in fields.values_mut() {
        without_masks(value);
    }
    fields.retain(|_, value| !is_empty(value));
    fields
}

/// The same with masks, by which one can see that a secret is there.
pub fn with_masks(kind: &Kind, live: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    for field in kind.fields {
        let Some(shown) = live.get(kind.shown_name(field)) else { continue };
        let value = match (*field, shown) {
            // A config is shown as the text in which it was saved.
            ("config", Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| shown.clone()),
            // A key is never shown; what stands under its name is a mask.
            ("key", _) => continue,
            _ => shown.clone(),
        };
        let value = normal(field, &value);
        if !is_empty(&value) {
            fields.insert((*field).to_owned(), value);
        }
    }
    fields
}

/// One way to write what means the same.
pub fn normal(field: &str, value: &Value) -> Value {
    let mut value = value.clone();
    match field {
        "usage_limits" => {
            // Workspaces show a list of at most one.
            if let Value::Array(items) = &mut value {
                value = items.pop().unwrap_or(Value::Null);
            }
            drop_defaults(&mut value, &[("type", "cost".into()), ("strict", false.into())]);
            if let Value::Object(fields) = &mut value {
                fields.retain(|name, _| !COUNTED.contains(&name.as_str()));
            }
        }
        "checks" => {
            for check in value.as_array_mut().into_iter().flatten() {
                drop_defaults(check, &[("is_enabled", true.into())]);
            }
        }
        "defaults" => {
            drop_defaults(&mut value, &[("allow_config_override", true.into()), ("cost_in_answers", true.into())])
        }
        "settings" | "rate_limits" | "conditions" | "group_by" | "target" | "rotation_policy" => {
            drop_defaults(&mut value, &[])
        }
        // 0 and 1 and booleans mean the same, and so does saying nothing.
        "isDefault" | "is_default" | "is_raw_template" | "strict" | "dry_run" | "include_none" | "trusted_metadata"
            if value == 0 || value == false =>
        {
            value = Value::Null;
        }
        "isDefault" | "is_default" | "is_raw_template" if value == true => value = Value::from(1),
        _ => {}
    }
    if is_empty(&value) { Value::Null } else { whole_numbers(value) }
}

/// `5.0` and `5` are one number.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, whole_numbers(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn drop_defaults(value: &mut Value, defaults: &[(&str, Value)]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| drop_defaults(item, defaults)),
        Value::Object(fields) => fields.retain(|name, value| {
            !value.is_null() && !defaults.iter().any(|(field, default)| field == name && default == value)
        }),
        _ => {}
    }
}

fn without_masks(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|name, _| !name.starts_with(MASK));
    }
}

/// Nothing, and lists and objects of nothing, are one.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
