//! What a guardrail says: its checks, as the table of checks takes them, and its actions. Both are kept as they were
//! sent, but that each check says whether it is enabled.

use super::check_table;
use crate::crud::Action;
use crate::http::{ApiError, FieldFault};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::model::guardrail::GuardrailActions;
use std::collections::BTreeSet;

pub const MAX_CHECKS: usize = 50;
/// Of checks and actions together, as JSON: every proxy holds it in memory, once for each version.
const MAX_CONTENT: usize = 128 << 10;

/// What a body says of it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct SentContent {
    pub checks: Option<Value>,
    pub actions: Option<Value>,
}

/// Refuses what cannot run. Checks are compiled for that, which takes its time: do it before a transaction begins. It is
/// done on a thread that nobody else waits for.
pub async fn check(sent: SentContent) -> Result<(), ApiError> {
    tokio::task::spawn_blocking(move || checked(&sent)).await.map_err(|_| ApiError::Internal)?
}

fn checked(sent: &SentContent) -> Result<(), ApiError> {
    let mut faults = sent.checks.as_ref().map(check_faults).transpose()?.unwrap_or_default();
    faults.extend(sent.actions.as_ref().and_then(action_fault));
    refuse(faults)
}

/// Of what passed `check`.
pub fn new(checks: Value, actions: Value) -> Result<Value, ApiError> {
    refuse(count_fault(&checks).into_iter().chain(action_fault(&actions)).collect())?;
    bounded(json!({ "checks": enabled(checks), "actions": actions }))
}

/// Of what passed `check`. Parts that were not sent stay as they are.
pub fn changed(stored: &Value, checks: Option<Value>, actions: Option<Value>) -> Result<Value, ApiError> {
    let faults = checks.as_ref().and_then(count_fault).into_iter().chain(actions.as_ref().and_then(action_fault));
    refuse(faults.collect())?;
    let mut content = stored.clone();
    if let Some(checks) = checks {
        content["checks"] = enabled(checks);
    }
    if let Some(actions) = actions {
        content["actions"] = actions;
    }
    bounded(content)
}

/// What is wrong with a list of checks, each by its path in the body. It compiles them, unless they are too many or too
/// long.
pub fn check_faults(checks: &Value) -> Result<Vec<FieldFault>, ApiError> {
    if let Some(fault) = count_fault(checks) {
        return Ok(vec![fault]);
    }
    within(checks)?;
    Ok(check_table::faults(checks))
}

fn count_fault(checks: &Value) -> Option<FieldFault> {
    match checks.as_array().map(Vec::len) {
        None => Some(FieldFault::new("checks", "must be a list of checks")),
        Some(count) if !(1..=MAX_CHECKS).contains(&count) => {
            Some(FieldFault::new("checks", format!("must have 1 to {MAX_CHECKS} items")))
        }
        Some(_) => None,
    }
}

fn action_fault(actions: &Value) -> Option<FieldFault> {
    let fault = GuardrailActions::parse(actions).err()?;
    let field = if fault.path.is_empty() { "actions".to_owned() } else { format!("actions.{}", fault.path) };
    Some(FieldFault::new(field, fault.message))
}

fn refuse(faults: Vec<FieldFault>) -> Result<(), ApiError> {
    if faults.is_empty() { Ok(()) } else { Err(ApiError::Faults(faults)) }
}

fn enabled(mut checks: Value) -> Value {
    for check in checks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if check.get("is_enabled").is_none_or(Value::is_null) {
            check.insert("is_enabled".to_owned(), true.into());
        }
    }
    checks
}

fn bounded(content: Value) -> Result<Value, ApiError> {
    within(&content).map(|()| content)
}

fn within(content: &Value) -> Result<(), ApiError> {
    match content.to_string().len() <= MAX_CONTENT {
        true => Ok(()),
        false => {
            Err(ApiError::field("checks", format!("must be at most {MAX_CONTENT} bytes of JSON with the actions")))
        }
    }
}

/// A check whose vendor has no credentials passes with an error note, so whoever saves it is told.
pub async fn warn_of_missing_credentials(action: &Action<'_>, content: &Value) -> Result<(), ApiError> {
    const KNOWN: &str = "SELECT plugin FROM plugins WHERE organisation_id = $1 AND sealed IS NOT NULL";
    let checks = content["checks"].as_array().into_iter().flatten();
    let needed: BTreeSet<&str> = checks.filter_map(|check| check_table::plugin(check["id"].as_str()?)).collect();
    if needed.is_empty() {
        return Ok(());
    }
    let rows = action.tx.query(KNOWN, &[&action.organisation_id()]).await?;
    let known = rows.iter().map(|row| row.try_get("plugin")).collect::<Result<Vec<&str>, _>>()?;
    for plugin in needed.iter().filter(|plugin| !known.contains(plugin)) {
        action.call.origin.warn(format!("checks of {plugin} have no credentials yet and pass until POST /plugins"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(checks: Value, actions: Value) -> Vec<String> {
        match checked(&SentContent { checks: Some(checks), actions: Some(actions) }) {
            Err(ApiError::Faults(faults)) => faults.into_iter().map(|fault| fault.field).collect(),
            Err(ApiError::Invalid { field, .. }) => field.into_iter().collect(),
            other => panic!("{other:?}"),
        }
    }

    fn check() -> Value {
        json!([{ "id": "default.contains", "parameters": { "operator": "none", "words": ["x"] } }])
    }

    #[test]
    fn what_is_kept_says_whether_each_check_is_enabled() {
        let content = new(check(), json!({ "deny": true })).unwrap();
        assert_eq!(content["checks"][0]["is_enabled"], true);
        let mut off = check();
        off[0]["is_enabled"] = false.into();
        let changed = changed(&content, Some(off), None).unwrap();
        assert_eq!(
            (&changed["checks"][0]["is_enabled"], &changed["actions"]),
            (&json!(false), &json!({ "deny": true }))
        );
    }

    #[test]
    fn every_fault_is_named_at_once() {
        for (checks, actions, expected) in [
            (json!({}), json!({}), vec!["checks"]),
            (json!([]), json!({}), vec!["checks"]),
            (json!(vec![check()[0].clone(); 51]), json!({}), vec!["checks"]),
            (check(), json!(7), vec!["actions"]),
            (json!([{ "id": "default.nope" }]), json!({ "deny": 1 }), vec!["checks[0].id", "actions.deny"]),
        ] {
            assert_eq!(fields(checks.clone(), actions.clone()), expected, "{checks} {actions}");
        }
        let long = json!([{ "id": "default.contains", "parameters": { "operator": "any", "words": ["x".repeat(MAX_CONTENT)] } }]);
        assert_eq!(fields(long, json!({})), ["checks"]);
    }

    /// A pattern that cannot be compiled is not even looked at in what is too long.
    #[test]
    fn size_and_number_are_looked_at_before_anything_is_compiled() {
        let broken = json!({ "id": "default.nope", "parameters": { "rule": "x".repeat(MAX_CONTENT) } });
        assert_eq!(fields(json!([broken]), json!({})), ["checks"]);
        assert_eq!(fields(json!(vec![json!({ "id": "default.nope" }); MAX_CHECKS + 1]), json!({})), ["checks"]);
    }

    #[test]
    fn what_is_no_list_of_checks_is_refused_without_the_check_too() {
        assert!(new(Value::Null, json!({})).is_err() && new(check(), Value::Null).is_err());
        assert!(changed(&json!({}), Some(json!([])), None).is_err());
    }
}
