//! A workspace's providers: which integration stands behind `@slug`, and whether the workspace may use it and the
//! model it asks for.

use crate::catalog::other_spellings::other_spellings;
use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
use shared::model::{AccessStatus, Integration, IntegrationModel, Provider, Status, Workspace};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct WorkspaceProvider {
    pub provider: Arc<Provider>,
    pub integration: Arc<Integration>,
}

/// Other workspaces' providers do not exist here.
pub fn find(
    snapshot: &Snapshot,
    workspace: &Workspace,
    slug: &str,
    now: DateTime<Utc>,
) -> Result<WorkspaceProvider, Refusal> {
    let provider = snapshot.provider(workspace.id, slug).ok_or_else(|| Refusal::unknown_slug(slug))?;
    let integration = snapshot.integration(&provider.integration_id).ok_or_else(|| Refusal::unknown_slug(slug))?;
    if provider.status == AccessStatus::Expired || provider.is_expired(now) {
        return Err(Refusal::provider_not_available(slug, "it has expired"));
    }
    let is_granted = match integration.workspace_id {
        Some(owner) => owner == workspace.id,
        None => {
            integration.organisation_id == workspace.organisation_id
                && snapshot.integration_workspace(integration.id, workspace.id).is_some_and(|grant| grant.enabled)
        }
    };
    if integration.status != Status::Active || !is_granted {
        return Err(Refusal::provider_not_available(slug, "its integration is not enabled for this workspace"));
    }
    Ok(WorkspaceProvider { provider, integration })
}

impl WorkspaceProvider {
    /// The model as the integration knows it, if it says anything about it, once it is sure that it may be used.
    pub fn model(&self, snapshot: &Snapshot, model: &str) -> Result<Option<Arc<IntegrationModel>>, Refusal> {
        let known = snapshot.integration_model(self.integration.id, model);
        let is_off =
            |name: &String| snapshot.integration_model(self.integration.id, name).is_some_and(|model| !model.enabled);
        let is_allowed = match &known {
            Some(known) => known.enabled,
            None => {
                let others = || other_spellings(&self.integration.ai_provider_id, model);
                self.integration.allow_all_models && !others().iter().any(is_off)
            }
        };
        if is_allowed { Ok(known) } else { Err(Refusal::model_not_allowed(model, &self.provider.slug)) }
    }
}
