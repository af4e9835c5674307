//! An organisation as the data plane needs it: whose tokens it accepts, what it keeps of its calls, and what it lets
//! requests choose.

use super::guardrail::GuardrailDefaults;
use crate::id::OrganisationId;
use crate::identity::jwt::{KeySource, TokenRules};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Organisation {
    pub id: OrganisationId,
    /// Who signs its tokens; none when it accepts none.
    pub token_keys: Option<KeySource>,
    /// Its calls are counted and priced; what they say is not kept.
    #[serde(default)]
    pub is_metrics_only: bool,
    /// What its tokens must say beside being signed.
    #[serde(default)]
    pub token_rules: TokenRules,
    /// Requests name saved configs and providers; they carry no config of their own.
    #[serde(default)]
    pub blocks_inline_config: bool,
    /// Seconds that answers are kept if a request says nothing, and at most.
    #[serde(default)]
    pub cache_max_age: Option<u64>,
    /// What checks every request and answer of its workspaces, but of those that are excluded.
    #[serde(default)]
    pub guardrails: GuardrailDefaults,
}

impl Organisation {
    pub const COLUMNS: &str = "id, auth_settings ->> 'jwks_url' AS jwks_url, auth_settings -> 'jwks_json' AS jwks_json, \
         coalesce(settings ->> 'debug_log' = '0', false) AS is_metrics_only, \
         coalesce(settings ->> 'block_inline_config' = 'true', false) AS blocks_inline_config, \
         settings -> 'cache_max_age' AS cache_max_age, \
         auth_settings ->> 'jwt_issuer' AS jwt_issuer, auth_settings -> 'jwt_audiences' AS jwt_audiences, \
         defaults -> 'input_guardrails' AS input_guardrails, defaults -> 'output_guardrails' AS output_guardrails";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (url, inline): (Option<&str>, _) = (row.try_get("jwks_url")?, row.try_get("jwks_json")?);
        let audiences: Option<Value> = row.try_get("jwt_audiences")?;
        let cache_max_age: Option<Value> = row.try_get("cache_max_age")?;
        Ok(Self {
            id: row.try_get("id")?,
            token_keys: KeySource::from_settings(url, inline),
            is_metrics_only: row.try_get("is_metrics_only")?,
            token_rules: TokenRules::from_settings(row.try_get("jwt_issuer")?, audiences.as_ref()),
            blocks_inline_config: row.try_get("blocks_inline_config")?,
            cache_max_age: cache_max_age.and_then(|age| age.as_u64()),
            guardrails: GuardrailDefaults::from_row(row)?,
        })
    }
}
