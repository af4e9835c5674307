//! Which workspaces may use an integration of the organisation, and how much. One request may set any number of them;
//! either all of it happens or nothing does.

use super::{DefaultProvider, Integration, list};
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, Field, Time};
use crate::identity::{Call, tenancy};
use crate::limits::{self, UsageLimits};
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::amount::Amount;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

#[derive(Deserialize)]
struct AccessChange {
    workspaces: Option<Vec<WorkspaceAccessChange>>,
    global_workspace_access: Option<Global>,
    #[serde(default, alias = "override_existing_workspaces_access")]
    override_existing_workspace_access: bool,
    #[serde(flatten)]
    provider: DefaultProvider,
}

#[derive(Clone, Deserialize)]
#[serde(expecting = "struct WorkspaceChange")]
struct WorkspaceAccessChange {
    /// Its place in the request, for what is wrong with it.
    #[serde(skip)]
    at: Option<String>,
    id: String,
    enabled: bool,
    #[serde(default)]
    usage_limits: Field<Value>,
    #[serde(default)]
    rate_limits: Field<Value>,
    #[serde(default)]
    reset_usage: bool,
    #[serde(flatten)]
    provider: DefaultProvider,
}

#[derive(Deserialize)]
struct Global {
    enabled: bool,
    #[serde(default)]
    usage_limits: Value,
    #[serde(default)]
    rate_limits: Value,
}

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let integration = list::found(&*db, &call, &name).await?;
    Ok(Json(shown(&*db, &integration).await?))
}

pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let change: AccessChange = call.body()?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let integration = list::held(&mut action, &name).await?;
    if integration.workspace_id.is_some() {
        return Err(ApiError::invalid("This integration belongs to one workspace and cannot be given to others"));
    }
    let before = shown(&action.tx, &integration).await?;
    let integration = apply(&action, integration, change, Utc::now()).await?;
    let after = shown(&action.tx, &integration).await?;
    let change = Change { resource_id: integration.id.to_string(), before: Some(before), after: Some(after) };
    action.commit(change).await?;
    Ok(Json(json!({})))
}

async fn apply(
    action: &Action<'_>,
    mut integration: Integration,
    change: AccessChange,
    now: DateTime<Utc>,
) -> Result<Integration, ApiError> {
    const GLOBAL: &str = "UPDATE integrations SET global_workspace_access = $2, last_updated_at = now() WHERE id = $1";
    change.provider.check()?;
    let global = change.global_workspace_access.map(|sent| checked_global(action, sent, &change.provider, now));
    let global = global.transpose()?;
    let is_for_all = global.as_ref().is_some_and(|global| global["enabled"] == true);
    let overrides = change.override_existing_workspace_access;
    let sent = match change.workspaces {
        Some(sent) if sent.is_empty() && !overrides => {
            return Err(ApiError::field("workspaces", "may be empty only with override_existing_workspace_access"));
        }
        None if overrides && !is_for_all => return Err(ApiError::field("workspaces", "is required")),
        None if global.is_none() => return Err(ApiError::invalid("Nothing to update")),
        sent => sent.unwrap_or_default(),
    };
    if let Some(global) = global {
        action.tx.execute(GLOBAL, &[&integration.id, &global]).await?;
        integration.global_workspace_access = global;
    }
    let targets = match sent.is_empty() && overrides && is_for_all {
        true => every_workspace(action, &integration.global_workspace_access).await?,
        false => resolved(action, sent).await?,
    };
    if overrides {
        disable_others(action, integration.id, &targets).await?;
    }
    for (workspace, sent) in targets {
        let at = sent.at.clone();
        let outcome = grant(action, &integration, workspace, sent, &change.provider, overrides, now).await;
        outcome.map_err(|error| match &at {
            Some(at) => error.under(at),
            None => error,
        })?;
    }
    Ok(integration)
}

async fn grant(
    action: &Action<'_>,
    integration: &Integration,
    workspace: Uuid,
    sent: WorkspaceAccessChange,
    general: &DefaultProvider,
    overrides: bool,
    now: DateTime<Utc>,
) -> Result<(), ApiError> {
    let is_asked_for = sent.enabled && sent.provider.create_default_provider == Some(true);
    let wishes = sent.provider.clone().or(general);
    let enables = set(action, integration.id, workspace, sent, overrides, now).await?;
    if (enables && wishes.is_wanted()) || is_asked_for {
        wishes.make(action, integration, workspace).await?;
    }
    Ok(())
}

/// The workspaces by id, each once. In the order of ids, so that two such requests cannot wait for each other.
async fn resolved(
    action: &Action<'_>,
    sent: Vec<WorkspaceAccessChange>,
) -> Result<Vec<(Uuid, WorkspaceAccessChange)>, ApiError> {
    let mut targets: Vec<(Uuid, WorkspaceAccessChange)> = Vec::new();
    for (n, mut one) in sent.into_iter().enumerate() {
        let field = format!("workspaces[{n}].id");
        one.at = Some(format!("workspaces[{n}]"));
        let found = tenancy::find_workspace(&action.tx, action.organisation_id(), &one.id).await?;
        let id = found.ok_or_else(|| ApiError::field(&field, "must be a workspace of the organisation"))?;
        if targets.iter().any(|(other, _)| *other == id) {
            return Err(ApiError::field(field, "is listed twice"));
        }
        one.provider.check().map_err(|error| error.under(&format!("workspaces[{n}]")))?;
        targets.push((id, one));
    }
    targets.sort_unstable_by_key(|(id, _)| *id);
    Ok(targets)
}

/// All that exist, each with the limits for all.
async fn every_workspace(action: &Action<'_>, global: &Value) -> Result<Vec<(Uuid, WorkspaceAccessChange)>, ApiError> {
    const ALL: &str = "SELECT id FROM workspaces WHERE organisation_id = $1 AND status = 'active' ORDER BY id";
    // What is stored for all carries counters at zero, which nobody may send.
    let limits = UsageLimits::from_stored(&global["usage_limits"], None).map(|limits| limits.sent());
    let one = WorkspaceAccessChange {
        at: None,
        id: String::new(),
        enabled: true,
        usage_limits: limits.map_or(Field::Null, Field::Value),
        rate_limits: Field::Value(global["rate_limits"].clone()),
        reset_usage: false,
        provider: DefaultProvider::default(),
    };
    let rows = action.tx.query(ALL, &[&action.organisation_id()]).await?;
    rows.iter().map(|row| Ok((row.try_get("id")?, one.clone()))).collect()
}

async fn disable_others(
    action: &Action<'_>,
    integration: Uuid,
    targets: &[(Uuid, WorkspaceAccessChange)],
) -> Result<(), ApiError> {
    const DISABLE: &str = "UPDATE integration_workspaces SET enabled = false, last_updated_at = now()
                           WHERE integration_id = $1 AND enabled AND workspace_id <> ALL($2)";
    let listed: Vec<Uuid> = targets.iter().map(|(id, _)| *id).collect();
    action.tx.execute(DISABLE, &[&integration, &listed]).await?;
    Ok(())
}

/// Writes one workspace's access; true when it was closed before and is open now.
async fn set(
    action: &Action<'_>,
    integration: Uuid,
    workspace: Uuid,
    sent: WorkspaceAccessChange,
    overrides: bool,
    now: DateTime<Utc>,
) -> Result<bool, ApiError> {
    const STORED: &str = "SELECT enabled, usage_limits, rate_limits, last_reset_at,
            budget_used(organisation_id, 'integration', integration_id || '/' || workspace_id, usage_limits) AS used,
            budget_unconfirmed(organisation_id, 'integration', integration_id || '/' || workspace_id, usage_limits) AS unconfirmed
        FROM integration_workspaces
                          WHERE integration_id = $1 AND workspace_id = $2";
    const WRITE: &str = "INSERT INTO integration_workspaces
            (organisation_id, integration_id, workspace_id, enabled, usage_limits, rate_limits, last_reset_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (integration_id, workspace_id) DO UPDATE SET enabled = excluded.enabled,
            usage_limits = excluded.usage_limits, rate_limits = excluded.rate_limits,
            last_reset_at = excluded.last_reset_at, last_updated_at = now()";
    tenancy::hold(&action.tx, workspace).await?;
    let row = action.tx.query_opt(STORED, &[&integration, &workspace]).await?;
    let was_enabled = row.as_ref().map(|row| row.try_get("enabled")).transpose()?.unwrap_or(false);
    let (mut usage, mut rates, mut last_reset): (_, Option<Value>, Option<DateTime<Utc>>) = match &row {
        Some(row) => (budget(row)?, row.try_get("rate_limits")?, row.try_get("last_reset_at")?),
        None => (None, None, None),
    };
    if sent.usage_limits.is_sent() || overrides {
        let value = sent.usage_limits.value().unwrap_or_default();
        usage = checked_usage(action, value, usage.as_ref(), now)?;
    }
    if sent.rate_limits.is_sent() || overrides {
        rates = checked_rates(action, sent.rate_limits.value().unwrap_or_default())?;
    }
    if sent.reset_usage {
        usage = usage.map(|limits| limits.reset(now));
        last_reset = Some(now);
    }
    let organisation = action.organisation_id();
    let usage = usage.map(|limits| limits.stored());
    action
        .tx
        .execute(WRITE, &[&organisation, &integration, &workspace, &sent.enabled, &usage, &rates, &last_reset])
        .await?;
    Ok(sent.enabled && !was_enabled)
}

fn checked_usage(
    action: &Action<'_>,
    sent: Value,
    stored: Option<&UsageLimits>,
    now: DateTime<Utc>,
) -> Result<Option<UsageLimits>, ApiError> {
    limits::allowed(&action.app.features, Some(&sent))?;
    limits::usage_limits(sent, stored, now)
}

/// At most one; none is null.
fn checked_rates(action: &Action<'_>, sent: Value) -> Result<Option<Value>, ApiError> {
    limits::allowed(&action.app.features, Some(&sent))?;
    let limits = limits::rate_limits(sent, &limits::USUAL_RATES)?;
    if limits.len() > 1 {
        return Err(ApiError::field("rate_limits", "must hold at most one"));
    }
    Ok((!limits.is_empty()).then(|| json!(limits)))
}

/// As stored: with what workspaces made later need to know.
fn checked_global(
    action: &Action<'_>,
    sent: Global,
    provider: &DefaultProvider,
    now: DateTime<Utc>,
) -> Result<Value, ApiError> {
    let within = |error: ApiError| error.under("global_workspace_access");
    let usage = checked_usage(action, sent.usage_limits, None, now).map_err(within)?;
    Ok(json!({
        "enabled": sent.enabled,
        "usage_limits": usage.map(|limits| limits.stored()),
        "rate_limits": checked_rates(action, sent.rate_limits).map_err(within)?,
        "create_default_provider": provider.is_wanted(),
        "default_provider_slug": provider.default_provider_slug,
    }))
}

pub fn shown_global(stored: &Value) -> Value {
    let usage = UsageLimits::from_stored(&stored["usage_limits"], None);
    json!({
        "enabled": stored["enabled"].as_bool().unwrap_or(false),
        "usage_limits": usage.map(|limits| [limits.shown()]),
        "rate_limits": stored["rate_limits"],
    })
}

/// The stored budget of a row, and what was used of it.
fn budget(row: &Row) -> Result<Option<UsageLimits>, ApiError> {
    let (stored, used): (Option<Value>, Option<Amount>) = (row.try_get("usage_limits")?, row.try_get("used")?);
    let unconfirmed = row.try_get("unconfirmed")?;
    let limits = stored.and_then(|stored| UsageLimits::from_stored(&stored, used));
    Ok(limits.map(|limits| limits.with_unconfirmed(unconfirmed)))
}

async fn shown(db: &impl GenericClient, integration: &Integration) -> Result<Value, ApiError> {
    const LIST: &str =
        "SELECT w.slug, g.enabled, g.usage_limits, g.rate_limits, g.last_reset_at, g.created_at, g.last_updated_at,
            budget_used(g.organisation_id, 'integration', g.integration_id || '/' || g.workspace_id, g.usage_limits) AS used,
            budget_unconfirmed(g.organisation_id, 'integration', g.integration_id || '/' || g.workspace_id, g.usage_limits) AS unconfirmed
        FROM integration_workspaces g JOIN workspaces w ON w.id = g.workspace_id
        WHERE g.integration_id = $1 AND g.organisation_id = $2 AND w.status = 'active'
        ORDER BY g.created_at DESC, g.id DESC";
    let mut workspaces = Vec::new();
    for row in db.query(LIST, &[&integration.id, &integration.organisation_id]).await? {
        let usage = budget(&row)?;
        workspaces.push(json!({
            "id": row.try_get::<_, String>("slug")?,
            "enabled": row.try_get::<_, bool>("enabled")?,
            "usage_limits": usage.as_ref().map(|limits| [limits.shown()]),
            "rate_limits": row.try_get::<_, Option<Value>>("rate_limits")?,
            "status": if usage.as_ref().is_some_and(UsageLimits::is_exhausted) { "exhausted" } else { "active" },
            "last_reset_at": row.try_get::<_, Option<Time>>("last_reset_at")?,
            "created_at": row.try_get::<_, Time>("created_at")?,
            "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
        }));
    }
    Ok(json!({
        "object": "list",
        "total": workspaces.len(),
        "workspaces": workspaces,
        "global_workspace_access": shown_global(&integration.global_workspace_access),
    }))
}
