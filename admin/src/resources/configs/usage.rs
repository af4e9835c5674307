//! Who relies on a config: the workspace whose default it is, keys and user keys that start from it.

use crate::crud::Action;
use crate::http::ApiError;
use uuid::Uuid;

/// Choosing a default touches two rows, so it is done one at a time: two would become the default at once, or wait for
/// each other's row. Taken before any row, and for the organisation, because a row must be read to know its workspace.
pub async fn choose_alone(action: &Action<'_>) -> Result<(), ApiError> {
    const ALONE: &str = "SELECT pg_advisory_xact_lock(hashtextextended('default configs of ' || $1::uuid::text, 0))";
    action.tx.execute(ALONE, &[&action.organisation_id()]).await?;
    Ok(())
}

/// Makes room for another default of the workspace, by whoever chooses alone.
pub async fn demote(action: &Action<'_>, keeping: Option<Uuid>) -> Result<(), ApiError> {
    const DEMOTE: &str = "UPDATE configs SET is_default = false
                          WHERE organisation_id = $1 AND workspace_id = $2 AND is_default AND id IS DISTINCT FROM $3";
    let Some(workspace) = action.workspace_id else { return Ok(()) };
    action.tx.execute(DEMOTE, &[&action.organisation_id(), &workspace, &keeping]).await?;
    Ok(())
}

/// A config that went would leave them without the routing they were given.
pub async fn refuse_while_in_use(action: &Action<'_>, id: Uuid, slug: &str, workspace: Uuid) -> Result<(), ApiError> {
    const USERS: &str = "SELECT
        EXISTS (SELECT FROM workspaces WHERE organisation_id = $1 AND id = $2 AND status = 'active'
                AND defaults ->> 'user_api_key_config' IN ($3, $4)) AS workspace,
        (SELECT min(name) FROM api_keys WHERE organisation_id = $1 AND (workspace_id = $2 OR workspace_id IS NULL)
                AND status <> 'archived' AND defaults ->> 'config_id' IN ($3, $4)) AS key,
        (SELECT count(*) FROM api_keys WHERE organisation_id = $1 AND (workspace_id = $2 OR workspace_id IS NULL)
                AND status <> 'archived' AND defaults ->> 'config_id' IN ($3, $4)) AS keys";
    let id = id.to_string();
    let row = action.tx.query_one(USERS, &[&action.organisation_id(), &workspace, &id, &slug]).await?;
    let user = match (row.try_get("workspace")?, row.try_get::<_, Option<&str>>("key")?, row.try_get::<_, i64>("keys")?)
    {
        (true, ..) => "the workspace's user API keys".to_owned(),
        (false, Some(name), 1) => format!("the API key `{name}`"),
        (false, Some(name), count) => format!("the API key `{name}` and {} more", count - 1),
        (false, None, _) => return Ok(()),
    };
    Err(ApiError::Conflict(format!("This config is still in use by {user}")))
}
