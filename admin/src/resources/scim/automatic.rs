//! Groups that name their workspace and role: `ws-Sales-role-admin` stands for the workspace Sales, which is made if
//! there is none.

use crate::crud::{self, Action};
use crate::http::{ApiError, text};
use serde_json::Value;
use uuid::Uuid;

/// How an organisation names such groups, and whether groups bring deactivated people back.
pub struct GroupSettings {
    prefix: String,
    separator: String,
    pub provisions: bool,
}

impl GroupSettings {
    pub async fn load(action: &Action<'_>) -> Result<Self, ApiError> {
        const SETTINGS: &str = "SELECT auth_settings -> 'scim' FROM organisations WHERE id = $1";
        let row = action.tx.query_one(SETTINGS, &[&action.organisation_id()]).await?;
        let scim = row.try_get::<_, Option<Value>>(0)?.unwrap_or_default();
        let or = |name: &str, default: &str| scim[name].as_str().unwrap_or(default).to_owned();
        Ok(Self {
            prefix: or("workspace_prefix", "ws-"),
            separator: or("role_separator", "-role-"),
            provisions: scim["group_based_user_provisioning"] == true,
        })
    }

    /// Workspace and role that a group's name says; none when it says nothing.
    pub fn meant<'n>(&self, name: &'n str) -> Option<(&'n str, &'static str)> {
        let (workspace, role) = name.strip_prefix(self.prefix.as_str())?.rsplit_once(self.separator.as_str())?;
        let role = ["admin", "manager", "member"].into_iter().find(|one| role.eq_ignore_ascii_case(one))?;
        let is_name = !workspace.trim().is_empty() && workspace.chars().count() <= 255;
        is_name.then_some((workspace.trim(), role))
    }
}

/// Maps a group by its name, and unmaps what a former name said.
pub async fn map(action: &Action<'_>, settings: &GroupSettings, group: Uuid, name: &str) -> Result<(), ApiError> {
    const UNMAP: &str = "UPDATE scim_workspace_mappings SET status = 'archived', last_updated_at = now()
        WHERE group_id = $1 AND organisation_id = $2 AND is_automatic AND status = 'active'
          AND (workspace_id IS DISTINCT FROM $3 OR role IS DISTINCT FROM $4)";
    const MAP: &str =
        "INSERT INTO scim_workspace_mappings (organisation_id, group_id, workspace_id, role, is_automatic)
        VALUES ($1, $2, $3, $4, true) ON CONFLICT (group_id, workspace_id) WHERE status = 'active' DO NOTHING";
    let organisation = action.organisation_id();
    let meant = settings.meant(name);
    let workspace = match meant {
        Some((workspace, _)) => Some(found_or_made(action, group, workspace).await?),
        None => None,
    };
    let role = meant.map(|(_, role)| role);
    action.tx.execute(UNMAP, &[&group, &organisation, &workspace, &role]).await?;
    if let (Some(workspace), Some(role)) = (workspace, role) {
        action.tx.execute(MAP, &[&organisation, &group, &workspace, &role]).await?;
    }
    Ok(())
}

async fn found_or_made(action: &Action<'_>, group: Uuid, name: &str) -> Result<Uuid, ApiError> {
    const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    const FIND: &str = "SELECT id FROM workspaces WHERE organisation_id = $1 AND status = 'active'
        AND (lower(name) = lower($2) OR slug = $2) ORDER BY name = $2 DESC, created_at, id LIMIT 1";
    const MAKE: &str =
        "INSERT INTO workspaces (organisation_id, slug, name, creation_source, scim_source_id, created_by)
        VALUES ($1, $2, $3, 'scim', $4, $5) RETURNING id";
    let organisation = action.organisation_id();
    // Two groups of one workspace may come at once.
    action.tx.execute(LOCK, &[&format!("scim/{organisation}/{}", name.to_lowercase())]).await?;
    if let Some(row) = action.tx.query_opt(FIND, &[&organisation, &name]).await? {
        return crud::id_of(&row);
    }
    let slug = text::generated_slug("ws", name, 6);
    let by = action.call.caller.actor_id();
    let row = action.tx.query_one(MAKE, &[&organisation, &slug, &name, &group.to_string(), &by]).await?;
    crud::id_of(&row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_workspace_and_role_or_nothing() {
        let settings = GroupSettings { prefix: "ws-".into(), separator: "-role-".into(), provisions: false };
        for (name, meant) in [
            ("ws-Sales-role-admin", Some(("Sales", "admin"))),
            ("ws-Sales-role-MEMBER", Some(("Sales", "member"))),
            ("ws-a-role-b-role-manager", Some(("a-role-b", "manager"))),
            ("ws--role-admin", None),
            ("ws-Sales-role-owner", None),
            ("Sales-role-admin", None),
            ("ws-Sales", None),
        ] {
            assert_eq!(settings.meant(name), meant, "{name}");
        }
    }
}
