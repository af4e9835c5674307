//! What people call the objects whose ids figures are grouped by.

use crate::http::ApiError;
use crate::log_data::dimension::{self, Dimension};
use std::collections::HashMap;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub struct ObjectName {
    pub name: String,
    pub slug: String,
}

/// Whether the values of a dimension are ids of objects that have names.
pub fn has_names(dimension: &Dimension) -> bool {
    [dimension::API_KEY, dimension::WORKSPACE].contains(dimension)
}

/// By id; what is no id, and what the organisation does not have, is missing.
pub async fn names<'v>(
    db: &impl GenericClient,
    dimension: &Dimension,
    organisation: Uuid,
    values: impl Iterator<Item = &'v str>,
) -> Result<HashMap<String, ObjectName>, ApiError> {
    const KEYS: &str = "SELECT id, name, '' AS slug FROM api_keys WHERE organisation_id = $1 AND id = ANY($2)";
    const WORKSPACES: &str = "SELECT id, name, slug FROM workspaces WHERE organisation_id = $1 AND id = ANY($2)";
    let ids: Vec<Uuid> = values.filter_map(|id| id.parse().ok()).collect();
    let sql = if *dimension == dimension::API_KEY { KEYS } else { WORKSPACES };
    let rows = db.query(sql, &[&organisation, &ids]).await?;
    let read = rows.iter().map(|row| {
        let id: Uuid = row.try_get("id")?;
        Ok((id.to_string(), ObjectName { name: row.try_get("name")?, slug: row.try_get("slug")? }))
    });
    read.collect::<Result<_, tokio_postgres::Error>>().map_err(ApiError::from)
}
