//! Virtual keys, the old name of providers. One that is made here brings its own credentials: a hidden integration of
//! its workspace holds them, and comes and goes with it.

mod docs;
mod old_names;

use crate::crud::{self, Action, Resource, Routes, Verb};
use crate::http::{ApiError, Field, InUseBy, text};
use crate::identity::Call;
use crate::resources::integrations::{self, AccountChange, Fields};
use crate::resources::providers::{self, Provider};
use chrono::Utc;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, Filter, RowError, Table};
use tokio_postgres::Row;
use uuid::Uuid;

pub use old_names::setting_prefixes;

pub fn routes() -> Routes {
    Routes::default()
        .post("/virtual-keys", crud::create::<VirtualKey>)
        .get("/virtual-keys", crud::list::<VirtualKey>)
        .get("/virtual-keys/{slug}", crud::read::<VirtualKey>)
        .put("/virtual-keys/{slug}", crud::update::<VirtualKey>)
        .delete("/virtual-keys/{slug}", crud::delete::<VirtualKey>)
        .describe(docs::docs())
}

#[derive(Serialize)]
#[serde(transparent)]
pub struct VirtualKey(Provider);

#[derive(Deserialize)]
pub struct NewVirtualKey {
    name: String,
    provider: String,
    key: Option<String>,
    note: Option<String>,
    #[serde(default)]
    usage_limits: Value,
    #[serde(default)]
    rate_limits: Value,
    expires_at: Option<String>,
    #[serde(default)]
    secret_mappings: Value,
    /// Everything else; settings of the provider in camel case are among it.
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct VirtualKeyChange {
    name: Option<String>,
    key: Field<String>,
    note: Field<String>,
    usage_limits: Field<Value>,
    rate_limits: Field<Value>,
    expires_at: Field<String>,
    reset_usage: Option<bool>,
    secret_mappings: Field<Value>,
    #[serde(flatten)]
    rest: Fields,
}

impl Resource for VirtualKey {
    type Create = NewVirtualKey;
    type Update = VirtualKeyChange;
    const OBJECT: &'static str = "virtual-key";
    const PATH: &'static str = "/virtual-keys";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Provider::ROWS;

    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self(Provider::parse_row(row)?))
    }

    fn id(&self) -> Uuid {
        self.0.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.0.workspace_id)
    }

    async fn create(action: &Action<'_>, body: NewVirtualKey) -> Result<Columns, ApiError> {
        created(action, body).await
    }

    async fn update(action: &Action<'_>, current: &Self, body: VirtualKeyChange) -> Result<Columns, ApiError> {
        changed(action, &current.0, body).await
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        Provider::filter(call)
    }

    async fn used_by(&self, action: &Action<'_>) -> Result<Vec<InUseBy>, ApiError> {
        self.0.used_by(action).await
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete { providers::archive_hidden(action, &self.0).await } else { Ok(()) }
    }

    fn shown(&self, call: &Call) -> Value {
        let mut shown = self.0.shown_as(Self::OBJECT, call);
        if !call.origin.operation.is_list() {
            shown["key"] = "".into();
            shown["masked_api_key"] = json!(self.0.masked_key);
        }
        shown
    }

    /// The documented envelope, and the flat fields that clients read.
    fn created(&self, _: &Call) -> Value {
        let (id, slug) = (self.0.id, &self.0.slug);
        json!({ "success": true, "data": { "slug": slug }, "id": id, "slug": slug, "object": Self::OBJECT })
    }

    fn updated(&self, _: &Call) -> Value {
        json!({ "id": self.0.id, "slug": self.0.slug, "object": Self::OBJECT })
    }
}

async fn created(action: &Action<'_>, body: NewVirtualKey) -> Result<Columns, ApiError> {
    let now = Utc::now();
    let name = text::name("name", body.name)?;
    let columns = Columns::default()
        .set("name", name.clone())
        .set("note", body.note.map(providers::note).transpose()?)
        .set("expires_at", body.expires_at.map(|text| providers::ends(&text, now)).transpose()?)
        .join(providers::new_limits(action, body.usage_limits, body.rate_limits, now)?);
    let Some(workspace) = action.workspace_id else { return Err(ApiError::field("workspace_id", "is required")) };
    let provider = old_names::provider(&body.provider);
    let given = old_names::extras(body.rest);
    let mut configurations = old_names::configurations(provider, &given);
    old_names::fill(provider, &mut configurations);
    let slug = text::generated_slug("", &name, 240);
    let change = AccountChange {
        key: Some(body.key),
        configurations: Some(configurations),
        mappings: Some(old_names::mappings(body.secret_mappings)?),
    };
    let integration = integrations::add_hidden(action, workspace, &name, provider, change).await;
    let integration = integration.map_err(old_names::error_in_old_names)?;
    Ok(columns
        .set("slug", slug)
        .set("integration_id", integration)
        .join(unchanged(given))
        .set("created_by", action.call.caller.actor_id()))
}

/// The settings as they were given, without their secrets, which the integration has.
fn unchanged(given: Fields) -> Columns {
    let (plain, masks) = integrations::without_secrets(given);
    let plain = (!plain.is_empty()).then_some(Value::Object(plain));
    Columns::default().set("model_config", plain).set("masks", json!({ "configurations": masks }))
}

async fn changed(action: &Action<'_>, current: &Provider, body: VirtualKeyChange) -> Result<Columns, ApiError> {
    let now = Utc::now();
    let ends = body.expires_at.try_map(|text| providers::ends(&text, now))?.sent();
    let limits =
        providers::ProviderLimits { usage: body.usage_limits, rates: body.rate_limits, resets: body.reset_usage, ends };
    let columns = Columns::default()
        .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
        .set_if("note", body.note.try_map(providers::note)?.sent())
        .join(limits.over(action, current, now)?);
    let provider = current.ai_provider_name.as_str();
    let given = old_names::extras(body.rest);
    let mappings = body.secret_mappings.try_map(old_names::mappings)?.sent();
    let change = AccountChange {
        key: body.key.sent(),
        configurations: (!given.is_empty()).then(|| old_names::configurations(provider, &given)),
        mappings: mappings.map(Option::unwrap_or_default),
    };
    if change.is_empty() {
        return Ok(columns);
    }
    if !current.is_integration_hidden {
        return Err(ApiError::field("key", "belongs to the integration of this provider; change it there"));
    }
    integrations::change_hidden(action, current.integration, change).await.map_err(old_names::error_in_old_names)?;
    if given.is_empty() {
        // The row itself must change too, for those who follow it and for its time of change.
        return Ok(columns.set("masks", current.masks.clone()));
    }
    let mut config = current.model_config.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let secrets = current.masks["configurations"].clone();
    config.extend(given);
    let (plain, masks) = integrations::without_secrets(config);
    let mut all = secrets.as_object().cloned().unwrap_or_default();
    all.extend(masks);
    Ok(columns.set("model_config", Value::Object(plain)).set("masks", json!({ "configurations": all })))
}
