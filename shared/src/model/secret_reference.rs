//! A reference to a secret in an outside manager, as the proxy needs it: with its credentials still sealed.

use super::id::{OrganisationId, WorkspaceId};
use crate::outbound::Origin;
use crate::secrets::seal::{Sealed, SealedPlace, Secret};
use crate::secrets::{BadAccess, ManagerKind, Reference, allowed_hosts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SecretReference {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub slug: String,
    pub manager_type: String,
    /// What is no secret; masks of what is.
    pub auth_config: Value,
    pub sealed_auth_config: Sealed,
    pub secret_path: String,
    pub secret_key: Option<String>,
    pub allow_all_workspaces: bool,
    pub allowed_workspaces: Vec<WorkspaceId>,
    /// Where its value may be sent beside the provider's own address.
    #[serde(default)]
    pub allowed_hosts: Vec<String>,
}

impl SecretReference {
    pub const COLUMNS: &'static str = "id, organisation_id, slug, manager_type, auth_config, sealed_auth_config,
        secret_path, secret_key, allow_all_workspaces, allowed_workspaces, allowed_hosts";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            slug: row.try_get("slug")?,
            manager_type: row.try_get("manager_type")?,
            auth_config: row.try_get("auth_config")?,
            sealed_auth_config: row.try_get::<_, Vec<u8>>("sealed_auth_config")?.into(),
            secret_path: row.try_get("secret_path")?,
            secret_key: row.try_get("secret_key")?,
            allow_all_workspaces: row.try_get("allow_all_workspaces")?,
            allowed_workspaces: row.try_get("allowed_workspaces")?,
            allowed_hosts: row.try_get("allowed_hosts")?,
        })
    }

    /// Where the credentials are sealed to.
    pub fn place(organisation: Uuid, id: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: "secret_references", row: id, field: "sealed_auth_config" }
    }

    pub fn serves(&self, workspace: WorkspaceId) -> bool {
        self.allow_all_workspaces || self.allowed_workspaces.contains(&workspace)
    }

    /// Whether its value may be sent to this address, which is not the provider's own.
    pub fn may_go_to(&self, origin: &Origin) -> bool {
        allowed_hosts::name(&self.allowed_hosts, origin)
    }

    /// The reference with its credentials, ready to be fetched. `opened` is what `Sealer` made of
    /// `sealed_auth_config`.
    pub fn reference(&self, opened: &Secret) -> Result<Reference, BadAccess> {
        let wrong = |field: &str| BadAccess { field: field.to_owned(), message: "cannot be read".to_owned() };
        let kind = ManagerKind::parse(&self.manager_type).ok_or_else(|| wrong("manager_type"))?;
        let secrets = serde_json::from_slice(opened.expose()).map_err(|_| wrong("auth_config"))?;
        let config = whole(&self.auth_config, secrets);
        Reference::new(self.id, kind, &config, self.secret_path.clone(), self.secret_key.clone())
    }
}

/// The `auth_config` as it was sent: what may be shown without its masks, and the secrets.
pub fn whole(shown: &Value, secrets: Map<String, Value>) -> Map<String, Value> {
    let plain = shown.as_object().into_iter().flatten().filter(|(name, _)| !name.starts_with("masked_"));
    plain.map(|(name, value)| (name.clone(), value.clone())).chain(secrets).collect()
}
