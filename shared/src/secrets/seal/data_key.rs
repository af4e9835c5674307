//! An organisation's data key, wrapped by a master key: worthless to whoever has the database alone.

use super::Sealed;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataKey {
    pub id: Uuid,
    pub organisation_id: Uuid,
    pub wrapped: Sealed,
    /// Whether it seals; others only open what they sealed.
    #[serde(default)]
    pub is_active: bool,
}

impl DataKey {
    pub const COLUMNS: &str = "id, organisation_id, wrapped, status = 'active' AS is_active";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            wrapped: Sealed::from(row.try_get::<_, &[u8]>("wrapped")?),
            is_active: row.try_get("is_active")?,
        })
    }
}
