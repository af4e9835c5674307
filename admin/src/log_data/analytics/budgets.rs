//! When budgets will be used up: what was used of each, how fast it is used, and the time at which the limit is reached if that goes
//! on. Counters are asked, not logs: they are what budgets are measured by, and there is one for each day.
//!
//! A pace is what was used in the last 24 hours, or on a day of the last seven. Counters are of days (UTC), so the oldest one counts
//! for the part of it that is not over yet 24 hours, or seven days, later. Groups of policies are not counted by days: their pace is
//! that of their period so far, and at least a day of it.

use crate::http::{ApiError, Time};
use crate::limits::owners::{BudgetOwner, OWNERS};
use crate::log_data::view::VisibleWorkspaces;
use crate::log_data::{LogView, row};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use shared::db::usage_slots::day_of;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, GenericClient, Row};
use uuid::Uuid;

/// Budgets beyond so many are left out, after they were put in order.
pub const MAX_BUDGETS: i64 = 10_000;
pub const POLICY: &str = "policy";
/// What a budget can be on.
pub const KINDS: [&str; 5] = ["api_key", "workspace", "provider", "integration", POLICY];

#[derive(Debug)]
pub struct Budgets {
    /// When they were looked at.
    pub as_of: DateTime<Utc>,
    pub rows: Vec<Value>,
    pub total: i64,
    /// Whether there are more than are counted.
    pub is_capped: bool,
}

/// A page of the budgets in view, those first that end first. `kinds` are some of `KINDS`.
pub async fn budgets(
    db: &impl GenericClient,
    view: &LogView,
    kinds: &[String],
    (size, offset): (i64, i64),
) -> Result<Budgets, ApiError> {
    const NOW: &str = "SELECT date_trunc('milliseconds', now())";
    const ORDER: &str = "runs_out_at, used_share DESC, kind, id, value_key";
    let as_of: DateTime<Utc> = db.query_one(NOW, &[]).await?.try_get(0)?;
    let found = sources(view, kinds);
    if found.is_empty() {
        return Ok(Budgets { as_of, rows: Vec::new(), total: 0, is_capped: false });
    }
    let sql = format!(
        "WITH budgets AS ({}), paced AS ({PACED}), ending AS ({ENDING}),
         listed AS MATERIALIZED (SELECT * FROM ending ORDER BY {ORDER} LIMIT {}), counted AS (SELECT count(*) AS total FROM listed)
         SELECT counted.total, page.* FROM counted
         LEFT JOIN (SELECT * FROM listed ORDER BY {ORDER} LIMIT $7 OFFSET $8) AS page ON true ORDER BY {ORDER}",
        found.join(" UNION ALL "),
        MAX_BUDGETS + 1,
    );
    let workspaces: Option<Vec<Uuid>> = match &view.workspaces {
        VisibleWorkspaces::All => None,
        VisibleWorkspaces::One(id) => Some(vec![*id]),
        VisibleWorkspaces::Some(ids) => Some(ids.clone()),
    };
    let today = day_of(as_of);
    let left_of_day = 1.0 - (as_of - today).num_milliseconds() as f64 / 86_400_000.0;
    let size = size.min(MAX_BUDGETS.saturating_sub(offset).max(0));
    let values: [&(dyn ToSql + Sync); 8] =
        [&view.organisation_id, &workspaces, &view.user_id, &as_of, &today, &left_of_day, &size, &offset];
    let mut budgets = Budgets { as_of, rows: Vec::new(), total: 0, is_capped: false };
    for row in db.query(&sql, &values).await? {
        let total: i64 = row.try_get("total")?;
        (budgets.total, budgets.is_capped) = (total.min(MAX_BUDGETS), total > MAX_BUDGETS);
        if row.try_get::<_, Option<&str>>("kind")?.is_some() {
            budgets.rows.push(shown(&row)?);
        }
    }
    Ok(budgets)
}

/// The statements that find budgets, each of the same columns: those that the caller may see and asks for.
fn sources(view: &LogView, kinds: &[String]) -> Vec<String> {
    let is_asked = |kind: &str| kinds.is_empty() || kinds.iter().any(|one| one == kind);
    // Whoever sees only their own calls sees what is left of their own keys.
    let is_visible = |owner: &&BudgetOwner| view.user_id.is_none() || owner.table == "api_keys";
    let mut sources: Vec<String> =
        OWNERS.iter().filter(|owner| is_asked(owner.scope)).filter(is_visible).map(of_owner).collect();
    // The name of a group can be a value of metadata.
    if is_asked(POLICY) && view.user_id.is_none() && view.shows_metadata {
        sources.push(OF_POLICIES.to_owned());
    }
    sources
}

fn of_owner(owner: &BudgetOwner) -> String {
    let BudgetOwner { table, budget, scope, scope_id, workspace, name, is_alive, called, .. } = owner;
    // Integrations have no counters of days; the providers that a workspace has of one do.
    let (counted_scope, counted_id) = match *table {
        "integration_workspaces" => (
            "provider",
            "c.scope_id IN (SELECT p.workspace_id || '/' || p.slug FROM providers p
                            WHERE p.integration_id = t.integration_id AND p.workspace_id = t.workspace_id)"
                .to_owned(),
        ),
        _ => (*scope, format!("c.scope_id = {scope_id}")),
    };
    let only_own = if *table == "api_keys" { "t.user_id = $3" } else { "false" };
    format!(
        "SELECT '{scope}' AS kind, {called} AS id, {name} AS name, {workspace} AS workspace_id, NULL::text AS value_key,
             {budget} ->> 'type' AS type, ({budget} ->> 'credit_limit')::numeric AS credit_limit,
             coalesce(budget_used(t.organisation_id, '{scope}', {scope_id}, {budget}), 0)::numeric AS spent,
             ({budget} ->> 'last_reset_at')::timestamptz AS last_reset_at,
             ({budget} ->> 'next_usage_reset_at')::timestamptz AS next_usage_reset_at, false AS dry_run,
             round(days.of_day * CASE {budget} ->> 'type' WHEN 'cost' THEN 0.01 ELSE 1 END, 10) AS pace_24h,
             round(days.of_week * CASE {budget} ->> 'type' WHEN 'cost' THEN 0.01 ELSE 1 END / 7, 10) AS pace_7d
         FROM {table} t CROSS JOIN LATERAL (
             SELECT coalesce(sum(c.value * CASE c.starts_at WHEN $5::timestamptz THEN 1
                        WHEN $5::timestamptz - interval '24 hours' THEN $6::double precision::numeric ELSE 0 END), 0) AS of_day,
                    coalesce(sum(c.value * CASE c.starts_at WHEN $5::timestamptz - interval '168 hours'
                        THEN $6::double precision::numeric ELSE 1 END), 0) AS of_week
             FROM usage_counters c
             WHERE c.organisation_id = t.organisation_id AND c.scope = '{counted_scope}' AND {counted_id}
               AND c.unit = {budget} ->> 'type' AND c.period = 'day'
               AND c.starts_at BETWEEN $5::timestamptz - interval '168 hours' AND $5::timestamptz) AS days
         WHERE t.organisation_id = $1::uuid AND ($2::uuid[] IS NULL OR {workspace} = ANY($2)) AND ($3::uuid IS NULL OR {only_own})
           AND t.usage_limits IS NOT NULL AND {is_alive} AND {budget} ->> 'credit_limit' IS NOT NULL"
    )
}

/// Each group that has used something.
const OF_POLICIES: &str = "
    SELECT 'policy' AS kind, p.id::text AS id, p.name AS name, p.workspace_id AS workspace_id, substr(c.scope_id, 38) AS value_key,
        p.type AS type, p.credit_limit::numeric AS credit_limit,
        c.value * CASE p.type WHEN 'cost' THEN 0.01 ELSE 1 END AS spent, c.starts_at AS last_reset_at,
        p.next_usage_reset_at AS next_usage_reset_at, p.dry_run AS dry_run, NULL::numeric AS pace_24h, NULL::numeric AS pace_7d
    FROM usage_limits_policies p
    JOIN usage_counters c ON c.organisation_id = p.organisation_id AND c.scope = 'policy' AND left(c.scope_id, 36) = p.id::text
        AND c.unit = p.type AND c.period = 'total' AND c.starts_at >= p.last_reset_at
    LEFT JOIN policy_entities e ON e.policy_id = p.id AND e.organisation_id = p.organisation_id
        AND e.value_key = substr(c.scope_id, 38)
    WHERE p.organisation_id = $1::uuid AND ($2::uuid[] IS NULL OR p.workspace_id = ANY($2)) AND $3::uuid IS NULL
      AND p.status = 'active' AND c.starts_at = greatest(e.last_reset_at, p.last_reset_at)";

/// The faster of the two: what rises is seen on the day it rises, and a quiet day hides nothing. `$5` and `$6` are named here too,
/// for statements about policies alone.
const PACED: &str = "
    SELECT *, greatest(pace_24h, pace_7d,
        CASE WHEN pace_24h IS NULL THEN round(spent / greatest(extract(epoch FROM $4::timestamptz - last_reset_at) / 86400, 1), 10) END) AS pace
    FROM budgets WHERE $5::timestamptz IS NOT NULL AND $6::double precision IS NOT NULL";

/// No limit is reached in a period that ends before, and none that takes ten years.
const ENDING: &str = "
    SELECT *, CASE WHEN spent < credit_limit AND reached_at >= next_usage_reset_at THEN NULL ELSE reached_at END AS runs_out_at
    FROM (SELECT *, spent / credit_limit AS used_share,
              CASE WHEN spent >= credit_limit THEN $4::timestamptz
                   WHEN pace > 0 AND credit_limit - spent < pace * 3650
                   THEN $4::timestamptz + make_interval(secs => ((credit_limit - spent) / pace * 86400)::double precision)
              END AS reached_at
          FROM paced) AS reaching";

fn shown(found: &Row) -> Result<Value, Error> {
    let number = |name: &str| found.try_get::<_, Option<Decimal>>(name).map(|value| value.map(row::number));
    let time = |name: &str| found.try_get::<_, Option<Time>>(name);
    let is_exhausted = found.try_get::<_, Decimal>("spent")? >= found.try_get::<_, Decimal>("credit_limit")?;
    let kind: &str = found.try_get("type")?;
    Ok(json!({
        "object": "budget",
        "kind": found.try_get::<_, &str>("kind")?,
        "id": found.try_get::<_, &str>("id")?,
        "name": found.try_get::<_, Option<&str>>("name")?,
        "workspace_id": found.try_get::<_, Option<Uuid>>("workspace_id")?,
        "value_key": found.try_get::<_, Option<&str>>("value_key")?,
        "type": kind,
        "unit": if kind == "cost" { "usd" } else { kind },
        "credit_limit": number("credit_limit")?,
        "current_usage": number("spent")?,
        "status": if is_exhausted { "exhausted" } else { "active" },
        "last_reset_at": time("last_reset_at")?,
        "next_usage_reset_at": time("next_usage_reset_at")?,
        "pace_24h": number("pace_24h")?,
        "pace_7d": number("pace_7d")?,
        "pace": number("pace")?,
        "runs_out_at": time("runs_out_at")?,
        "dry_run": found.try_get::<_, bool>("dry_run")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(user_id: Option<Uuid>, shows_metadata: bool) -> LogView {
        LogView { organisation_id: Uuid::nil(), workspaces: VisibleWorkspaces::All, user_id, shows_metadata }
    }

    #[test]
    fn people_who_see_only_their_own_see_their_own_keys() {
        let all: Vec<String> = Vec::new();
        assert_eq!(sources(&view(None, true), &all).len(), KINDS.len());
        assert_eq!(sources(&view(None, false), &all).len(), KINDS.len() - 1, "groups can be named by metadata");
        let own = sources(&view(Some(Uuid::nil()), true), &all);
        assert!(own.len() == 1 && own[0].contains("t.user_id = $3"), "{own:?}");
        assert!(sources(&view(Some(Uuid::nil()), true), &["policy".to_owned()]).is_empty());
    }

    #[test]
    fn every_kind_is_asked_for_by_its_name() {
        for kind in KINDS {
            let found = sources(&view(None, true), &[kind.to_owned()]);
            assert!(found.len() == 1 && found[0].contains(&format!("'{kind}' AS kind")), "{kind}: {found:?}");
        }
    }
}
