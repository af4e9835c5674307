//! A workspace as the proxy needs it.

use super::guardrail::{GuardrailDefaults, WorkspaceGuardrails};
use super::id::{OrganisationId, WorkspaceId};
use super::limits::ObjectLimits;
use super::status::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_postgres::Row;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub organisation_id: OrganisationId,
    pub slug: String,
    pub status: Status,
    /// What its requests say about themselves, whatever they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Its calls are counted and priced; what they say is not kept.
    #[serde(default)]
    pub is_metrics_only: bool,
    /// Its answers do not tell what they cost.
    #[serde(default)]
    pub hides_costs: bool,
    /// Models that name no provider are looked up among its own.
    #[serde(default)]
    pub finds_plain_models: bool,
    /// A person's own sign-in at a provider may take the place of a stored credential.
    #[serde(default)]
    pub allows_own_credentials: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Arc<ObjectLimits>>,
    /// From 1 to 100: its part where workspaces wait for one another.
    #[serde(default = "usual_priority")]
    pub priority: u8,
    /// What checks its requests and answers, whatever config they name.
    #[serde(default)]
    pub guardrails: WorkspaceGuardrails,
}

fn usual_priority() -> u8 {
    10
}

impl Workspace {
    pub const COLUMNS: &str = "id, organisation_id, slug, status, defaults -> 'metadata' AS metadata, \
        coalesce(settings ->> 'debug_log' = '0', false) AS is_metrics_only, \
        coalesce(settings ->> 'cost_in_answers' = '0', false) AS hides_costs, \
        coalesce(settings ->> 'plain_model_names' = '1', false) AS finds_plain_models, \
        coalesce(settings ->> 'own_credentials' = '1', false) AS allows_own_credentials, rate_limits, usage_limits, priority, \
        defaults -> 'input_guardrails' AS input_guardrails, defaults -> 'output_guardrails' AS output_guardrails, \
        excluded_from_input_guardrails, excluded_from_output_guardrails";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            slug: row.try_get("slug")?,
            status: row.try_get("status")?,
            metadata: row.try_get::<_, Option<Value>>("metadata")?.and_then(|value| value.as_object().cloned()),
            is_metrics_only: row.try_get("is_metrics_only")?,
            hides_costs: row.try_get("hides_costs")?,
            finds_plain_models: row.try_get("finds_plain_models")?,
            allows_own_credentials: row.try_get("allows_own_credentials")?,
            limits: ObjectLimits::of_workspace(row)?,
            priority: u8::try_from(row.try_get::<_, i16>("priority")?).unwrap_or_else(|_| usual_priority()),
            guardrails: WorkspaceGuardrails {
                own: GuardrailDefaults::from_row(row)?,
                excluded_from_input: row.try_get("excluded_from_input_guardrails")?,
                excluded_from_output: row.try_get("excluded_from_output_guardrails")?,
            },
        })
    }
}
