//! The provider that a workspace gets together with access to an integration.

use super::Integration;
use crate::crud::Action;
use crate::crud::free_slug::PROVIDER_SLUGS;
use crate::http::{ApiError, text};
use serde::Deserialize;
use uuid::Uuid;

/// Also in the trigger that serves new workspaces.
const NOTE: &str = "Added when the workspace got access to the integration";

/// As sent, for one workspace or for all of them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct DefaultProvider {
    pub create_default_provider: Option<bool>,
    pub default_provider_slug: Option<String>,
}

impl DefaultProvider {
    pub fn is_wanted(&self) -> bool {
        self.create_default_provider.unwrap_or(true)
    }

    /// These wishes, and `general` where they say nothing.
    pub fn or(self, general: &Self) -> Self {
        Self {
            create_default_provider: self.create_default_provider.or(general.create_default_provider),
            default_provider_slug: self.default_provider_slug.or_else(|| general.default_provider_slug.clone()),
        }
    }

    pub fn check(&self) -> Result<(), ApiError> {
        self.default_provider_slug.clone().map_or(Ok(()), |slug| text::slug("default_provider_slug", slug).map(|_| ()))
    }

    /// Makes it, unless the workspace has a provider of this integration already. A slug that was asked for and is taken
    /// is refused; the integration's own gets another end.
    pub async fn make(&self, action: &Action<'_>, integration: &Integration, workspace: Uuid) -> Result<(), ApiError> {
        const EXISTS: &str = "SELECT EXISTS (SELECT FROM providers
                              WHERE integration_id = $1 AND workspace_id = $2 AND status <> 'archived')";
        const MAKE: &str =
            "INSERT INTO providers (organisation_id, workspace_id, integration_id, slug, name, note, created_by,
                                    creation_mode)
                            VALUES ($1, $2, $3, $4, $5, $6, $7, 'auto')";
        self.check()?;
        let tx = &action.tx;
        if tx.query_one(EXISTS, &[&integration.id, &workspace]).await?.try_get(0)? {
            return Ok(());
        }
        let wanted = self.default_provider_slug.as_ref().unwrap_or(&integration.slug);
        let slug = match PROVIDER_SLUGS.is_free(tx, workspace, wanted).await? {
            true => wanted.clone(),
            false if self.default_provider_slug.is_some() => {
                return Err(ApiError::field("default_provider_slug", "is taken in this workspace"));
            }
            false => text::generated_slug("", wanted, 240),
        };
        let (organisation, actor) = (action.organisation_id(), action.call.caller.actor_id());
        tx.execute(MAKE, &[&organisation, &workspace, &integration.id, &slug, &integration.name, &NOTE, &actor])
            .await?;
        Ok(())
    }
}
