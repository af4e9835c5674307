//! Rows that admin writes and the proxy reads, one noun per file.

pub mod api_key;
pub mod cache_purge;
pub mod config;
pub mod deployment;
pub mod guardrail;
pub mod id;
pub mod integration;
pub mod limits;
pub mod log_id;
pub mod mcp;
pub mod organisation;
pub mod person;
pub mod plugin;
pub mod policy;
pub mod prompt;
pub mod provider;
pub mod secret_reference;
pub mod status;
pub mod workspace;

pub use crate::identity::KeyKind;
pub use crate::secrets::seal::data_key::DataKey;
pub use api_key::{ApiKey, DeadKey, KeyDefaults, PreviousSecret};
pub use cache_purge::{CachePurge, PurgeTag, PurgeTarget, purge_tag};
pub use config::Config;
pub use deployment::Deployment;
pub use guardrail::{Guardrail, GuardrailVersion};
pub use integration::{Credentials, Integration, IntegrationModel, IntegrationWorkspace};
pub use limits::ObjectLimits;
pub use mcp::{
    McpCapability, McpClient, McpConnection, McpGrant, McpIntegration, McpServer, McpServerCapability, McpUserAccess,
};
pub use organisation::Organisation;
pub use person::{EmailDigest, Person};
pub use plugin::Plugin;
pub use policy::{PolicyEntity, RateLimitsPolicy, UsageLimitsPolicy};
pub use prompt::{Label, Partial, PartialVersion, Prompt, PromptLabel, PromptVersion, SplitVersion};
pub use provider::{CUSTOM_HEADERS, Concurrency, OWN_SETTINGS, Provider};
pub use secret_reference::{SecretReference, whole};
pub use status::{AccessStatus, Status};
pub use workspace::Workspace;
