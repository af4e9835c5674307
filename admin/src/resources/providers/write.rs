//! New providers and changes to them: whose integration it is, limits, expiry, and settings of its own.

use super::{Provider, own_settings};
use crate::crud::free_slug::PROVIDER_SLUGS;
use crate::crud::{Action, tags};
use crate::http::{ApiError, Field, json, text, time};
use crate::identity::tenancy;
use crate::limits::{self, UsageLimits};
use crate::resources::integrations::{Fields, OpenedAccount};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::Columns;
use shared::model::{self, AccessStatus, Concurrency};
use uuid::Uuid;

#[derive(Deserialize)]
pub struct NewProvider {
    name: String,
    integration_id: String,
    slug: Option<String>,
    note: Option<String>,
    #[serde(default)]
    usage_limits: Value,
    #[serde(default)]
    rate_limits: Value,
    expires_at: Option<String>,
    tags: Option<Map<String, Value>>,
    model_config: Option<Fields>,
    concurrency: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ProviderChange {
    pub name: Option<String>,
    pub note: Field<String>,
    pub usage_limits: Field<Value>,
    pub rate_limits: Field<Value>,
    pub expires_at: Field<String>,
    pub reset_usage: Option<bool>,
    pub tags: Field<Map<String, Value>>,
    pub model_config: Field<Fields>,
    pub concurrency: Field<Value>,
}

pub async fn created(action: &Action<'_>, body: NewProvider) -> Result<Columns, ApiError> {
    let now = Utc::now();
    let columns = Columns::default()
        .set("name", text::name("name", body.name.clone())?)
        .set("note", body.note.map(note).transpose()?)
        .set("expires_at", body.expires_at.map(|text| ends(&text, now)).transpose()?)
        .set("tags", body.tags.map(tags::checked).transpose()?)
        .set("concurrency", body.concurrency.map(concurrency).transpose()?)
        .join(new_limits(action, body.usage_limits, body.rate_limits, now)?);
    let Some(workspace) = action.workspace_id else { return Err(ApiError::field("workspace_id", "is required")) };
    let integration = integration_for(action, &body.integration_id, workspace).await?;
    let slug = match body.slug {
        Some(slug) => {
            let slug = text::slug("slug", slug)?;
            if !PROVIDER_SLUGS.is_free(&action.tx, workspace, &slug).await? {
                return Err(ApiError::Conflict("There is a provider with this slug already".into()));
            }
            slug
        }
        None => text::generated_slug("", &body.name, 240),
    };
    let id = Uuid::new_v4();
    let columns = match body.model_config {
        Some(config) => columns.join(configured(action, id, None, config).await?),
        None => columns,
    };
    let columns = columns.set("id", id).set("slug", slug).set("integration_id", integration);
    Ok(columns.set("created_by", action.call.caller.actor_id()))
}

pub async fn changed(action: &Action<'_>, current: &Provider, body: ProviderChange) -> Result<Columns, ApiError> {
    let now = Utc::now();
    let expires_at = body.expires_at.try_map(|text| ends(&text, now))?.sent();
    let columns = Columns::default()
        .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
        .set_if("note", body.note.try_map(note)?.sent())
        .set_if("tags", body.tags.try_map(tags::checked)?.sent())
        .set_if("concurrency", body.concurrency.try_map(concurrency)?.sent())
        .join(
            ProviderLimits {
                usage: body.usage_limits,
                rates: body.rate_limits,
                resets: body.reset_usage,
                ends: expires_at,
            }
            .over(action, current, now)?,
        );
    let columns = match body.model_config.sent() {
        None => columns,
        Some(Some(config)) => columns.join(configured(action, current.id, Some(current), config).await?),
        Some(None) => columns.set("model_config", None::<Value>).set("sealed", None::<Vec<u8>>).set("masks", json!({})),
    };
    Ok(columns)
}

/// Settings of its own (`own_settings`), whose secrets are sealed like those of an integration. They replace the former ones.
async fn configured(
    action: &Action<'_>,
    id: Uuid,
    current: Option<&Provider>,
    config: Fields,
) -> Result<Columns, ApiError> {
    const MAX_SIZE: usize = 256 << 10;
    let config = Value::Object(config);
    if config.to_string().len() > MAX_SIZE {
        return Err(ApiError::field("model_config", format!("must have at most {MAX_SIZE} bytes")));
    }
    let Value::Object(config) = config else { return Err(ApiError::Internal) };
    let place = model::Provider::place_of(action.organisation_id(), id);
    // Masks that a client sends back stand for what is stored.
    let stored = match current {
        Some(current) => {
            let plain = current.model_config.clone().unwrap_or_default();
            OpenedAccount::open(action, &place, &plain, current.sealed.as_ref()).await?.configurations
        }
        None => Fields::new(),
    };
    let masks = current.map_or(Value::Null, |one| one.masks["configurations"].clone());
    let config = config.into_iter().map(|(name, value)| match stored.get(&name) {
        Some(old) if masks.get(&name) == Some(&value) => (name, old.clone()),
        _ => (name, value),
    });
    let configurations: Fields = config.collect();
    own_settings::check(&configurations)?;
    OpenedAccount { key: None, configurations }.columns(action, &place, "model_config").await
}

/// The integration of this slug or id, if the workspace may use it; it stays usable until the transaction ends.
async fn integration_for(action: &Action<'_>, name: &str, workspace: Uuid) -> Result<Uuid, ApiError> {
    const FIND: &str = "SELECT id, workspace_id IS NOT NULL AS is_own FROM integrations
        WHERE organisation_id = $1 AND (id = $2 OR slug = $3) AND status = 'active'
          AND (workspace_id IS NULL OR workspace_id = $4) FOR SHARE";
    const GRANTED: &str = "SELECT FROM integration_workspaces
                           WHERE integration_id = $1 AND workspace_id = $2 AND enabled FOR SHARE";
    let organisation = action.organisation_id();
    let found = match text::is_slug(name) {
        true => action.tx.query_opt(FIND, &[&organisation, &tenancy::id(name), &name, &workspace]).await?,
        false => None,
    };
    let row = found.ok_or(ApiError::NotFound("integration"))?;
    let id: Uuid = row.try_get("id")?;
    if row.try_get("is_own")? || action.tx.query_opt(GRANTED, &[&id, &workspace]).await?.is_some() {
        return Ok(id);
    }
    Err(ApiError::Forbidden(
        "The workspace has no access to this integration; PUT /v1/integrations/{slug}/workspaces gives it",
    ))
}

/// The limits of something new.
pub fn new_limits(action: &Action<'_>, usage: Value, rates: Value, now: DateTime<Utc>) -> Result<Columns, ApiError> {
    for sent in [&usage, &rates] {
        limits::allowed(&action.app.features, Some(sent))?;
    }
    let usage = limits::usage_limits(usage, None, now)?;
    let rates = limits::rate_limits(rates, &limits::USUAL_RATES)?;
    Ok(Columns::default().set("usage_limits", usage.map(|limits| limits.stored())).set("rate_limits", json!(rates)))
}

/// What a change says about how long and how much a provider may be used.
pub struct ProviderLimits {
    pub usage: Field<Value>,
    pub rates: Field<Value>,
    pub resets: Option<bool>,
    pub ends: Option<Option<DateTime<Utc>>>,
}

impl ProviderLimits {
    /// The columns that change. The status follows from the rest, so that room or time revive a provider.
    pub fn over(self, action: &Action<'_>, current: &Provider, now: DateTime<Utc>) -> Result<Columns, ApiError> {
        for sent in [&self.usage, &self.rates] {
            limits::allowed(&action.app.features, sent.as_ref().value())?;
        }
        let stored = current.budget();
        let resets = self.resets == Some(true);
        let mut budget = match self.usage.sent() {
            Some(sent) => Some(limits::usage_limits(sent.unwrap_or_default(), stored.as_ref(), now)?),
            None => None,
        };
        if resets {
            budget = Some(budget.unwrap_or_else(|| stored.clone()).map(|limits| limits.reset(now)));
        }
        let rates = self.rates.sent().map(|sent| limits::rate_limits(sent.unwrap_or_default(), &limits::USUAL_RATES));
        let columns = Columns::default()
            .set_if("usage_limits", budget.as_ref().map(|budget| budget.as_ref().map(UsageLimits::stored)))
            .set_if("rate_limits", rates.transpose()?.map(|rates| json!(rates)))
            .set_if("reset_usage", self.resets.map(i16::from))
            .set_if("last_reset_at", resets.then_some(now))
            .set_if("expires_at", self.ends);
        let ends = self.ends.unwrap_or(current.expires_at.map(|time| time.0));
        let budget = budget.unwrap_or(stored);
        let status = status(ends, budget.as_ref(), now);
        let follows = !columns.is_empty() && status != current.status;
        Ok(columns.set_if("status", follows.then(|| status.as_str())))
    }
}

/// What a provider is at this instant, given its end and its budget.
pub fn status(ends: Option<DateTime<Utc>>, limits: Option<&UsageLimits>, now: DateTime<Utc>) -> AccessStatus {
    AccessStatus::at(now, ends, limits.is_some_and(UsageLimits::is_exhausted))
}

/// An end that lies ahead.
pub fn ends(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, ApiError> {
    match time::parsed("expires_at", text)? {
        end if end > now => Ok(end),
        _ => Err(ApiError::field("expires_at", "must be in the future")),
    }
}

/// The account behind a virtual key goes with it.
pub async fn archive_hidden(action: &Action<'_>, provider: &Provider) -> Result<(), ApiError> {
    const ARCHIVE: &str = "UPDATE integrations SET status = 'archived', last_updated_at = now()
        WHERE id = $1 AND is_hidden AND NOT EXISTS
            (SELECT FROM providers p WHERE p.integration_id = integrations.id AND p.status <> 'archived')";
    action.tx.execute(ARCHIVE, &[&provider.integration]).await?;
    Ok(())
}

pub fn note(text: String) -> Result<String, ApiError> {
    text::sized("note", text, 0..=1024)
}

fn concurrency(sent: Value) -> Result<Value, ApiError> {
    let sent: Concurrency = json::parse_at("concurrency", sent)?;
    if !(1..=1_000_000).contains(&sent.max_in_flight) {
        return Err(ApiError::field("concurrency.max_in_flight", "must be from 1 to 1000000"));
    }
    if sent.max_wait_ms > 600_000 {
        return Err(ApiError::field("concurrency.max_wait_ms", "must be at most 600000"));
    }
    Ok(json!(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_expires_at_the_very_instant() {
        use AccessStatus::{Active, Expired};
        let now: DateTime<Utc> = "2026-01-15T10:30:00Z".parse().unwrap();
        let after = |ms: i64| Some(now + chrono::TimeDelta::milliseconds(ms));
        for (end, expected) in [(None, Active), (after(1), Active), (after(0), Expired), (after(-1), Expired)] {
            assert_eq!(status(end, None, now), expected, "{end:?}");
        }
        assert!(ends("2026-01-15T10:30:00Z", now).is_err() && ends("2026-01-15T10:30:00.001Z", now).is_ok());
    }

    #[test]
    fn concurrency_is_bounded_and_strict() {
        for (sent, accepted) in [
            (json!({ "max_in_flight": 1 }), true),
            (json!({ "max_in_flight": 10, "max_wait_ms": 500 }), true),
            (json!({ "max_in_flight": 0 }), false),
            (json!({ "max_wait_ms": 500 }), false),
            (json!({ "max_in_flight": 1, "max_wait_ms": -1 }), false),
            (json!({ "max_in_flight": 1, "max_wait": 1 }), false),
            (json!(5), false),
        ] {
            assert_eq!(concurrency(sent.clone()).is_ok(), accepted, "{sent}");
        }
    }
}
