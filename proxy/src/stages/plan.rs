//! Which plan a request follows: the config it names or carries, else its key's, else its workspace's, else none.

use super::identify::Principal;
use crate::headers::GatewayHeaders;
use crate::inline::InlineConfigs;
use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use std::sync::Arc;

pub fn plan(
    headers: &GatewayHeaders<'_>,
    caller: &Principal,
    snapshot: &Snapshot,
    inline: &InlineConfigs,
) -> Result<Arc<Plan>, Refusal> {
    let workspace = &caller.workspace;
    if let Some(sent) = headers.config {
        let text = sent.to_str().map_err(|_| Refusal::invalid_config("it is not text".into()))?.trim();
        return match text.starts_with('{') {
            true => inline.plan(workspace.id, text),
            false => saved(snapshot, caller, text),
        };
    }
    if let Some(name) = caller.key.defaults.as_ref().and_then(|defaults| defaults.config.as_deref()) {
        match saved(snapshot, caller, name) {
            // An issuer of tokens cannot know which configs there are.
            Err(_) if caller.token.is_some() => {}
            found => return found,
        }
    }
    if let Some(config) = snapshot.default_config(workspace.id) {
        return Ok(config.plan.clone());
    }
    match headers.retry_count {
        None => Ok(Plan::of_nothing().clone()),
        Some(sent) => {
            let count: Option<u8> = sent.to_str().ok().and_then(|text| text.trim().parse().ok());
            let count =
                count.ok_or_else(|| Refusal::invalid_header("x-gateway-retry-count", "a number from 0 to 5"))?;
            inline.plan(workspace.id, &format!(r#"{{"retry":{{"attempts":{count}}}}}"#))
        }
    }
}

/// Another workspace's config does not exist here.
fn saved(snapshot: &Snapshot, caller: &Principal, name: &str) -> Result<Arc<Plan>, Refusal> {
    let workspace = &caller.workspace;
    let found = snapshot.config(workspace.organisation_id, name);
    match found.filter(|config| config.row.workspace_id == workspace.id && config.row.is_active()) {
        Some(config) => Ok(config.plan.clone()),
        None => Err(Refusal::invalid_config(format!("there is no config `{name}` in this workspace"))),
    }
}
