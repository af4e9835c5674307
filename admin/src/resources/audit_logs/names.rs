//! What the people, keys and workspaces of a page of the trail are called now: one statement for all of them.

use super::AuditLog;
use std::collections::HashMap;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Writes names beside ids. Who or what is gone for good has none.
pub async fn add(
    db: &impl GenericClient,
    organisation: Uuid,
    records: &mut [AuditLog],
) -> Result<(), tokio_postgres::Error> {
    const NAMES: &str = "SELECT id, email AS name FROM users WHERE organisation_id = $1 AND id = ANY($2)
        UNION ALL SELECT id, name FROM api_keys WHERE organisation_id = $1 AND id = ANY($3)
        UNION ALL SELECT id, name FROM workspaces WHERE organisation_id = $1 AND id = ANY($4)";
    let ids = |id: fn(&AuditLog) -> Option<Uuid>| -> Vec<Uuid> { records.iter().filter_map(id).collect() };
    let users = ids(|one| one.user_id.filter(|_| one.user_type == "user"));
    let (keys, workspaces) = (ids(|one| one.api_key_id), ids(|one| one.workspace_id));
    if users.is_empty() && keys.is_empty() && workspaces.is_empty() {
        return Ok(());
    }
    let mut names: HashMap<Uuid, String> = HashMap::new();
    for row in db.query(NAMES, &[&organisation, &users, &keys, &workspaces]).await? {
        names.insert(row.try_get("id")?, row.try_get("name")?);
    }
    let name = |id: Option<Uuid>| id.and_then(|id| names.get(&id).cloned());
    for record in records {
        record.user_email = name(record.user_id.filter(|_| record.user_type == "user"));
        record.api_key_name = name(record.api_key_id);
        record.workspace_name = name(record.workspace_id);
    }
    Ok(())
}
