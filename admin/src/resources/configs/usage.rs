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
        (SELECT min(name) FROM api_keys WHERE organisation_id = $1 AND workspace_id = $2 AND kind = ANY($5)
                AND status <> 'archived' AND defaults ->> 'config_id' IN ($3, $4)) AS key,
        (SELECT count(*) FROM api_keys WHERE organisation_id = $1 AND (workspace_id = $2 OR workspace_id IS NULL)
                AND status <> 'archived' AND defaults ->> 'config_id' IN ($3, $4)) AS keys";
    let id = id.to_string();
    let kinds = named_kinds(&action.call.caller.scopes);
    let row = action.tx.query_one(USERS, &[&action.organisation_id(), &workspace, &id, &slug, &kinds]).await?;
    let user = user(row.try_get("workspace")?, row.try_get("key")?, row.try_get("keys")?);
    user.map_or(Ok(()), |user| Err(ApiError::Conflict(format!("This config is still in use by {user}"))))
}

/// The kinds of keys whose names somebody with these scopes may see.
fn named_kinds(scopes: &[String]) -> Vec<&'static str> {
    let kinds =
        [("workspace_service_api_keys.list", "workspace-service"), ("workspace_user_api_keys.list", "workspace-user")];
    kinds.into_iter().filter(|(scope, _)| scopes.iter().any(|held| held == scope)).map(|(_, kind)| kind).collect()
}

/// Who uses it, if anybody does: keys by one name, where it may be seen, or by their number alone.
fn user(is_workspace: bool, key: Option<&str>, keys: i64) -> Option<String> {
    match (is_workspace, key, keys) {
        (true, ..) => Some("the workspace's user API keys".to_owned()),
        (false, _, 0) => None,
        (false, Some(name), 1) => Some(format!("the API key `{name}`")),
        (false, Some(name), count) => Some(format!("the API key `{name}` and {} more", count - 1)),
        (false, None, 1) => Some("an API key".to_owned()),
        (false, None, count) => Some(format!("{count} API keys")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_only_to_those_who_may_list_them() {
        for (is_workspace, key, keys, expected) in [
            (true, Some("k"), 1, Some("the workspace's user API keys")),
            (false, None, 0, None),
            (false, Some("k"), 1, Some("the API key `k`")),
            (false, Some("k"), 3, Some("the API key `k` and 2 more")),
            (false, None, 1, Some("an API key")),
            (false, None, 3, Some("3 API keys")),
        ] {
            assert_eq!(user(is_workspace, key, keys).as_deref(), expected);
        }
        let scopes = |scope: &str| vec![scope.to_owned(), "configs.delete".to_owned()];
        assert_eq!(named_kinds(&scopes("workspace_user_api_keys.list")), ["workspace-user"]);
        assert!(named_kinds(&scopes("workspace_user_api_keys.read")).is_empty());
    }
}
