//! A provider as the proxy needs it: a workspace's handle on an integration, `@slug` in requests.

use super::id::{IntegrationId, OrganisationId, ProviderId, WorkspaceId};
use super::limits::ObjectLimits;
use super::status::AccessStatus;
use crate::secrets::seal::{Sealed, SealedPlace};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::Json;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    pub id: ProviderId,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub integration_id: IntegrationId,
    pub slug: String,
    pub status: AccessStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Arc<ObjectLimits>>,
    pub expires_at: Option<DateTime<Utc>>,
    /// Settings that are laid over those of the integration; without its secret fields, which are in `sealed`.
    pub model_config: Option<Value>,
    /// A `Credentials` with `configurations` alone.
    pub sealed: Option<Sealed>,
    pub concurrency: Option<Concurrency>,
    #[serde(default)]
    pub created_at: DateTime<Utc>,
}

/// How many calls may be under way at once, and how long others wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    pub max_in_flight: u32,
    #[serde(default)]
    pub max_wait_ms: u32,
}

/// What a workspace's provider may say otherwise than its integration. Nothing here leads a credential elsewhere, chooses
/// another one, or reaches a model, bucket or project that the integration does not give.
pub static OWN_SETTINGS: &[&str] = &[
    "amzn_sagemaker_custom_attributes",
    "amzn_sagemaker_enable_explanations",
    "amzn_sagemaker_inference_id",
    "amzn_sagemaker_session_id",
    "anthropic_beta",
    "anthropic_version",
    "api_version",
    "azure_api_version",
    "azure_extra_params",
    CUSTOM_HEADERS,
    "mistral_fim_completion",
    "openai_beta",
    "openai_organization",
    "openai_project",
    "oracle_api_version",
    "provider_responses_proxy",
    "stability_client_id",
    "stability_client_user_id",
    "stability_client_version",
];

/// The one of them that is sealed.
pub const CUSTOM_HEADERS: &str = "custom_headers";

impl Provider {
    /// A text or a flag that the provider says itself. Rows of virtual keys hold copies of whole accounts, of which nothing
    /// else counts.
    pub fn own_setting(&self, name: &str) -> Option<&str> {
        match self.model_config.as_ref().filter(|_| OWN_SETTINGS.contains(&name))?.get(name)? {
            Value::String(text) => Some(text),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            _ => None,
        }
    }

    pub const COLUMNS: &str =
        "id, organisation_id, workspace_id, integration_id, slug, status, rate_limits, usage_limits,
                               expires_at, model_config, sealed, concurrency, created_at";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            integration_id: row.try_get("integration_id")?,
            slug: row.try_get("slug")?,
            status: row.try_get("status")?,
            limits: ObjectLimits::from_row(row)?,
            expires_at: row.try_get("expires_at")?,
            model_config: row.try_get("model_config")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
            concurrency: row.try_get::<_, Option<Json<Concurrency>>>("concurrency")?.map(|json| json.0),
            created_at: row.try_get("created_at")?,
        })
    }

    /// Whether it may be used at this moment, whatever was marked so far.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Where `sealed` belongs.
    pub fn place(&self) -> SealedPlace {
        Self::place_of(self.organisation_id.uuid(), self.id.uuid())
    }

    pub fn place_of(organisation: Uuid, id: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: "providers", row: id, field: "sealed" }
    }
}
