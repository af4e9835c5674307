//! Rules that give roles and workspaces to people by the claims of their identity provider, at each login. Workspaces
//! are stored by id, so that a rule never means another one than it did.

use crate::crud::Action;
use crate::http::{ApiError, text};
use crate::identity::access::WorkspaceRole;
use crate::identity::tenancy;
use serde::Deserialize;
use serde_json::{Value, json};

const MAX_RULES: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRule {
    claim: String,
    value: String,
    workspace_id: Option<String>,
    role: String,
}

pub async fn checked(action: &Action<'_>, sent: Vec<ClaimRule>) -> Result<Value, ApiError> {
    if sent.len() > MAX_RULES {
        return Err(ApiError::field("claim_rules", "must be at most 500 rules"));
    }
    let mut rules = Vec::new();
    for (n, rule) in sent.into_iter().enumerate() {
        let within = |error: ApiError| error.under(&format!("claim_rules[{n}]"));
        let claim = text::name("claim", rule.claim).map_err(within)?;
        let value = text::name("value", rule.value).map_err(within)?;
        let mut checked = json!({ "claim": claim, "value": value });
        match rule.workspace_id {
            Some(name) => {
                let workspace = tenancy::find_workspace(&action.tx, action.organisation_id(), &name).await?;
                let missing = || ApiError::no_such(format!("claim_rules[{n}].workspace_id"), "workspace");
                checked["workspace_id"] = json!(workspace.ok_or_else(missing)?);
                let role = WorkspaceRole::parse(&rule.role);
                let wrong = || within(ApiError::field("role", "must be one of `admin`, `manager`, `member`"));
                checked["role"] = role.ok_or_else(wrong)?.as_str().into();
            }
            None if ["admin", "member"].contains(&rule.role.as_str()) => checked["role"] = rule.role.into(),
            None => return Err(within(ApiError::field("role", "must be one of `admin`, `member`"))),
        }
        rules.push(checked);
    }
    Ok(rules.into())
}
