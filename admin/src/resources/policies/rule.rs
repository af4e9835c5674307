//! Conditions and groups as they may be sent: bounded, and nothing that could never match. None of either is allowed:
//! such a policy applies to every request, or counts all of them together.

use crate::http::{ApiError, text};
use serde_json::{Value, json};
use shared::model::policy::{Condition, ConditionValues, GroupBy, PolicyKey, PolicyTarget};

pub const MAX_CONDITIONS: usize = 20;
pub const MAX_VALUES: usize = 100;
pub const MAX_VALUE: usize = 512;
pub const MAX_GROUPS: usize = 8;
pub const TARGETS: [&str; 2] = [PolicyTarget::Llm.as_str(), PolicyTarget::McpTools.as_str()];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitType {
    Rate,
    Usage,
}

/// What the rule is for. The kind of endpoint is a matter of rates alone, and calls of MCP tools are asked about less.
#[derive(Debug, Clone, Copy)]
pub struct RuleFor {
    pub limit: LimitType,
    pub target: Option<PolicyTarget>,
}

impl RuleFor {
    /// Of a policy that exists: its target stays as it is.
    pub fn stored(limit: LimitType, stored: Option<&str>, sent: Option<PolicyTarget>) -> Result<Self, ApiError> {
        if sent.is_some_and(|sent| Some(sent.as_str()) != stored) {
            return Err(ApiError::field("target", "cannot be changed"));
        }
        let target = [PolicyTarget::Llm, PolicyTarget::McpTools].into_iter().find(|one| Some(one.as_str()) == stored);
        Ok(Self { limit, target })
    }

    /// Calls of tools have a price or none, and never tokens.
    pub fn check_unit(self, unit: &str) -> Result<(), ApiError> {
        match (self.target, unit) {
            (Some(PolicyTarget::McpTools), "tokens") => {
                Err(ApiError::field("type", "cannot be tokens: calls of MCP tools have none"))
            }
            _ => Ok(()),
        }
    }

    pub fn conditions(self, sent: Vec<Condition>) -> Result<Value, ApiError> {
        if sent.len() > MAX_CONDITIONS {
            return Err(ApiError::field("conditions", format!("must hold at most {MAX_CONDITIONS} conditions")));
        }
        for (n, condition) in sent.iter().enumerate() {
            self.check_condition(condition).map_err(|error| error.under(&format!("conditions[{n}]")))?;
        }
        Ok(json!(sent))
    }

    pub fn group_by(self, sent: Vec<GroupBy>) -> Result<Value, ApiError> {
        if sent.len() > MAX_GROUPS {
            return Err(ApiError::field("group_by", format!("must hold at most {MAX_GROUPS} keys")));
        }
        for (n, one) in sent.iter().enumerate() {
            let at = |error: ApiError| error.under(&format!("group_by[{n}]"));
            self.check_key(&one.key).map_err(at)?;
            if sent.iter().take(n).any(|before| before == one) {
                return Err(at(ApiError::field("key", "is there already")));
            }
        }
        Ok(json!(sent))
    }

    fn check_condition(self, condition: &Condition) -> Result<(), ApiError> {
        self.check_key(&condition.key)?;
        values("value", &condition.value)?;
        let Some(excludes) = &condition.excludes else { return Ok(()) };
        values("excludes", excludes)?;
        if excludes.iter().any(|one| one == "*") {
            return Err(ApiError::field("excludes", "must leave something over"));
        }
        Ok(())
    }

    fn check_key(self, key: &PolicyKey) -> Result<(), ApiError> {
        match (key, self.limit, self.target) {
            (PolicyKey::EndpointType, LimitType::Usage, _) => {
                Err(ApiError::field("key", "endpoint_type is for rate limits only"))
            }
            (PolicyKey::McpServer | PolicyKey::McpTool, _, Some(PolicyTarget::Llm)) => {
                Err(ApiError::field("key", "is for the target mcp_tools"))
            }
            (PolicyKey::EndpointType | PolicyKey::VirtualKey | PolicyKey::Prompt, _, Some(PolicyTarget::McpTools)) => {
                Err(ApiError::field("key", "is for the target llm"))
            }
            _ => Ok(()),
        }
    }
}

fn values(field: &str, values: &ConditionValues) -> Result<(), ApiError> {
    if !(1..=MAX_VALUES).contains(&values.iter().count()) {
        return Err(ApiError::field(field, format!("must hold 1 to {MAX_VALUES} texts")));
    }
    for one in values.iter() {
        text::sized(field, one.to_owned(), 1..=MAX_VALUE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOR_RATES: RuleFor = RuleFor { limit: LimitType::Rate, target: None };

    fn of(target: PolicyTarget) -> RuleFor {
        RuleFor { target: Some(target), ..FOR_RATES }
    }

    fn fault(error: ApiError) -> String {
        match error {
            ApiError::Invalid { field, .. } => field.unwrap_or_default(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_condition_that_cannot_be_meant_is_named() {
        let (rates, usage) = (FOR_RATES, RuleFor { limit: LimitType::Usage, ..FOR_RATES });
        let (llm, tools) = (of(PolicyTarget::Llm), of(PolicyTarget::McpTools));
        let one = json!({ "key": "api_key", "value": "x" });
        let (many, long) = (vec!["x"; MAX_VALUES + 1], "x".repeat(MAX_VALUE + 1));
        for (sent, whose, expected) in [
            (json!([]), rates, None),
            (json!(vec![one.clone(); MAX_CONDITIONS]), rates, None),
            (json!(vec![one; MAX_CONDITIONS + 1]), rates, Some("conditions")),
            (json!([{ "key": "api_key", "value": "x" }]), rates, None),
            (json!([{ "key": "api_key", "value": "" }]), rates, Some("conditions[0].value")),
            (json!([{ "key": "api_key", "value": [] }]), rates, Some("conditions[0].value")),
            (json!([{ "key": "api_key", "value": many }]), rates, Some("conditions[0].value")),
            (json!([{ "key": "api_key", "value": long }]), rates, Some("conditions[0].value")),
            (json!([{ "key": "model", "value": "*", "excludes": "*" }]), rates, Some("conditions[0].excludes")),
            (json!([{ "key": "endpoint_type", "value": "chat" }]), rates, None),
            (json!([{ "key": "endpoint_type", "value": "chat" }]), usage, Some("conditions[0].key")),
            (json!([{ "key": "mcp_tool", "value": "x" }]), rates, None),
            (json!([{ "key": "mcp_tool", "value": "x" }]), tools, None),
            (json!([{ "key": "mcp_tool", "value": "x" }]), llm, Some("conditions[0].key")),
            (json!([{ "key": "virtual_key", "value": "x" }]), tools, Some("conditions[0].key")),
        ] {
            let read: Vec<Condition> = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(whose.conditions(read).err().map(fault).as_deref(), expected, "{sent}");
        }
    }

    #[test]
    fn groups_are_different_keys() {
        for (sent, expected) in [
            (json!([]), None),
            (json!([{ "key": "api_key" }, { "key": "metadata.team" }]), None),
            (json!([{ "key": "api_key" }, { "key": "api_key" }]), Some("group_by[1].key")),
        ] {
            let read: Vec<GroupBy> = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(FOR_RATES.group_by(read).err().map(fault).as_deref(), expected, "{sent}");
        }
    }

    #[test]
    fn a_target_stays_as_it_is_and_tools_have_no_tokens() {
        let (llm, tools) = (PolicyTarget::Llm, PolicyTarget::McpTools);
        for (stored, sent, expected) in [
            (None, None, Ok(None)),
            (Some("llm"), Some(llm), Ok(Some(llm))),
            (Some("mcp_tools"), None, Ok(Some(tools))),
            (Some("mcp_tools"), Some(llm), Err("target".to_owned())),
            (None, Some(tools), Err("target".to_owned())),
        ] {
            let read = RuleFor::stored(LimitType::Rate, stored, sent);
            assert_eq!(read.map(|rule| rule.target).map_err(fault), expected, "{stored:?} {sent:?}");
        }
        assert!(of(tools).check_unit("requests").is_ok() && of(llm).check_unit("tokens").is_ok());
        assert_eq!(of(tools).check_unit("tokens").map_err(fault), Err("type".to_owned()));
    }
}
