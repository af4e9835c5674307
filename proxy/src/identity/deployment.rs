//! Which deployment this proxy is. One that says who it is serves that deployment's workspaces and no others; while its
//! deployment is not known it serves nobody, because what it may do is not known either.

use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use shared::db;
use shared::identity::api_key::KeyHash;
use shared::model::Workspace;
use shared::settings;
use std::time::Duration;

/// Between two signs of life; after ten minutes without one a deployment counts as inactive.
pub const SIGN_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct DeploymentIdentity {
    slug: String,
    token_hash: KeyHash,
}

/// Lets pass who works in a workspace of the deployment that a request says it came through.
pub fn admit(token: &[u8], workspace: &Workspace, snapshot: &Snapshot) -> Result<(), Refusal> {
    let deployment = snapshot.deployment(&KeyHash::from_key(token.trim_ascii()));
    match deployment {
        Some(deployment) if deployment.serves(workspace) => Ok(()),
        _ => Err(Refusal::workspace_mismatch()),
    }
}

impl DeploymentIdentity {
    pub fn from_settings(settings: &settings::DeploymentSettings) -> Option<Self> {
        let (slug, token) =
            settings.gateway_deployment_slug.as_ref().zip(settings.gateway_deployment_token.as_ref())?;
        Some(Self { slug: slug.clone(), token_hash: KeyHash::from_key(token.as_bytes()) })
    }

    /// Lets pass who works in a workspace of this deployment.
    pub fn admit(&self, workspace: &Workspace, snapshot: &Snapshot) -> Result<(), Refusal> {
        let deployment = snapshot.deployment(&self.token_hash).filter(|found| found.slug == self.slug);
        match deployment {
            Some(deployment) if deployment.serves(workspace) => Ok(()),
            _ => Err(Refusal::workspace_mismatch()),
        }
    }

    /// Notes in Postgres that a proxy of this deployment lives; whether there is such a deployment.
    pub async fn sign(&self, database: &settings::Database) -> anyhow::Result<bool> {
        const SIGN: &str = "INSERT INTO deployment_syncs (deployment_id, last_sync_at)
                            SELECT id, now() FROM deployments WHERE token_hash = $1 AND slug = $2 AND status = 'active'
                            ON CONFLICT (deployment_id) DO UPDATE SET last_sync_at = EXCLUDED.last_sync_at";
        let client = db::connect(database).await?;
        Ok(client.execute(SIGN, &[&self.token_hash.0.as_slice(), &self.slug]).await? > 0)
    }
}
