//! New integrations and changes to them. Credentials are opened only when a change touches them, are laid over what is
//! stored field by field, and judged as a whole before they are sealed again.

use super::destination::{self, Destination, SentSecrets};
use super::secrets::Fields;
use super::{DefaultProvider, Integration, Mapping, credentials, fields, mappings, pricing, require, slug_of};
use crate::app::App;
use crate::crud::{Action, tags};
use crate::http::{ApiError, Field, FieldFault, text};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::Columns;
use shared::model;
use uuid::Uuid;

#[derive(Deserialize)]
pub struct NewIntegration {
    name: String,
    ai_provider_id: String,
    slug: Option<String>,
    description: Option<String>,
    key: Option<String>,
    configurations: Option<Fields>,
    tags: Option<Map<String, Value>>,
    #[serde(default)]
    secret_mappings: Value,
    pricing_adjustments: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct IntegrationChange {
    name: Option<String>,
    slug: Option<String>,
    ai_provider_id: Option<String>,
    description: Field<String>,
    key: Field<String>,
    configurations: Option<Fields>,
    tags: Field<Map<String, Value>>,
    secret_mappings: Field<Value>,
    pricing_adjustments: Field<Map<String, Value>>,
}

/// What a change says about an account.
#[derive(Default)]
pub struct AccountChange {
    pub key: Option<Option<String>>,
    pub configurations: Option<Fields>,
    pub mappings: Option<Vec<Mapping>>,
}

impl AccountChange {
    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.configurations.is_none() && self.mappings.is_none()
    }
}

pub async fn created(action: &Action<'_>, body: NewIntegration) -> Result<Columns, ApiError> {
    let columns = Columns::default()
        .set("name", text::name("name", body.name.clone())?)
        .set("description", body.description.map(|text| text::sized("description", text, 0..=1024)).transpose()?)
        .set("tags", body.tags.map(tags::checked).transpose()?)
        .set("pricing_adjustments", body.pricing_adjustments.map(pricing::adjustments).transpose()?);
    let change = AccountChange {
        key: Some(body.key),
        configurations: body.configurations,
        mappings: Some(mappings::parse(body.secret_mappings, "configurations")?),
    };
    let id = Uuid::new_v4();
    let columns = columns.join(account(action, id, &body.ai_provider_id, change).await?);
    require(action.call, action.workspace_id, "create")?;
    let slug = slug_of(action, body.slug, &body.name).await?;
    Ok(columns.set("slug", slug).set("created_by", action.call.caller.actor_id()))
}

/// The columns of a new account with this provider: `id`, `ai_provider_id` and its credentials.
pub async fn account(
    action: &Action<'_>,
    id: Uuid,
    provider: &str,
    change: AccountChange,
) -> Result<Columns, ApiError> {
    let mut account = credentials::OpenedAccount::default();
    account.change(change.key, change.configurations, &Value::Null);
    let mapped = change.mappings.unwrap_or_default();
    judge(action, provider, &account, &mapped)?;
    let mapped = mappings::resolved(action, mapped, action.workspace_id).await?;
    mappings::may_go_to(action, &mapped, &destination::origins(&account.configurations)).await?;
    let place = model::Integration::place_of(action.organisation_id(), id);
    let columns = account.columns(action, &place, "configurations").await?;
    Ok(columns.set("id", id).set("ai_provider_id", provider.to_owned()).set("secret_mappings", json!(mapped)))
}

pub async fn changed(action: &Action<'_>, current: &Integration, body: IntegrationChange) -> Result<Columns, ApiError> {
    let is_other = |sent: &Option<String>, stored: &str| sent.as_deref().is_some_and(|sent| sent != stored);
    if is_other(&body.slug, &current.slug) && is_other(&body.slug, &current.id.to_string()) {
        return Err(ApiError::field("slug", "cannot be changed"));
    }
    if is_other(&body.ai_provider_id, &current.ai_provider_id) {
        return Err(ApiError::field("ai_provider_id", "cannot be changed"));
    }
    let sent = body.secret_mappings.try_map(|sent| mappings::parse(sent, "configurations"))?.sent();
    let change = AccountChange {
        key: body.key.sent(),
        configurations: body.configurations,
        mappings: sent.map(Option::unwrap_or_default),
    };
    let columns = Columns::default()
        .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
        .set_if("description", body.description.try_map(|text| text::sized("description", text, 0..=1024))?.sent())
        .set_if("tags", body.tags.try_map(tags::checked)?.sent())
        .set_if("pricing_adjustments", body.pricing_adjustments.try_map(pricing::adjustments)?.sent());
    Ok(columns.join(account_changed(action, current, change).await?))
}

/// The columns of an account that change; none when nothing was said about it.
pub async fn account_changed(
    action: &Action<'_>,
    current: &Integration,
    change: AccountChange,
) -> Result<Columns, ApiError> {
    if change.is_empty() {
        return Ok(Columns::default());
    }
    let AccountChange { key, configurations, mappings: sent } = change;
    let is_touched = key.is_some() || configurations.is_some();
    let place = current.place();
    let (plain, sealed) = (&current.configurations, current.sealed.as_ref());
    let mut account = credentials::OpenedAccount::open(action, &place, plain, sealed).await?;
    let before = Destination::from_configurations(&account.configurations);
    let brought = SentSecrets::from_change(key.as_ref(), configurations.as_ref(), &current.masks);
    account.change(key, configurations, &current.masks);
    let stored = mappings::stored(&current.secret_mappings);
    let mapped = sent.as_ref().unwrap_or(&stored);
    judge(action, &current.ai_provider_id, &account, mapped)?;
    brought.check(&before, &account)?;
    if before != Destination::from_configurations(&account.configurations) {
        refuse_to_lead_models(action, current.id).await?;
    }
    let mut columns = Columns::default();
    let mapped = match sent {
        Some(sent) => {
            let resolved = mappings::resolved(action, sent, current.workspace_id).await?;
            columns = columns.set("secret_mappings", json!(resolved));
            resolved
        }
        None => stored,
    };
    mappings::may_go_to(action, &mapped, &destination::origins(&account.configurations)).await?;
    if is_touched {
        columns = columns.join(account.columns(action, &place, "configurations").await?);
    }
    Ok(columns)
}

/// Headers of a model alone go where the account's key goes, unless the model has a host of its own.
async fn refuse_to_lead_models(action: &Action<'_>, integration: Uuid) -> Result<(), ApiError> {
    const SEALED: &str = "SELECT slug FROM integration_models WHERE integration_id = $1 AND organisation_id = $2
                          AND sealed IS NOT NULL AND configurations ->> 'custom_host' IS NULL LIMIT 1";
    match action.tx.query_opt(SEALED, &[&integration, &action.organisation_id()]).await? {
        None => Ok(()),
        Some(row) => {
            let model: &str = row.try_get("slug")?;
            let message = format!("would lead the headers of the model `{model}` to another host; remove them first");
            Err(ApiError::field("configurations", message))
        }
    }
}

fn judge(
    action: &Action<'_>,
    provider: &str,
    account: &credentials::OpenedAccount,
    mapped: &[Mapping],
) -> Result<(), ApiError> {
    let known = action.app.providers.get(provider).ok_or_else(|| unknown_provider(action.app, provider))?;
    let account = fields::AccountToCheck {
        provider: known,
        key: account.key.as_deref(),
        configurations: &account.configurations,
        mapped: mappings::targets(mapped),
        hosts: action.app.outbound.guard(),
    };
    account.check()
}

/// With all that there are, in alphabetical order, and the one that was probably meant.
pub fn unknown_provider(app: &App, sent: &str) -> ApiError {
    let mut known: Vec<&str> = app.providers.iter().map(|provider| &*provider.slug).collect();
    known.sort_unstable();
    let shown = (sent.chars().count() <= 100).then(|| sent.into());
    ApiError::Faults(vec![FieldFault::not_among("ai_provider_id", sent, &known).sent(shown)])
}

/// A workspace's own integration gets its provider at once, unless that is not wanted.
pub async fn default_provider(action: &Action<'_>, integration: &Integration) -> Result<(), ApiError> {
    let wishes: DefaultProvider = action.call.body()?;
    match integration.workspace_id {
        Some(workspace) if wishes.is_wanted() => wishes.make(action, integration, workspace).await,
        _ => Ok(()),
    }
}
