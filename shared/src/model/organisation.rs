//! An organisation as the data plane needs it: whose tokens it accepts.

use crate::jwt::KeySource;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Organisation {
    pub id: Uuid,
    /// Who signs its tokens; none when it accepts none.
    pub token_keys: Option<KeySource>,
}

impl Organisation {
    pub const COLUMNS: &str = "id, auth_settings ->> 'jwks_url' AS jwks_url, auth_settings -> 'jwks_json' AS jwks_json";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (url, inline): (Option<&str>, _) = (row.try_get("jwks_url")?, row.try_get("jwks_json")?);
        Ok(Self { id: row.try_get("id")?, token_keys: KeySource::of(url, inline) })
    }
}
