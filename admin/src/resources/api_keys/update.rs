//! Changes to a key. What it is and whose it is cannot change; moving its end into the future revives it.

use super::create::emails;
use super::defaults::{self, SentKeyDefaults};
use super::expiry::{self, Lifetimes};
use super::key_settings::KeySettings;
use super::{ApiKeyRow, grant, lookup, rotation_policy};
use crate::crud::Action;
use crate::http::{ApiError, Field, FieldFault, text, time};
use crate::limits::{self, UsageLimits};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::db::table::Columns;
use shared::model::{AccessStatus, KeyKind};

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct KeyChange {
    name: Option<String>,
    description: Field<String>,
    scopes: Option<Vec<String>>,
    rate_limits: Field<Value>,
    usage_limits: Field<Value>,
    reset_usage: Option<bool>,
    defaults: Field<SentKeyDefaults>,
    alert_emails: Field<Vec<String>>,
    expires_at: Field<String>,
    rotation_policy: Field<Value>,
    /// `suspended` switches the key off, `active` on again; what else it may be follows from its end and its budget.
    status: Option<String>,
}

impl KeyChange {
    /// What people may do with a key of theirs where they do not manage keys: nothing by which it could do more.
    fn is_for_its_owner(&self) -> bool {
        let widens = self.scopes.is_some()
            || self.rate_limits.is_sent()
            || self.usage_limits.is_sent()
            || self.reset_usage.is_some()
            || self.defaults.is_sent()
            || self.alert_emails.is_sent()
            || self.expires_at.is_sent()
            || self.rotation_policy.is_sent();
        !widens && self.status.as_deref().is_none_or(|status| status == SUSPENDED)
    }
}

/// A key that is switched off: it opens nothing, and comes back as what it is.
pub const SUSPENDED: &str = "suspended";

pub async fn written(action: &Action<'_>, current: &ApiKeyRow, body: KeyChange) -> Result<Columns, ApiError> {
    for sent in [&body.usage_limits, &body.rate_limits] {
        limits::allowed(&action.app.features, sent.as_ref().value())?;
    }
    let now = Utc::now();
    let caller = &action.call.caller;
    if !lookup::may_manage(caller, current, "update") && !body.is_for_its_owner() {
        return Err(ApiError::Forbidden("Of their own key, people here change name and description, and suspend it"));
    }
    let scopes = body.scopes.map(|asked| grant::granted(Some(asked), current.kind, caller, &current.scopes));
    let rates = body.rate_limits.sent().map(|sent| limits::rate_limits(sent.unwrap_or_default(), &limits::KEY_RATES));
    let policy = body.rotation_policy.try_map(|sent| rotation_policy::checked(sent, now))?;
    let mut columns = Columns::default()
        .set_if("name", body.name.map(|name| text::sized("name", name, 1..=100)).transpose()?)
        .set_if("description", body.description.try_map(|text| text::sized("description", text, 0..=200))?.sent())
        .set_if("scopes", scopes.transpose()?)
        .set_if("rate_limits", rates.transpose()?.map(|rates| json!(rates)))
        .set_if(
            "alert_emails",
            body.alert_emails.try_map(emails)?.sent().map(|sent| sent.filter(|one| !one.is_empty())),
        )
        .set_if("rotation_policy", policy.sent());
    if let Some(sent) = body.defaults.sent() {
        if let Some(sent) = &sent {
            defaults::hold_config(action, current.workspace_id, sent).await?;
        }
        let defaults = sent.map_or_else(|| Ok(json!({})), |sent| sent.over(&current.defaults))?;
        defaults::conform(action, &defaults).await?;
        columns = columns.set("defaults", defaults);
    }
    if let Some(asked) = &body.status {
        columns = columns.set_if("suspended_at", suspension(action, current, asked, now)?);
    }
    let mut ends = current.expires_at.map(|time| time.0);
    if let Some(asked) = body.expires_at.sent() {
        let asked = asked.map(|text| time::parsed("expires_at", &text)).transpose()?;
        let expiry = expiry::changed(asked, lifetimes(action, current).await?, now)?;
        ends = expiry.at;
        columns = columns.set("expires_at", expiry.at).set("expiry_enforced", expiry.is_enforced);
    }
    let mut limits = budget(current, body.usage_limits, body.reset_usage.unwrap_or(false), now)?;
    if ends != current.expires_at.map(|time| time.0)
        && let Some(cleared) =
            limits.clone().unwrap_or_else(|| current.budget()).and_then(UsageLimits::after_moved_expiry)
    {
        limits = Some(Some(cleared));
    }
    if let Some(resets) = body.reset_usage {
        columns = columns.set("reset_usage", i16::from(resets));
        columns = columns.set_if("last_reset_at", resets.then_some(now));
    }
    if let Some(limits) = &limits {
        columns = columns.set("usage_limits", limits.as_ref().map(UsageLimits::stored));
    }
    let limits = limits.unwrap_or_else(|| current.budget());
    let status = AccessStatus::at(now, ends, limits.as_ref().is_some_and(UsageLimits::is_exhausted));
    // Nothing is updated by a status alone: it follows from the rest.
    let follows = !columns.is_empty() && status != current.status;
    Ok(columns.set_if("status", follows.then(|| status.as_str())))
}

/// What becomes of the time since when a key is off; nothing when it is as asked already.
fn suspension(
    action: &Action<'_>,
    current: &ApiKeyRow,
    asked: &str,
    now: DateTime<Utc>,
) -> Result<Option<Option<DateTime<Utc>>>, ApiError> {
    match (asked, current.suspended_at) {
        (SUSPENDED, _) if action.call.caller.key.id.uuid() == current.id => {
            Err(ApiError::field("status", "is not for a key to set for itself: it could not be undone with it"))
        }
        (SUSPENDED, since) => Ok(Some(since.map_or(Some(now), |since| Some(since.0)))),
        ("active", _) => Ok(Some(None)),
        _ => Err(ApiError::Faults(vec![FieldFault::not_among("status", asked, &["active", SUSPENDED])])),
    }
}

/// Only people's keys have bounds.
async fn lifetimes(action: &Action<'_>, key: &ApiKeyRow) -> Result<Lifetimes, ApiError> {
    match (key.kind, key.workspace_id) {
        (KeyKind::WorkspaceUser, Some(workspace)) => {
            Ok(KeySettings::seen(&action.tx, action.organisation_id(), workspace).await?.lifetimes)
        }
        (kind, _) => Ok(KeySettings::of_service(&action.tx, action.organisation_id(), kind).await?.lifetimes),
    }
}

/// The budget that replaces the present one, if anything was said about it.
fn budget(
    current: &ApiKeyRow,
    sent: Field<Value>,
    resets: bool,
    now: DateTime<Utc>,
) -> Result<Option<Option<UsageLimits>>, ApiError> {
    let stored = current.budget();
    let limits = match sent.sent() {
        Some(sent) => Some(limits::usage_limits(sent.unwrap_or_default(), stored.as_ref(), now)?),
        None if resets => Some(stored),
        None => None,
    };
    Ok(if resets { limits.map(|limits| limits.map(|limits| limits.reset(now))) } else { limits })
}
