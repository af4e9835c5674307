//! Workspaces follow groups: who is in a mapped group is a member of its workspace, with the highest role of all the
//! groups that say so. Only the people of a change are looked at. Who was added by hand is left alone.

use crate::crud::Action;
use crate::http::ApiError;
use crate::resources::api_keys::issue::{self, NewMemberKey};
use uuid::Uuid;

const WANTED: &str = "wanted AS (
    SELECT DISTINCT ON (m.workspace_id, g.user_id) m.workspace_id, g.user_id, m.role
    FROM scim_group_members g
    JOIN scim_workspace_mappings m
      ON m.group_id = g.group_id AND m.organisation_id = g.organisation_id AND m.status = 'active'
    JOIN users u ON u.id = g.user_id AND u.status = 'active'
    WHERE g.organisation_id = $1 AND g.user_id = ANY($2)
    ORDER BY m.workspace_id, g.user_id, array_position(ARRAY['admin', 'manager', 'member'], m.role))";

/// Makes the memberships of these people what their groups say. Keys of a workspace end with the membership.
pub async fn reconcile(action: &Action<'_>, people: &[Uuid]) -> Result<(), ApiError> {
    if people.is_empty() {
        return Ok(());
    }
    let organisation = action.organisation_id();
    let leave = format!(
        "WITH {WANTED}, gone AS (
            DELETE FROM workspace_members w
            WHERE w.organisation_id = $1 AND w.user_id = ANY($2) AND w.is_from_scim
              AND NOT EXISTS (SELECT FROM wanted x WHERE x.workspace_id = w.workspace_id AND x.user_id = w.user_id)
            RETURNING w.workspace_id, w.user_id)
         UPDATE api_keys k SET status = 'archived', last_updated_at = now() FROM gone
         WHERE k.workspace_id = gone.workspace_id AND k.user_id = gone.user_id AND k.status <> 'archived'"
    );
    let join = format!(
        "WITH {WANTED}
         INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role, is_from_scim)
         SELECT workspace_id, user_id, $1, role, true FROM wanted ORDER BY workspace_id, user_id
         ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role, last_updated_at = now()
         WHERE workspace_members.is_from_scim AND workspace_members.role <> excluded.role
         RETURNING workspace_id, user_id, (xmax = 0) AS is_new"
    );
    action.tx.execute(&leave, &[&organisation, &people]).await?;
    for row in action.tx.query(&join, &[&organisation, &people]).await? {
        if row.try_get("is_new")? {
            let (workspace, user) = (row.try_get("workspace_id")?, row.try_get("user_id")?);
            let by = action.call.caller.actor_id();
            let joiner = NewMemberKey { organisation, workspace, user, by, promise: None, is_shown: false };
            issue::for_joiner(&action.tx, &action.app.api_key_prefix, joiner).await?;
        }
    }
    Ok(())
}
