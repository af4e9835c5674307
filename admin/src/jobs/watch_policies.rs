//! Sends alerts when a group of a usage-limits policy reaches its threshold or its limit, once, by mail and in the
//! audit trail. Which alerts were sent is stored per group.

use super::watch_budgets::action;
use super::{Job, JobRun, outbox};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::limits::{BudgetCrossing, BudgetMarks};
use crate::mail::budget::{self, BudgetNotice};
use crate::mail::recipients;
use futures::FutureExt as _;
use serde_json::json;
use shared::amount::Amount;
use shared::model::policy::BudgetKind;
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "watch_policies", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: usize = 200;

/// Groups that crossed a threshold or limit for which no alert was sent yet.
const REACHED: &str =
    "SELECT p.id, p.organisation_id, p.workspace_id, p.name, p.type, p.credit_limit, p.alert_threshold,
        p.dry_run, g.value_key, g.used, g.told_threshold, g.told_exhausted
    FROM usage_limits_policies p CROSS JOIN LATERAL (
        SELECT substr(c.scope_id, 38) AS value_key, c.value * CASE p.type WHEN 'cost' THEN 0.01 ELSE 1 END AS used,
               coalesce(e.is_threshold_alerts_sent, false) AS told_threshold,
               coalesce(e.is_exhausted_alerts_sent, false) AS told_exhausted
        FROM usage_counters c LEFT JOIN policy_entities e
          ON e.policy_id = p.id AND e.organisation_id = p.organisation_id AND e.value_key = substr(c.scope_id, 38)
        WHERE c.organisation_id = p.organisation_id AND c.scope = 'policy' AND left(c.scope_id, 36) = p.id::text
          AND c.unit = p.type AND c.period = 'total' AND c.starts_at >= p.last_reset_at
          AND c.starts_at = greatest(e.last_reset_at, p.last_reset_at)) g
    WHERE p.status = 'active'
      AND ((g.used >= p.credit_limit::numeric AND NOT g.told_exhausted)
           OR (g.used >= p.alert_threshold::numeric AND NOT g.told_threshold))
    LIMIT $1";

const REMEMBER: &str = "INSERT INTO policy_entities
        (id, organisation_id, policy_id, value_key, is_threshold_alerts_sent, is_exhausted_alerts_sent, status)
    VALUES (md5($2::uuid || '/' || $3::text)::uuid, $1, $2, $3, $4, $5, $6)
    ON CONFLICT (policy_id, value_key) DO UPDATE SET is_threshold_alerts_sent = excluded.is_threshold_alerts_sent,
        is_exhausted_alerts_sent = excluded.is_exhausted_alerts_sent, status = excluded.status";

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    if !app.features.policy_enabled {
        return Ok(JobRun { items: 0, is_all: true });
    }
    let rows = tx.query(REACHED, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        tell(app, tx, row).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}

async fn tell(app: &App, tx: &Transaction<'_>, row: &Row) -> anyhow::Result<()> {
    let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
    let workspace: Uuid = row.try_get("workspace_id")?;
    let (value_key, used): (String, Amount) = (row.try_get("value_key")?, row.try_get("used")?);
    let marks = BudgetMarks {
        credit_limit: row.try_get("credit_limit")?,
        alert_threshold: row.try_get("alert_threshold")?,
        is_threshold_alerts_sent: row.try_get("told_threshold")?,
        is_exhausted_alerts_sent: row.try_get("told_exhausted")?,
    };
    let crossing = marks.crossed(used);
    let alerted = marks.after_alert(crossing.unwrap_or(BudgetCrossing::Exhausted));
    let status = if marks.is_exhausted(used) { "exhausted" } else { "active" };
    let (threshold, exhausted) = (alerted.is_threshold_alerts_sent, alerted.is_exhausted_alerts_sent);
    tx.execute(REMEMBER, &[&organisation, &id, &value_key, &threshold, &exhausted, &status]).await?;
    let Some(crossing) = crossing else { return Ok(()) };
    let mut record = AuditRecord::by_system(organisation, "policies", action(crossing));
    record.workspace_id = Some(workspace);
    record.resource_id = Some(id.to_string());
    record.after = Some(json!({ "value_key": value_key, "current_usage": used, "status": status }));
    audit::record(tx, &record).await?;
    let name: Option<String> = row.try_get("name")?;
    let subject = BudgetNotice {
        subject: &match (name.unwrap_or_else(|| id.to_string()), value_key.as_str()) {
            (name, "") => format!("policy {name}"),
            (name, group) => format!("policy {name} for {group}"),
        },
        kind: kind(row.try_get("type")?),
        marks,
        used,
        at: &format!("PUT /v1/policies/usage-limits/{id}"),
        is_dry_run: row.try_get("dry_run")?,
    };
    for to in recipients::of_budget(tx, organisation, Some(workspace), None).await? {
        outbox::put(tx, organisation, &budget::letter(to, &subject, crossing)).await?;
    }
    if app.alert_webhook.is_some() {
        outbox::put(tx, organisation, &budget::posted(organisation, Some(workspace), &subject, crossing)).await?;
    }
    Ok(())
}

fn kind(text: &str) -> BudgetKind {
    match text {
        "cost" => BudgetKind::Cost,
        "tokens" => BudgetKind::Tokens,
        _ => BudgetKind::Requests,
    }
}
