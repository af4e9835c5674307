//! Conditions and groups as they may be sent: at least one of each, bounded, and nothing that could never match.

use crate::http::{ApiError, text};
use serde_json::{Value, json};
use shared::model::policy::{Condition, ConditionValues, GroupBy, PolicyKey};

pub const MOST_CONDITIONS: usize = 20;
pub const MOST_VALUES: usize = 100;
pub const LONGEST_VALUE: usize = 512;
pub const MOST_GROUPS: usize = 8;

/// Which limits the rule is for: the kind of endpoint is a matter of rates alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleFor {
    Rates,
    Usage,
}

pub fn conditions(sent: Vec<Condition>, whose: RuleFor) -> Result<Value, ApiError> {
    if !(1..=MOST_CONDITIONS).contains(&sent.len()) {
        return Err(ApiError::field("conditions", format!("must hold 1 to {MOST_CONDITIONS} conditions")));
    }
    for (n, condition) in sent.iter().enumerate() {
        checked(condition, whose).map_err(|error| error.under(&format!("conditions[{n}]")))?;
    }
    Ok(json!(sent))
}

pub fn group_by(sent: Vec<GroupBy>, whose: RuleFor) -> Result<Value, ApiError> {
    if !(1..=MOST_GROUPS).contains(&sent.len()) {
        return Err(ApiError::field("group_by", format!("must hold 1 to {MOST_GROUPS} keys")));
    }
    for (n, one) in sent.iter().enumerate() {
        let at = |error: ApiError| error.under(&format!("group_by[{n}]"));
        suits(&one.key, whose).map_err(at)?;
        if sent[..n].contains(one) {
            return Err(at(ApiError::field("key", "is there already")));
        }
    }
    Ok(json!(sent))
}

fn checked(condition: &Condition, whose: RuleFor) -> Result<(), ApiError> {
    suits(&condition.key, whose)?;
    values("value", &condition.value)?;
    let Some(excludes) = &condition.excludes else { return Ok(()) };
    values("excludes", excludes)?;
    if excludes.iter().any(|one| one == "*") {
        return Err(ApiError::field("excludes", "must leave something over"));
    }
    Ok(())
}

fn suits(key: &PolicyKey, whose: RuleFor) -> Result<(), ApiError> {
    match (key, whose) {
        (PolicyKey::EndpointType, RuleFor::Usage) => {
            Err(ApiError::field("key", "endpoint_type is for rate limits only"))
        }
        _ => Ok(()),
    }
}

fn values(field: &str, values: &ConditionValues) -> Result<(), ApiError> {
    if !(1..=MOST_VALUES).contains(&values.iter().count()) {
        return Err(ApiError::field(field, format!("must hold 1 to {MOST_VALUES} texts")));
    }
    for one in values.iter() {
        text::sized(field, one.to_owned(), 1..=LONGEST_VALUE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(error: ApiError) -> String {
        match error {
            ApiError::Invalid { field, .. } => field.unwrap_or_default(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_condition_that_cannot_be_meant_is_named() {
        let (many, long) = (vec!["x"; MOST_VALUES + 1], "x".repeat(LONGEST_VALUE + 1));
        for (sent, whose, expected) in [
            (json!([]), RuleFor::Rates, Some("conditions")),
            (json!([{ "key": "api_key", "value": "x" }]), RuleFor::Rates, None),
            (json!([{ "key": "api_key", "value": "" }]), RuleFor::Rates, Some("conditions[0].value")),
            (json!([{ "key": "api_key", "value": [] }]), RuleFor::Rates, Some("conditions[0].value")),
            (json!([{ "key": "api_key", "value": many }]), RuleFor::Rates, Some("conditions[0].value")),
            (json!([{ "key": "api_key", "value": long }]), RuleFor::Rates, Some("conditions[0].value")),
            (
                json!([{ "key": "model", "value": "*", "excludes": "*" }]),
                RuleFor::Rates,
                Some("conditions[0].excludes"),
            ),
            (json!([{ "key": "endpoint_type", "value": "chat" }]), RuleFor::Rates, None),
            (json!([{ "key": "endpoint_type", "value": "chat" }]), RuleFor::Usage, Some("conditions[0].key")),
        ] {
            let read: Vec<Condition> = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(conditions(read, whose).err().map(fault).as_deref(), expected, "{sent}");
        }
    }

    #[test]
    fn groups_are_different_keys() {
        for (sent, expected) in [
            (json!([]), Some("group_by")),
            (json!([{ "key": "api_key" }, { "key": "metadata.team" }]), None),
            (json!([{ "key": "api_key" }, { "key": "api_key" }]), Some("group_by[1].key")),
        ] {
            let read: Vec<GroupBy> = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(group_by(read, RuleFor::Usage).err().map(fault).as_deref(), expected, "{sent}");
        }
    }
}
