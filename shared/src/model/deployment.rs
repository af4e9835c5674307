//! A gateway deployment as its proxies need it.

use super::Workspace;
use super::id::{OrganisationId, WorkspaceId};
use super::status::Status;
use crate::identity::api_key::KeyHash;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub slug: String,
    /// Of the token by which a proxy proves that it belongs here.
    pub token_hash: KeyHash,
    pub allow_all_workspaces: bool,
    pub workspace_ids: Vec<WorkspaceId>,
    pub status: Status,
}

impl Deployment {
    pub const COLUMNS: &str = "id, organisation_id, slug, token_hash, allow_all_workspaces, workspace_ids, status";

    pub fn from_row(row: &Row) -> anyhow::Result<Self> {
        let hash: &[u8] = row.try_get("token_hash")?;
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            slug: row.try_get("slug")?,
            token_hash: KeyHash(hash.try_into()?),
            allow_all_workspaces: row.try_get("allow_all_workspaces")?,
            workspace_ids: row.try_get("workspace_ids")?,
            status: row.try_get("status")?,
        })
    }

    /// Whether its proxies serve this workspace. Another organisation's they never do.
    pub fn serves(&self, workspace: &Workspace) -> bool {
        let is_allowed = self.allow_all_workspaces || self.workspace_ids.contains(&workspace.id);
        self.status == Status::Active && self.organisation_id == workspace.organisation_id && is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_serves_its_organisations_workspaces_or_those_it_names() {
        let id = Uuid::from_u128;
        let workspace = Workspace {
            id: id(1).into(),
            organisation_id: id(9).into(),
            slug: "w".into(),
            status: Status::Active,
            metadata: None,
            is_metrics_only: false,
            hides_costs: false,
            finds_plain_models: false,
            allows_own_credentials: false,
            limits: None,
            priority: 10,
            guardrails: Default::default(),
        };
        let deployment = |organisation: u128, all: bool, some: &[u128], status: Status| Deployment {
            id: id(7),
            organisation_id: id(organisation).into(),
            slug: "d".into(),
            token_hash: KeyHash([0; 32]),
            allow_all_workspaces: all,
            workspace_ids: some.iter().map(|one| id(*one).into()).collect(),
            status,
        };
        for (deployment, serves) in [
            (deployment(9, true, &[], Status::Active), true),
            (deployment(9, true, &[], Status::Archived), false),
            (deployment(8, true, &[], Status::Active), false),
            (deployment(9, false, &[1, 2], Status::Active), true),
            (deployment(9, false, &[2], Status::Active), false),
            (deployment(9, false, &[], Status::Active), false),
            (deployment(8, false, &[1], Status::Active), false),
        ] {
            assert_eq!(deployment.serves(&workspace), serves, "{deployment:?}");
        }
    }
}
