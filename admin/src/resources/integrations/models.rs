//! Which models of its provider an integration offers: the catalogue's, what was said about single ones, and own ones
//! that no catalogue knows.

use super::destination::{self, Destination, SentSecrets};
use super::fields;
use super::secrets::{self, Fields};
use super::{Integration, OpenedAccount, list, mappings, pricing};
use crate::app::App;
use crate::crud::{Action, Answer, Change, Resource as _};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::{Columns, OnDelete, SelectList, Table, Tenancy};
use shared::model::IntegrationModel;
use shared::secrets::seal::Sealed;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

const TABLE: Table = Table {
    name: "integration_models",
    columns: SelectList::Sql(
        "id, slug, enabled, is_custom, is_finetune, base_model_slug, pricing_config, configurations, sealed, masks,
              created_at, last_updated_at",
    ),
    slug: None,
    tenancy: Tenancy::Organisation,
    on_delete: OnDelete::Delete,
};
const MAX_MODELS: usize = 5000;

type Base = BTreeSet<String>;

#[derive(Deserialize)]
struct ModelsChange {
    #[serde(default)]
    models: Vec<ModelChange>,
    allow_all_models: Option<bool>,
    key: Option<String>,
    configurations: Option<Fields>,
}

/// The integration's own secrets, sent again: whoever gives a model a host of its own leads them there.
struct ResentSecrets {
    key: Option<String>,
    configurations: Option<Fields>,
}

#[derive(Deserialize)]
struct ModelChange {
    slug: String,
    enabled: bool,
    is_custom: Option<bool>,
    is_finetune: Option<bool>,
    #[serde(default)]
    base_model_slug: Field<String>,
    #[serde(default)]
    configurations: Field<Fields>,
    #[serde(default)]
    pricing_config: Field<Map<String, Value>>,
}

/// A row, as far as a change needs it.
struct StoredModel {
    id: Uuid,
    is_own: bool,
    configurations: Option<Value>,
    masks: Value,
    sealed: Option<Sealed>,
}

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let integration = list::found(&*db, &call, &name).await?;
    integration.may_read(&call)?;
    let base = base_models(&app, &integration.ai_provider_id).await;
    Ok(Json(shown(&*db, &integration, base).await?))
}

pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const ALLOW: &str = "UPDATE integrations SET allow_all_models = $2, last_updated_at = now() WHERE id = $1";
    let change: ModelsChange = call.body()?;
    if change.models.is_empty() && change.allow_all_models.is_none() {
        return Err(ApiError::field("models", "is required"));
    }
    if change.models.len() > MAX_MODELS {
        return Err(ApiError::field("models", format!("must be at most {MAX_MODELS}")));
    }
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let integration = list::held(&mut action, &name).await?;
    let before = shown(&action.tx, &integration, Base::new()).await?;
    let base = base_models(&app, &integration.ai_provider_id).await;
    let again = ResentSecrets { key: change.key, configurations: change.configurations };
    for (n, model) in change.models.into_iter().enumerate() {
        write(&action, &integration, &base, model, &again)
            .await
            .map_err(|error| error.under(&format!("models[{n}]")))?;
    }
    if let Some(allow) = change.allow_all_models {
        action.tx.execute(ALLOW, &[&integration.id, &allow]).await?;
    }
    finish(action, &integration, before).await
}

/// Own models alone can be taken away; a model of the catalogue is switched off instead.
pub async fn delete(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const OTHERS: &str = "SELECT slug FROM integration_models
                          WHERE integration_id = $1 AND slug = ANY($2) AND NOT (is_custom OR is_finetune)";
    const DELETE: &str = "DELETE FROM integration_models WHERE integration_id = $1 AND slug = ANY($2)";
    #[derive(Deserialize)]
    struct Body {
        models: Option<Vec<String>>,
    }
    let mut slugs = call.query().list("slugs");
    slugs.extend(call.body::<Body>()?.models.unwrap_or_default());
    if slugs.is_empty() {
        return Err(ApiError::field("slugs", "is required"));
    }
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let integration = list::held(&mut action, &name).await?;
    let base = base_models(&app, &integration.ai_provider_id).await;
    let others = action.tx.query(OTHERS, &[&integration.id, &slugs]).await?;
    if !others.is_empty() || slugs.iter().any(|slug| base.contains(slug)) {
        return Err(ApiError::field("slugs", "must be custom or fine-tuned models; others can be disabled"));
    }
    let before = shown(&action.tx, &integration, Base::new()).await?;
    action.tx.execute(DELETE, &[&integration.id, &slugs]).await?;
    finish(action, &integration, before).await
}

/// The audit trail keeps what was said about models, not the whole catalogue each time.
async fn finish(action: Action<'_>, integration: &Integration, before: Value) -> Answer {
    let sql = format!("SELECT {} FROM integrations WHERE id = $1", Integration::TABLE.columns);
    let integration = Integration::from_row(&action.tx.query_one(&sql, &[&integration.id]).await?)?;
    let after = shown(&action.tx, &integration, Base::new()).await?;
    let change = Change { resource_id: integration.id.to_string(), before: Some(before), after: Some(after) };
    action.commit(change).await?;
    Ok(Json(json!({})))
}

/// The models of a provider in the catalogue.
async fn base_models(app: &App, provider: &str) -> Base {
    let document = app.model_configs.prices(provider, Instant::now()).await;
    let prices = document.as_ref().and_then(|document| document.as_prices());
    let names = prices.into_iter().flat_map(|prices| prices.iter().map(|(name, _)| name.to_owned()));
    // The provider's default price is no model.
    names.filter(|name| name != "default").collect()
}

async fn write(
    action: &Action<'_>,
    integration: &Integration,
    base: &Base,
    model: ModelChange,
    again: &ResentSecrets,
) -> Result<(), ApiError> {
    let slug = text::sized("slug", model.slug, 1..=255)?;
    let stored = stored(action, integration.id, &slug).await?;
    let is_own = stored.as_ref().is_some_and(|one| one.is_own)
        || model.is_custom == Some(true)
        || model.is_finetune == Some(true);
    if !is_own && !base.contains(&slug) {
        return Err(ApiError::field("slug", "is not in the catalogue: is_custom or is_finetune must be true"));
    }
    let base_model = model.base_model_slug.try_map(|slug| text::sized("base_model_slug", slug, 1..=255))?;
    let columns = Columns::default()
        .set("enabled", model.enabled)
        .set_if("is_custom", model.is_custom)
        .set_if("is_finetune", model.is_finetune)
        .set_if("base_model_slug", base_model.sent())
        .set_if("pricing_config", model.pricing_config.try_map(pricing::model_price)?.sent());
    let id = stored.as_ref().map_or_else(Uuid::new_v4, |one| one.id);
    let columns = match model.configurations.sent() {
        None => columns,
        Some(sent) => columns.join(configured(action, integration, id, stored.as_ref(), sent, again).await?),
    };
    match stored {
        Some(_) => TABLE.update(&action.tx, id, &columns).await.map(|_| ())?,
        None => {
            let columns = columns
                .set("id", id)
                .set("slug", slug)
                .set("organisation_id", action.organisation_id())
                .set("integration_id", integration.id);
            TABLE.insert(&action.tx, &columns).await.map(|_| ())?;
        }
    }
    Ok(())
}

async fn stored(action: &Action<'_>, integration: Uuid, slug: &str) -> Result<Option<StoredModel>, ApiError> {
    let sql = format!("SELECT {} FROM integration_models WHERE integration_id = $1 AND slug = $2", TABLE.columns);
    let row = action.tx.query_opt(&sql, &[&integration, &slug]).await?;
    let stored = |row: Row| {
        Ok::<_, tokio_postgres::Error>(StoredModel {
            id: row.try_get("id")?,
            is_own: row.try_get::<_, bool>("is_custom")? || row.try_get::<_, bool>("is_finetune")?,
            configurations: row.try_get("configurations")?,
            masks: row.try_get("masks")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
        })
    };
    Ok(row.map(stored).transpose()?)
}

/// A host and headers of this model's own.
async fn configured(
    action: &Action<'_>,
    integration: &Integration,
    id: Uuid,
    stored: Option<&StoredModel>,
    sent: Option<Fields>,
    again: &ResentSecrets,
) -> Result<Columns, ApiError> {
    let Some(sent) = sent else {
        let nothing = Columns::default().set("configurations", None::<Value>).set("sealed", None::<Vec<u8>>);
        return Ok(nothing.set("masks", json!({})));
    };
    let place = IntegrationModel::place_of(action.organisation_id(), id);
    let (plain, masks) = stored
        .map_or((Value::Null, Value::Null), |one| (one.configurations.clone().unwrap_or_default(), one.masks.clone()));
    let mut account = OpenedAccount::open(action, &place, &plain, stored.and_then(|one| one.sealed.as_ref())).await?;
    let before = Destination::from_configurations(&account.configurations);
    let brought = SentSecrets::from_change(None, Some(&sent), &masks);
    account.change(None, Some(sent), &masks);
    if let Some(value) = account.configurations.get("custom_host") {
        fields::host(value, action.app.outbound.guard()).map_err(|error| error.under("configurations.custom_host"))?;
    }
    if let Some(value) = account.configurations.get("custom_headers") {
        fields::headers(value).map_err(|error| error.under("configurations.custom_headers"))?;
    }
    brought.check(&before, &account)?;
    if before != Destination::from_configurations(&account.configurations) {
        led_to(action, integration, &account.configurations, again).await?;
    }
    account.columns(action, &place, "configurations").await
}

/// Whether the integration's own secrets may go to the host that a model gets.
async fn led_to(
    action: &Action<'_>,
    integration: &Integration,
    model: &Fields,
    again: &ResentSecrets,
) -> Result<(), ApiError> {
    let origins = destination::origins(model);
    let own = integration.configurations.as_object().map(destination::origins).unwrap_or_default();
    if origins.iter().all(|origin| own.contains(origin)) {
        return Ok(());
    }
    mappings::may_go_to(action, &mappings::stored(&integration.secret_mappings), &origins).await?;
    let sealed = integration.sealed.as_ref();
    let account = OpenedAccount::open(action, &integration.place(), &integration.configurations, sealed).await?;
    let empty = Fields::new();
    let sent = again.configurations.as_ref().unwrap_or(&empty);
    match account.first_unknown(again.key.as_deref(), sent) {
        None => Ok(()),
        Some(field) => Err(ApiError::field(
            "configurations.custom_host",
            format!("would lead the integration's `{field}` to another host; send `{field}` again beside `models`"),
        )),
    }
}

async fn shown(db: &impl GenericClient, integration: &Integration, base: Base) -> Result<Value, ApiError> {
    let sql = format!("SELECT {} FROM integration_models WHERE integration_id = $1", TABLE.columns);
    let mut models: BTreeMap<String, Value> =
        base.into_iter().map(|slug| (slug.clone(), unsaid(slug, integration))).collect();
    for row in db.query(&sql, &[&integration.id]).await? {
        models.insert(row.try_get("slug")?, model_body(&row)?);
    }
    let models: Vec<Value> = models.into_values().collect();
    Ok(json!({
        "object": "list",
        "total": models.len(),
        "allow_all_models": integration.allow_all_models,
        "models": models,
    }))
}

/// A model of the catalogue that nothing was said about.
fn unsaid(slug: String, integration: &Integration) -> Value {
    json!({
        "slug": slug,
        "name": slug,
        "enabled": integration.allow_all_models,
        "is_custom": false,
        "is_finetune": false,
        "pricing_config": null,
        "configurations": null,
        "created_at": integration.created_at,
        "last_updated_at": integration.created_at,
    })
}

fn model_body(row: &Row) -> Result<Value, ApiError> {
    let slug: String = row.try_get("slug")?;
    let configurations: Option<Value> = row.try_get("configurations")?;
    let masks: Value = row.try_get("masks")?;
    let mut model = json!({
        "slug": slug,
        "name": slug,
        "enabled": row.try_get::<_, bool>("enabled")?,
        "is_custom": row.try_get::<_, bool>("is_custom")?,
        "is_finetune": row.try_get::<_, bool>("is_finetune")?,
        "pricing_config": row.try_get::<_, Option<Value>>("pricing_config")?,
        "configurations": configurations.map(|plain| secrets::shown(&plain, &masks["configurations"])),
        "created_at": row.try_get::<_, Time>("created_at")?,
        "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
    });
    // One client reads it as a text and fails on null.
    if let Some(base) = row.try_get::<_, Option<String>>("base_model_slug")? {
        model["base_model_slug"] = base.into();
    }
    Ok(model)
}
