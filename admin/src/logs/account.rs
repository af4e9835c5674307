//! Whose account a reported call was made with. `@slug`, as the provider or before the model's name, is a provider of the
//! workspace; its integration says which service that is, and may have prices of its own.

use super::custom::CustomLog;
use crate::http::ApiError;
use crate::http::backpressure::db_queue::DbQueue;
use serde_json::Value;
use shared::cost::OwnPrices;
use shared::model::integration::region;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug)]
pub struct LogAccount {
    pub slug: String,
    /// The provider, as price lists know it.
    pub service: String,
    /// None when they cannot be read: then the price is not known.
    pub own: Option<OwnPrices>,
    /// What a custom model is made from.
    pub base_model: Option<String>,
    pub region: Option<String>,
}

/// The accounts of some logs of one workspace; each is looked for once.
pub struct LogAccounts {
    organisation: Uuid,
    workspace: Uuid,
    found: HashMap<(String, Option<String>), Arc<LogAccount>>,
}

impl LogAccounts {
    pub fn new(organisation: Uuid, workspace: Uuid) -> Self {
        Self { organisation, workspace, found: HashMap::new() }
    }

    /// None where the log names no provider of the workspace.
    pub async fn find(
        &mut self,
        db: &DbQueue,
        log: &CustomLog,
        model: Option<&str>,
    ) -> Result<Option<Arc<LogAccount>>, ApiError> {
        let Some(slug) = slug(log) else { return Ok(None) };
        let key = (slug.to_owned(), model.map(str::to_owned));
        if let Some(known) = self.found.get(&key) {
            return Ok(Some(known.clone()));
        }
        let account = Arc::new(self.load(db, slug, model).await?);
        self.found.insert(key, account.clone());
        Ok(Some(account))
    }

    async fn load(&self, db: &DbQueue, slug: &str, model: Option<&str>) -> Result<LogAccount, ApiError> {
        const READ: &str = "SELECT p.slug, i.ai_provider_id, i.configurations, i.pricing_adjustments,
                m.pricing_config, m.base_model_slug
            FROM providers p JOIN integrations i ON i.id = p.integration_id AND i.organisation_id = p.organisation_id
            LEFT JOIN integration_models m ON m.integration_id = i.id AND m.organisation_id = i.organisation_id AND m.slug = $4
            WHERE p.organisation_id = $1 AND p.workspace_id = $2 AND p.slug = $3 AND p.status <> 'archived'";
        let row = db.get().await?.query_opt(READ, &[&self.organisation, &self.workspace, &slug, &model]).await?;
        let row = row.ok_or_else(|| {
            ApiError::field("request.provider", format!("names `@{slug}`, which is no provider of this workspace"))
        })?;
        let (adjustments, price): (Option<Value>, Option<Value>) =
            (row.try_get("pricing_adjustments")?, row.try_get("pricing_config")?);
        Ok(LogAccount {
            slug: row.try_get("slug")?,
            service: row.try_get("ai_provider_id")?,
            own: OwnPrices::parse(adjustments.as_ref(), price.as_ref()).ok(),
            base_model: row.try_get("base_model_slug")?,
            region: region(&row.try_get::<_, Value>("configurations")?).map(str::to_owned),
        })
    }
}

fn slug(log: &CustomLog) -> Option<&str> {
    let named = log.provider.as_deref().and_then(|provider| provider.strip_prefix('@'));
    named.or_else(|| Some(log.request_body["model"].as_str()?.strip_prefix('@')?.split_once('/')?.0))
}

/// The model's own name, without the provider in front of it.
pub fn own_name(model: &str) -> &str {
    model.strip_prefix('@').and_then(|model| model.split_once('/')).map_or(model, |(_, model)| model)
}
