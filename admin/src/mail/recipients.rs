//! Who is told about what happens to an API key: the person it belongs to; for a service's key those who run its
//! workspace and its organisation; and whoever the key names.

use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn of_key(db: &impl GenericClient, key: Uuid) -> Result<Vec<String>, tokio_postgres::Error> {
    const FIND: &str = "SELECT DISTINCT ON (lower(email)) email FROM (
            SELECT u.email FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = $1 AND u.status = 'active'
            UNION ALL SELECT unnest(k.alert_emails) FROM api_keys k WHERE k.id = $1
            UNION ALL SELECT u.email FROM api_keys k
                JOIN users u ON u.organisation_id = k.organisation_id AND u.status = 'active'
                WHERE k.id = $1 AND k.user_id IS NULL AND (u.role IN ('owner', 'admin') OR EXISTS (
                    SELECT FROM workspace_members m WHERE m.workspace_id = k.workspace_id AND m.user_id = u.id
                                                      AND m.role IN ('admin', 'manager')))
        ) AS found ORDER BY lower(email)";
    db.query(FIND, &[&key]).await?.iter().map(|row| row.try_get("email")).collect()
}
