//! Who gets a mail. About an API key: the person it belongs to; for a service's key the admins and managers of its
//! workspace and the admins of its organisation; and the addresses that the key names. About budgets: the same admins
//! and managers, and the addresses of the key that the budget is on.

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

/// `key` is the API key that the budget is on, if it is on one.
pub async fn of_budget(
    db: &impl GenericClient,
    organisation: Uuid,
    workspace: Option<Uuid>,
    key: Option<Uuid>,
) -> Result<Vec<String>, tokio_postgres::Error> {
    const FIND: &str = "SELECT DISTINCT ON (lower(email)) email FROM (
            SELECT u.email FROM users u
                WHERE u.organisation_id = $1 AND u.status = 'active' AND (u.role IN ('owner', 'admin') OR EXISTS (
                    SELECT FROM workspace_members m WHERE m.workspace_id = $2 AND m.user_id = u.id
                                                      AND m.role IN ('admin', 'manager')))
            UNION ALL SELECT unnest(k.alert_emails) FROM api_keys k WHERE k.id = $3 AND k.organisation_id = $1
        ) AS found ORDER BY lower(email)";
    db.query(FIND, &[&organisation, &workspace, &key]).await?.iter().map(|row| row.try_get("email")).collect()
}
