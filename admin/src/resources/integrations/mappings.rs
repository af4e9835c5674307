//! Secret mappings: which fields of an account come from an outside secret manager, by way of a secret reference.

use crate::crud::Action;
use crate::http::{ApiError, json, text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::outbound::Origin;
use shared::secrets::allowed_hosts;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mapping {
    pub target_field: String,
    pub secret_reference_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    #[serde(default)]
    pub value_format: Format,
}

impl Mapping {
    pub fn is_json(&self) -> bool {
        self.value_format == Format::Json
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    String,
    Json,
}

/// What was sent as `secret_mappings`, with each target written whole. `object` is where targets that are not `key`
/// stand: `configurations`, `model_config`.
pub fn parse(sent: Value, object: &str) -> Result<Vec<Mapping>, ApiError> {
    if sent.is_null() {
        return Ok(Vec::new());
    }
    let mut mappings: Vec<Mapping> = json::parse_at("secret_mappings", sent)?;
    for n in 0..mappings.len() {
        let at = |field: &str| format!("secret_mappings[{n}].{field}");
        let target = whole(&mappings[n].target_field, object);
        let target = target.ok_or_else(|| {
            ApiError::field(at("target_field"), format!("must be `key` or `{object}.` and the name of a field"))
        })?;
        if mappings[..n].iter().any(|earlier| earlier.target_field == target) {
            return Err(ApiError::field(at("target_field"), "is mapped twice"));
        }
        if let Some(key) = &mappings[n].secret_key {
            text::sized(&at("secret_key"), key.clone(), 1..=255)?;
        }
        mappings[n].target_field = target;
    }
    Ok(mappings)
}

fn whole(target: &str, object: &str) -> Option<String> {
    let field = match target.strip_prefix(object).and_then(|rest| rest.strip_prefix('.')) {
        Some(field) => field,
        None if target == "key" => return Some("key".into()),
        None => target,
    };
    text::is_slug(field).then(|| format!("{object}.{field}"))
}

/// Each reference must exist, be active, and be visible where the account is; its id is what is kept.
pub async fn resolved(
    action: &Action<'_>,
    mut mappings: Vec<Mapping>,
    workspace: Option<Uuid>,
) -> Result<Vec<Mapping>, ApiError> {
    for (n, mapping) in mappings.iter_mut().enumerate() {
        let found = super::references::visible(action, &mapping.secret_reference_id, workspace).await?;
        let found = found.ok_or_else(|| {
            let message = "must be an active secret reference that may be used here";
            ApiError::field(format!("secret_mappings[{n}].secret_reference_id"), message)
        })?;
        mapping.secret_reference_id = found.to_string();
    }
    Ok(mappings)
}

/// A reference goes to the provider's own address, and to no other host than those it names.
pub async fn may_go_to(action: &Action<'_>, mappings: &[Mapping], origins: &[Origin]) -> Result<(), ApiError> {
    for (n, mapping) in mappings.iter().enumerate().filter(|_| !origins.is_empty()) {
        let allowed = super::references::allowed_hosts(action, &mapping.secret_reference_id).await?;
        if let Some(other) = origins.iter().find(|origin| !allowed_hosts::name(&allowed, origin)) {
            let message = format!("may not be sent to {}: its allowed_hosts do not name it", other.authority());
            return Err(ApiError::field(format!("secret_mappings[{n}].secret_reference_id"), message));
        }
    }
    Ok(())
}

pub fn targets(mappings: &[Mapping]) -> Vec<String> {
    mappings.iter().map(|one| one.target_field.clone()).collect()
}

/// As stored; what cannot be read maps nothing.
pub fn stored(value: &Value) -> Vec<Mapping> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn targets_are_written_whole_and_mapped_once() {
        let item = |target: &str| json!({ "target_field": target, "secret_reference_id": "r" });
        for (sent, expected) in [
            (json!([]), Ok(vec![])),
            (json!(null), Ok(vec![])),
            (json!([item("key"), item("aws_region")]), Ok(vec!["key", "configurations.aws_region"])),
            (json!([item("configurations.aws_region")]), Ok(vec!["configurations.aws_region"])),
            (json!([item("a"), item("configurations.a")]), Err("secret_mappings[1].target_field")),
            (json!([item("a.b")]), Err("secret_mappings[0].target_field")),
            (json!([item("")]), Err("secret_mappings[0].target_field")),
            (json!([{ "target_field": "key" }]), Err("secret_mappings[0].secret_reference_id")),
            (
                json!([{ "target_field": "key", "secret_reference_id": "r", "value_format": "xml" }]),
                Err("secret_mappings[0].value_format"),
            ),
            (json!("key"), Err("secret_mappings")),
        ] {
            let found = parse(sent.clone(), "configurations");
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(targets(&found), expected, "{sent}"),
                (Err(ApiError::Invalid { field, .. }), Err(expected)) => assert_eq!(field.as_deref(), Some(expected)),
                (found, expected) => panic!("{sent}: {found:?}, not {expected:?}"),
            }
        }
    }
}
