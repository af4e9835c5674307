//! What a guardrail says: its checks, as the table of checks takes them, and its actions. Both are kept as they were
//! sent, but that each check says whether it is enabled.

use super::check_table;
use crate::crud::Action;
use crate::http::{ApiError, FieldFault};
use serde_json::{Value, json};
use shared::model::guardrail::GuardrailActions;
use std::collections::BTreeSet;

pub const MOST_CHECKS: usize = 50;
/// Of checks and actions together, as JSON: every proxy holds it in memory, once for each version.
const LONGEST: usize = 128 << 10;

pub fn new(checks: Value, actions: Value) -> Result<Value, ApiError> {
    let faults: Vec<FieldFault> = check_faults(&checks).into_iter().chain(action_fault(&actions)).collect();
    refuse(faults)?;
    bounded(json!({ "checks": enabled(checks), "actions": actions }))
}

/// Parts that were not sent stay as they are.
pub fn changed(stored: &Value, checks: Option<Value>, actions: Option<Value>) -> Result<Value, ApiError> {
    let mut faults = checks.as_ref().map(check_faults).unwrap_or_default();
    faults.extend(actions.as_ref().and_then(action_fault));
    refuse(faults)?;
    let mut content = stored.clone();
    if let Some(checks) = checks {
        content["checks"] = enabled(checks);
    }
    if let Some(actions) = actions {
        content["actions"] = actions;
    }
    bounded(content)
}

/// What is wrong with a list of checks, each by its path in the body.
pub fn check_faults(checks: &Value) -> Vec<FieldFault> {
    match checks.as_array().map(Vec::len) {
        None => vec![FieldFault::new("checks", "must be a list of checks")],
        Some(count) if !(1..=MOST_CHECKS).contains(&count) => {
            vec![FieldFault::new("checks", format!("must have 1 to {MOST_CHECKS} items"))]
        }
        Some(_) => check_table::faults(checks),
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
    match content.to_string().len() <= LONGEST {
        true => Ok(content),
        false => Err(ApiError::field("checks", format!("must be at most {LONGEST} bytes of JSON with the actions"))),
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

    fn fields(found: Result<Value, ApiError>) -> Vec<String> {
        match found {
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
            assert_eq!(fields(new(checks.clone(), actions.clone())), expected, "{checks} {actions}");
        }
        let long =
            json!([{ "id": "default.contains", "parameters": { "operator": "any", "words": ["x".repeat(LONGEST)] } }]);
        assert_eq!(fields(new(long, json!({}))).len(), 1);
    }
}
