//! Who asks what would become of a request: a key of a workspace or a token asks about its own; an admin key sends no
//! requests, and asks about those of a workspace that it names.

use super::Explainer;
use crate::context::Visit;
use crate::identity::deployment::DeploymentIdentity;
use crate::identity::identify::{Principal, administrator};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::runtime::tenant_share::Tenant;
use crate::snapshot::Snapshot;
use pingora_http::RequestHeader;
use shared::model::{ApiKey, Status};
use std::net::IpAddr;
use std::sync::Arc;

/// Of whoever asks. None is for sending requests: one may ask what would become of a request and not send it.
const SCOPES: &[&str] = &["logs.view", "configs.read"];

/// Somebody who may ask, or why not. Admin knows more callers than the proxy does, so that a question about the past may
/// be answered all the same.
#[derive(Debug)]
pub struct ExplainCaller(pub(super) Result<AllowedCaller, Refusal>);

#[derive(Debug)]
pub(super) enum AllowedCaller {
    InWorkspace(Principal),
    ForOrganisation(Arc<ApiKey>),
}

impl Explainer {
    pub async fn asker(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &Visit,
    ) -> ExplainCaller {
        if let Some(key) = administrator(headers, &self.snapshot, visit.request.began_at) {
            return ExplainCaller(require_scopes(&key).map(|()| AllowedCaller::ForOrganisation(key)));
        }
        let caller = self.authenticator.identify(head, peer, headers, SCOPES, visit).await;
        ExplainCaller(caller.and_then(|caller| {
            require_scopes(&caller.key)?;
            Ok(AllowedCaller::InWorkspace(caller))
        }))
    }
}

fn require_scopes(key: &ApiKey) -> Result<(), Refusal> {
    let is_held = |scope: &str| key.scopes.iter().any(|held| held == scope);
    match SCOPES.iter().find(|scope| !is_held(scope)) {
        Some(scope) => Err(Refusal::insufficient_scope(scope)),
        None => Ok(()),
    }
}

impl AllowedCaller {
    /// Whose share of the memory for bodies a question takes.
    pub(super) fn tenant(&self) -> Tenant {
        match self {
            Self::InWorkspace(caller) => caller.tenant(),
            Self::ForOrganisation(key) => {
                Tenant { organisation: key.organisation_id.uuid(), workspace: key.organisation_id.uuid() }
            }
        }
    }

    /// Whose request it would be. `workspace` is an id or a slug.
    pub(super) fn principal(
        self,
        workspace: Option<&str>,
        deployment: Option<&DeploymentIdentity>,
        snapshot: &Snapshot,
    ) -> Result<Principal, Refusal> {
        match (self, workspace) {
            (Self::InWorkspace(caller), None) => Ok(caller),
            (Self::InWorkspace(caller), Some(name)) => {
                let found = snapshot.workspace_named(caller.workspace.organisation_id, name);
                match found.is_some_and(|found| found.id == caller.workspace.id) {
                    true => Ok(caller),
                    false => Err(Refusal::unknown_workspace()),
                }
            }
            (Self::ForOrganisation(_), None) => {
                let why = "`workspace_id` is missing: an admin key belongs to no workspace";
                Err(Refusal::invalid_json(why))
            }
            (Self::ForOrganisation(key), Some(name)) => {
                let found = snapshot.workspace_named(key.organisation_id, name);
                let workspace =
                    found.filter(|found| found.status == Status::Active).ok_or_else(Refusal::unknown_workspace)?;
                if let Some(deployment) = deployment {
                    deployment.admit(&workspace, snapshot)?;
                }
                Ok(Principal { key, workspace, token: None })
            }
        }
    }
}
