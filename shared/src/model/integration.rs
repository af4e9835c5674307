//! An integration as the proxy needs it: the account of a provider, its credentials sealed.

use super::id::{IntegrationId, OrganisationId, WorkspaceId};
use super::limits::ObjectLimits;
use super::status::Status;
use crate::secrets::seal::{Sealed, SealedPlace, Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Integration {
    pub id: IntegrationId,
    pub organisation_id: OrganisationId,
    /// None for those of the organisation, which workspaces are granted by an `IntegrationWorkspace`.
    pub workspace_id: Option<WorkspaceId>,
    pub slug: String,
    pub ai_provider_id: String,
    /// Without its secret fields.
    pub configurations: Value,
    /// A `Credentials`; none when nothing is secret.
    pub sealed: Option<Sealed>,
    pub secret_mappings: Value,
    pub pricing_adjustments: Option<Value>,
    /// Whether models without an `IntegrationModel` are allowed.
    pub allow_all_models: bool,
    pub status: Status,
}

impl Integration {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, slug, ai_provider_id, configurations, sealed,
                               secret_mappings, pricing_adjustments, allow_all_models, status";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            slug: row.try_get("slug")?,
            ai_provider_id: row.try_get("ai_provider_id")?,
            configurations: row.try_get("configurations")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
            secret_mappings: row.try_get("secret_mappings")?,
            pricing_adjustments: row.try_get("pricing_adjustments")?,
            allow_all_models: row.try_get("allow_all_models")?,
            status: row.try_get("status")?,
        })
    }

    /// Where its provider runs models, which prices may depend on.
    pub fn region(&self) -> Option<&str> {
        region(&self.configurations)
    }

    /// Where `sealed` belongs.
    pub fn place(&self) -> SealedPlace {
        Self::place_of(self.organisation_id.uuid(), self.id.uuid())
    }

    pub fn place_of(organisation: Uuid, id: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: "integrations", row: id, field: "sealed" }
    }
}

/// As an integration's configurations say it, in the words of each cloud.
pub fn region(configurations: &Value) -> Option<&str> {
    ["aws_region", "vertex_region"].into_iter().find_map(|name| configurations.get(name)?.as_str())
}

/// What is sealed of an integration, a model of it or a provider: the fields of one JSON object.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub configurations: Map<String, Value>,
}

impl Credentials {
    /// `None` for what was sealed but is no such object.
    pub fn parse(secret: &Secret) -> Option<Self> {
        serde_json::from_slice(secret.expose()).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.configurations.is_empty()
    }

    /// Nothing but this setting.
    pub fn only(mut self, name: &str) -> Self {
        self.key = None;
        self.configurations.retain(|other, _| other == name);
        self
    }

    /// As it is sealed.
    pub fn to_secret(&self) -> Secret {
        // A map of JSON values always serialises.
        Secret::from(serde_json::to_vec(self).unwrap_or_default())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// A model that an integration treats otherwise than the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntegrationModel {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub integration_id: IntegrationId,
    pub slug: String,
    pub enabled: bool,
    pub is_custom: bool,
    pub is_finetune: bool,
    pub base_model_slug: Option<String>,
    pub pricing_config: Option<Value>,
    /// `custom_host`; `custom_headers` are in `sealed`.
    pub configurations: Option<Value>,
    pub sealed: Option<Sealed>,
}

impl IntegrationModel {
    pub const COLUMNS: &str = "id, organisation_id, integration_id, slug, enabled, is_custom, is_finetune,
                               base_model_slug, pricing_config, configurations, sealed";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            integration_id: row.try_get("integration_id")?,
            slug: row.try_get("slug")?,
            enabled: row.try_get("enabled")?,
            is_custom: row.try_get("is_custom")?,
            is_finetune: row.try_get("is_finetune")?,
            base_model_slug: row.try_get("base_model_slug")?,
            pricing_config: row.try_get("pricing_config")?,
            configurations: row.try_get("configurations")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
        })
    }

    /// Where `sealed` belongs.
    pub fn place(&self) -> SealedPlace {
        Self::place_of(self.organisation_id.uuid(), self.id)
    }

    pub fn place_of(organisation: Uuid, id: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: "integration_models", row: id, field: "sealed" }
    }
}

/// That a workspace may use an integration of its organisation, and how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntegrationWorkspace {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub integration_id: IntegrationId,
    pub workspace_id: WorkspaceId,
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Arc<ObjectLimits>>,
}

impl IntegrationWorkspace {
    pub const COLUMNS: &str = "id, organisation_id, integration_id, workspace_id, enabled, usage_limits, rate_limits";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            integration_id: row.try_get("integration_id")?,
            workspace_id: row.try_get("workspace_id")?,
            enabled: row.try_get("enabled")?,
            limits: ObjectLimits::from_row(row)?,
        })
    }
}
