//! A workspace as the proxy needs it.

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: Uuid,
    pub organisation_id: Uuid,
    pub slug: String,
    /// `active` or `archived`.
    pub status: String,
}

impl Workspace {
    pub const COLUMNS: &str = "id, organisation_id, slug, status";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            slug: row.try_get("slug")?,
            status: row.try_get("status")?,
        })
    }
}
