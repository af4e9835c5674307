//! Providers: a workspace's handles on integrations, `@slug` in requests. The same rows are virtual keys under their old
//! name, see `virtual_keys`.

pub mod docs;
pub mod in_use;
mod own_settings;
mod types;
mod write;

pub use write::{ProviderLimits, archive_hidden, ends, new_limits, note};

use crate::crud::{self, Action, Resource, Routes, Verb, tags};
use crate::http::{ApiError, InUseBy, Time};
use crate::identity::Call;
use crate::limits::UsageLimits;
use crate::resources::integrations::Fields;
use chrono::Utc;
use serde::Serialize;
use serde_json::{Value, json};
use shared::amount::Amount;
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy};
use shared::model::AccessStatus;
use shared::secrets::seal::Sealed;
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .post("/providers", crud::create::<Provider>)
        .get("/providers", crud::list::<Provider>)
        .get("/providers/types", types::list)
        .get("/providers/{slug}", crud::read::<Provider>)
        .put("/providers/{slug}", crud::update::<Provider>)
        .delete("/providers/{slug}", crud::delete::<Provider>)
        .describe(docs::docs())
        .describe(types::docs())
}

/// The row, as both views show it.
#[derive(Serialize)]
pub struct Provider {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    pub note: Option<String>,
    pub status: AccessStatus,
    pub ai_provider_name: String,
    /// The integration's slug.
    pub integration_id: String,
    pub workspace_id: Uuid,
    workspace_name: String,
    organisation_id: Uuid,
    pub model_config: Option<Value>,
    pub usage_limits: Option<Value>,
    /// What was used of the budget.
    #[serde(skip)]
    used: Option<Amount>,
    #[serde(skip)]
    unconfirmed: Option<Amount>,
    pub rate_limits: Value,
    reset_usage: Option<i16>,
    pub expires_at: Option<Time>,
    pub last_reset_at: Option<Time>,
    pub tags: Option<Value>,
    concurrency: Option<Value>,
    pub created_at: Time,
    pub last_updated_at: Time,
    #[serde(skip)]
    pub integration: Uuid,
    #[serde(skip)]
    pub is_integration_hidden: bool,
    /// The mask of the integration's key.
    #[serde(skip)]
    pub masked_key: Option<String>,
    #[serde(skip)]
    pub masks: Value,
    #[serde(skip)]
    pub sealed: Option<Sealed>,
}

impl Provider {
    pub const ROWS: Table = Table {
        name: "providers",
        columns: SelectList::Sql("id, slug, name, note, status, workspace_id, organisation_id, integration_id, model_config, usage_limits,
            rate_limits, reset_usage, expires_at, last_reset_at, tags, concurrency, masks, sealed, created_at, last_updated_at,
            budget_used(organisation_id, 'provider', workspace_id || '/' || slug, usage_limits) AS used,
            budget_unconfirmed(organisation_id, 'provider', workspace_id || '/' || slug, usage_limits) AS unconfirmed,
            (SELECT i.ai_provider_id FROM integrations i WHERE i.id = providers.integration_id) AS ai_provider_name,
            (SELECT i.slug FROM integrations i WHERE i.id = providers.integration_id) AS integration_slug,
            (SELECT i.is_hidden FROM integrations i WHERE i.id = providers.integration_id) AS is_integration_hidden,
            (SELECT i.masks ->> 'key' FROM integrations i WHERE i.id = providers.integration_id) AS masked_key,
            (SELECT w.name FROM workspaces w WHERE w.id = providers.workspace_id) AS workspace_name"),
        slug: Some("slug"),
        tenancy: Tenancy::Workspace("workspace_id"),
        on_delete: OnDelete::Archive,
    };

    pub fn parse_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            slug: row.try_get("slug")?,
            name: row.try_get("name")?,
            note: row.try_get("note")?,
            status: row.try_get("status")?,
            ai_provider_name: row.try_get("ai_provider_name")?,
            integration_id: row.try_get("integration_slug")?,
            workspace_id: row.try_get("workspace_id")?,
            workspace_name: row.try_get("workspace_name")?,
            organisation_id: row.try_get("organisation_id")?,
            model_config: row.try_get("model_config")?,
            usage_limits: row.try_get("usage_limits")?,
            used: row.try_get("used")?,
            unconfirmed: row.try_get("unconfirmed")?,
            rate_limits: row.try_get("rate_limits")?,
            reset_usage: row.try_get("reset_usage")?,
            expires_at: row.try_get("expires_at")?,
            last_reset_at: row.try_get("last_reset_at")?,
            tags: row.try_get("tags")?,
            concurrency: row.try_get("concurrency")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            integration: row.try_get("integration_id")?,
            is_integration_hidden: row.try_get("is_integration_hidden")?,
            masked_key: row.try_get("masked_key")?,
            masks: row.try_get("masks")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
        })
    }

    /// The whole object. Where there are no rate limits, lists say null and single objects an empty list: no other
    /// form is read by every client.
    pub fn shown_as(&self, object: &str, call: &Call) -> Value {
        let mut shown = crud::shown(object, self);
        let limits = self.budget();
        shown["status"] = self.status_now(limits.as_ref()).as_str().into();
        shown["provider"] = shown["ai_provider_name"].clone();
        shown["usage_limits"] = limits.map_or(Value::Null, |limits| limits.shown());
        shown["model_config"] = self.shown_config();
        if call.origin.operation.is_list() && self.rate_limits.as_array().is_none_or(Vec::is_empty) {
            shown["rate_limits"] = Value::Null;
        }
        shown
    }

    /// The settings with masks in the place of secrets.
    pub fn shown_config(&self) -> Value {
        let masks = self.masks["configurations"].as_object();
        if self.model_config.is_none() && masks.is_none_or(Fields::is_empty) {
            return Value::Null;
        }
        let mut shown = self.model_config.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        shown.extend(masks.into_iter().flatten().map(|(name, mask)| (name.clone(), mask.clone())));
        Value::Object(shown)
    }

    pub fn budget(&self) -> Option<UsageLimits> {
        Some(UsageLimits::from_stored(self.usage_limits.as_ref()?, self.used)?.with_unconfirmed(self.unconfirmed))
    }

    /// What it is at this instant, whatever was written down.
    fn status_now(&self, limits: Option<&UsageLimits>) -> AccessStatus {
        write::status(self.expires_at.map(|time| time.0), limits, Utc::now())
    }
}

impl Resource for Provider {
    type Create = write::NewProvider;
    type Update = write::ProviderChange;
    const OBJECT: &'static str = "provider";
    const PATH: &'static str = "/providers";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Self::ROWS;

    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self::parse_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.workspace_id)
    }

    async fn create(action: &Action<'_>, body: write::NewProvider) -> Result<Columns, ApiError> {
        write::created(action, body).await
    }

    async fn update(action: &Action<'_>, current: &Self, body: write::ProviderChange) -> Result<Columns, ApiError> {
        write::changed(action, current, body).await
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let filter = tags::filter(call.query())?;
        Ok(match call.query().text("search") {
            Some(text) => filter.contains("name", text),
            None => filter,
        })
    }

    async fn used_by(&self, action: &Action<'_>) -> Result<Vec<InUseBy>, ApiError> {
        in_use::configs_naming(action, self.id).await
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete { archive_hidden(action, self).await } else { Ok(()) }
    }

    fn shown(&self, call: &Call) -> Value {
        self.shown_as(Self::OBJECT, call)
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "object": Self::OBJECT })
    }

    fn updated(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug })
    }
}
