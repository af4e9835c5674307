//! An organisation as the data plane needs it: whose tokens it accepts, and what it keeps of its calls.

use crate::jwt::KeySource;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Organisation {
    pub id: Uuid,
    /// Who signs its tokens; none when it accepts none.
    pub token_keys: Option<KeySource>,
    /// Its calls are counted and priced; what they say is not kept.
    #[serde(default)]
    pub is_metrics_only: bool,
}

impl Organisation {
    pub const COLUMNS: &str = "id, auth_settings ->> 'jwks_url' AS jwks_url, auth_settings -> 'jwks_json' AS jwks_json, \
         coalesce(settings ->> 'debug_log' = '0', false) AS is_metrics_only";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (url, inline): (Option<&str>, _) = (row.try_get("jwks_url")?, row.try_get("jwks_json")?);
        let is_metrics_only = row.try_get("is_metrics_only")?;
        Ok(Self { id: row.try_get("id")?, token_keys: KeySource::of(url, inline), is_metrics_only })
    }
}
