//! What policies can ask about a request, and about one attempt of it.

use crate::identity::identify::Principal;
use crate::snapshot::SavedConfig;
use serde_json::{Map, Value};
use shared::model::Provider;
use shared::model::policy::{Facts, PolicyKey, PolicyTarget, names_model};
use shared::providers::Family;
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug, Clone, Copy)]
pub struct LimitedRequest<'r> {
    pub caller: &'r Principal,
    pub metadata: &'r Map<String, Value>,
    pub config: Option<&'r SavedConfig>,
    /// None for paths that are no family's.
    pub family: Option<Family>,
    pub target: PolicyTarget,
    /// Known once a target is chosen.
    pub attempted: Option<Attempted<'r>>,
    /// Only what the key and the workspace say of themselves counts as metadata.
    pub is_trusted_only: bool,
}

impl LimitedRequest<'_> {
    /// The workspace's word stands above the key's, as everywhere.
    fn metadata(&self, field: &str) -> Option<&Value> {
        if !self.is_trusted_only {
            return self.metadata.get(field);
        }
        let of_key = self.caller.key.defaults.as_ref().and_then(|defaults| defaults.metadata.get(field));
        self.caller.workspace.metadata.as_ref().and_then(|metadata| metadata.get(field)).or(of_key)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Attempted<'r> {
    /// The workspace's handle, when a stored credential is used.
    pub provider: Option<&'r Arc<Provider>>,
    /// Whose service it is.
    pub service: &'r str,
    pub model: Option<&'r str>,
    /// Of a call to an MCP server.
    pub mcp: Option<McpCall<'r>>,
}

#[derive(Debug, Clone, Copy)]
pub struct McpCall<'r> {
    pub server: &'r str,
    /// The tool, prompt or resource.
    pub tool: &'r str,
}

impl Facts for LimitedRequest<'_> {
    fn target(&self) -> PolicyTarget {
        self.target
    }

    fn value(&self, key: &PolicyKey) -> Option<Cow<'_, str>> {
        let id = |id: Uuid| Some(Cow::Owned(super::written(id)));
        match key {
            PolicyKey::ApiKey => id(self.caller.key.id.uuid()),
            PolicyKey::OrganisationId => id(self.caller.workspace.organisation_id.uuid()),
            PolicyKey::WorkspaceId => id(self.caller.workspace.id.uuid()),
            PolicyKey::Metadata(field) => match self.metadata(field)? {
                Value::String(text) => Some(Cow::Borrowed(text)),
                Value::Null => None,
                other => Some(Cow::Owned(other.to_string())),
            },
            PolicyKey::Config => Some(Cow::Borrowed(&self.config?.row.slug)),
            // Prompts are not run yet.
            PolicyKey::Prompt => None,
            PolicyKey::EndpointType => Some(Cow::Borrowed(self.family?.name())),
            PolicyKey::VirtualKey => Some(Cow::Borrowed(&self.attempted?.provider?.slug)),
            PolicyKey::Provider => Some(Cow::Borrowed(self.attempted?.service)),
            PolicyKey::Model => Some(Cow::Borrowed(self.attempted?.model?)),
            PolicyKey::McpServer => Some(Cow::Borrowed(self.attempted?.mcp?.server)),
            PolicyKey::McpTool => Some(Cow::Borrowed(self.attempted?.mcp?.tool)),
        }
    }

    fn is(&self, key: &PolicyKey, wanted: &str) -> bool {
        let is_id = |id: Uuid| wanted.parse() == Ok(id);
        let slug = |wanted: &str| wanted.strip_prefix('@').unwrap_or(wanted).to_owned();
        match key {
            PolicyKey::ApiKey => is_id(self.caller.key.id.uuid()),
            PolicyKey::OrganisationId => is_id(self.caller.workspace.organisation_id.uuid()),
            PolicyKey::WorkspaceId => wanted == self.caller.workspace.slug || is_id(self.caller.workspace.id.uuid()),
            PolicyKey::Config => {
                self.config.is_some_and(|config| wanted == config.row.slug || is_id(config.row.id.uuid()))
            }
            PolicyKey::VirtualKey => {
                let provider = self.attempted.and_then(|attempted| attempted.provider);
                provider.is_some_and(|provider| slug(wanted) == provider.slug || is_id(provider.id.uuid()))
            }
            PolicyKey::Provider => self.attempted.is_some_and(|attempted| {
                wanted == attempted.service || attempted.provider.is_some_and(|provider| slug(wanted) == provider.slug)
            }),
            PolicyKey::Model => self.attempted.is_some_and(|attempted| {
                let provider = attempted.provider.map(|provider| provider.slug.as_str());
                attempted.model.is_some_and(|model| names_model(wanted, provider, model))
            }),
            PolicyKey::Metadata(_)
            | PolicyKey::Prompt
            | PolicyKey::EndpointType
            | PolicyKey::McpServer
            | PolicyKey::McpTool => self.value(key).is_some_and(|value| value == wanted),
        }
    }
}
