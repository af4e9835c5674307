//! Headers of an integration that a secret manager holds. They go to the server itself, and only if their secret reference
//! names its host.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use crate::catalog::secrets::mapping::mapped;
use crate::request::refusal::Refusal;
use serde_json::{Map, Value};
use shared::model::Credentials;

impl McpGateway {
    /// Completes the configurations of the integration, which are opened.
    pub(super) async fn add_mapped_headers(
        &self,
        asked: &McpRequest,
        configurations: &mut Map<String, Value>,
    ) -> Result<(), CallFailure> {
        let integration = &asked.target.integration;
        let mapped = mapped(&**integration, &asked.caller.workspace, &self.snapshot).map_err(CallFailure::refused)?;
        let origin = self.endpoint(asked)?;
        let refuse = |why: String| CallFailure::refused(Refusal::secret_not_allowed(&integration.slug, &why));
        if let Some(one) = mapped.iter().find(|one| !one.reference.may_go_to(origin.origin())) {
            return Err(refuse(format!(
                "the secret reference `{}` may not be sent to this server",
                one.reference.slug
            )));
        }
        self.calls.secrets.fetch(&integration.slug, &mapped).await.map_err(CallFailure::refused)?;
        let mut credentials = Credentials { key: None, configurations: std::mem::take(configurations) };
        let unusable = mapped.iter().find(|one| !one.put(&mut credentials));
        *configurations = credentials.configurations;
        match unusable {
            None => Ok(()),
            Some(one) => Err(refuse(format!("the secret reference `{}` holds no object", one.reference.slug))),
        }
    }
}
