//! The groups of a policy, and what each has used: read from the counters at the moment of the question. A group is
//! shown as whom its first value names: a key, a workspace, a user, or something else in the metadata. The one group of a
//! policy that groups nothing is its workspace.

use crate::http::{ApiError, Time};
use crate::identity::Call;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::amount::Amount;
use shared::db::table::row;
use shared::model::AccessStatus;
use shared::model::policy::{Condition, Facts, PolicyKey, PolicyTarget, value_key};
use std::borrow::Cow;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

pub const TYPES: [&str; 4] = ["api_key", "workspace", "user", "metadata"];
pub const STATUSES: [&str; 2] = ["active", "exhausted"];

#[derive(Deserialize)]
pub struct Entity {
    id: Uuid,
    pub value_key: String,
    pub used: Amount,
    /// Of that, what nobody has confirmed.
    unconfirmed: Amount,
    pub status: AccessStatus,
    entity_type: String,
    entity_id: String,
    name: Option<String>,
    pub since: Option<DateTime<Utc>>,
    pub is_threshold_alerts_sent: bool,
    pub is_exhausted_alerts_sent: bool,
}

/// Which of them.
#[derive(Debug, Default)]
pub struct EntityQuery {
    /// Value keys to be shown in any case.
    pub named: Vec<String>,
    pub types: Option<Vec<String>>,
    pub search: Option<String>,
    pub statuses: Option<Vec<String>>,
    /// How many, and how many not.
    pub page: (i64, i64),
}

/// The counters of a rate-limits policy in the running window.
pub struct RateCounters<'a> {
    pub prefix: &'a str,
    pub kind: &'a str,
    pub period: &'a str,
}

/// The counters of a usage-limits policy since its last reset.
pub struct BudgetCounters<'a> {
    pub kind: &'a str,
    pub last_reset_at: DateTime<Utc>,
}

/// $10 prefix, $11 unit, $12 period.
const IN_WINDOW: &str = "SELECT substr(c.scope_id, length($10::text) + 1) AS value_key, c.value AS used,
        c.starts_at AS since, false AS is_threshold_alerts_sent, false AS is_exhausted_alerts_sent, 0::numeric AS unconfirmed
    FROM usage_counters c
    WHERE c.organisation_id = $1 AND c.scope = 'policy' AND left(c.scope_id, 36) = $2::uuid::text
      AND starts_with(c.scope_id, $10) AND c.unit = $11 AND c.period = $12::text
      AND c.starts_at = date_trunc($12::text, now(), 'UTC')";

/// $10 unit, $11 the policy's last reset. A group that was reset alone counts from then on.
const IN_BUDGET: &str = "SELECT coalesce(c.value_key, e.value_key) AS value_key,
        coalesce(c.value * CASE $10::text WHEN 'cost' THEN 0.01 ELSE 1 END, 0) AS used,
        greatest(e.last_reset_at, $11::timestamptz) AS since,
        coalesce(e.is_threshold_alerts_sent, false) AS is_threshold_alerts_sent,
        coalesce(e.is_exhausted_alerts_sent, false) AS is_exhausted_alerts_sent,
        coalesce(c.unconfirmed * CASE $10::text WHEN 'cost' THEN 0.01 ELSE 1 END, 0) AS unconfirmed
    FROM (SELECT substr(u.scope_id, 38) AS value_key, u.value,
            (SELECT sum(i.amount) FROM limit_intents i WHERE i.organisation_id = $1 AND i.scope = 'policy'
                AND i.scope_id = u.scope_id AND i.unit = u.unit AND i.period = 'total' AND i.starts_at = u.starts_at
                AND i.charged_at IS NOT NULL) AS unconfirmed
          FROM usage_counters u
            LEFT JOIN policy_entities r ON r.policy_id = $2 AND r.organisation_id = $1 AND r.value_key = substr(u.scope_id, 38)
          WHERE u.organisation_id = $1 AND u.scope = 'policy' AND left(u.scope_id, 36) = $2::uuid::text
            AND u.unit = $10 AND u.period = 'total' AND u.starts_at = greatest(r.last_reset_at, $11::timestamptz)) c
    FULL JOIN (SELECT * FROM policy_entities WHERE policy_id = $2 AND organisation_id = $1) e USING (value_key)";

/// $1 organisation, $2 policy, $3 named, $4 limit, $5 types, $6 search, $7 statuses, $8 and $9 the page.
fn query(seen: &str) -> String {
    format!(
        "WITH seen AS ({seen}),
        groups AS (
            SELECT * FROM seen
            UNION ALL SELECT n.value_key, 0, NULL, false, false, 0 FROM unnest($3::text[]) AS n(value_key)
                      WHERE NOT EXISTS (SELECT FROM seen s WHERE s.value_key = n.value_key)),
        parts AS (
            SELECT g.*, CASE g.value_key WHEN '' THEN (
                    SELECT p.workspace_id::text FROM (
                        SELECT id, organisation_id, workspace_id FROM rate_limits_policies
                        UNION ALL SELECT id, organisation_id, workspace_id FROM usage_limits_policies) p
                    WHERE p.id = $2 AND p.organisation_id = $1)
                    ELSE split_part(substr(g.value_key, strpos(g.value_key, ':') + 1), '|', 1) END AS entity_id,
                CASE WHEN g.value_key = '' THEN 'workspace'
                     WHEN starts_with(g.value_key, 'api_key:') THEN 'api_key'
                     WHEN starts_with(g.value_key, 'workspace_id:') THEN 'workspace'
                     WHEN starts_with(g.value_key, 'metadata._user:') THEN 'user' ELSE 'metadata' END AS entity_type
            FROM groups g),
        known AS (
            SELECT p.*, CASE WHEN p.entity_id ~ '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$'
                             THEN p.entity_id::uuid END AS row_id
            FROM parts p),
        found AS (
            SELECT md5($2::uuid || '/' || g.value_key)::uuid AS id, g.*,
                CASE g.entity_type WHEN 'api_key' THEN k.name WHEN 'workspace' THEN w.name WHEN 'user' THEN g.entity_id END
                    AS name,
                CASE WHEN g.used >= $4::numeric THEN 'exhausted' ELSE 'active' END AS status
            FROM known g LEFT JOIN api_keys k ON g.entity_type = 'api_key' AND k.id = g.row_id AND k.organisation_id = $1
                 LEFT JOIN workspaces w ON g.entity_type = 'workspace' AND w.id = g.row_id AND w.organisation_id = $1),
        picked AS (
            SELECT * FROM found
            WHERE ($5::text[] IS NULL OR entity_type = ANY ($5)) AND ($7::text[] IS NULL OR status = ANY ($7))
              AND ($6::text IS NULL OR strpos(lower(concat_ws(' ', value_key, name)), lower($6)) > 0))
        SELECT (SELECT count(*) FROM picked) AS total, page.*
        FROM (SELECT) AS always
             LEFT JOIN (SELECT * FROM picked ORDER BY used DESC, value_key LIMIT $8 OFFSET $9) page ON true
        ORDER BY used DESC, value_key"
    )
}

pub async fn in_window(
    db: &impl GenericClient,
    call: &Call,
    policy: Uuid,
    limit: Amount,
    window: &RateCounters<'_>,
    wanted: &EntityQuery,
) -> Result<(i64, Vec<Entity>), ApiError> {
    let more: [&(dyn ToSql + Sync); 3] = [&window.prefix, &window.kind, &window.period];
    load_entities(db, &query(IN_WINDOW), call, policy, limit, wanted, &more).await
}

pub async fn in_budget(
    db: &impl GenericClient,
    call: &Call,
    policy: Uuid,
    limit: Amount,
    budget: &BudgetCounters<'_>,
    wanted: &EntityQuery,
) -> Result<(i64, Vec<Entity>), ApiError> {
    let more: [&(dyn ToSql + Sync); 2] = [&budget.kind, &budget.last_reset_at];
    load_entities(db, &query(IN_BUDGET), call, policy, limit, wanted, &more).await
}

async fn load_entities(
    db: &impl GenericClient,
    sql: &str,
    call: &Call,
    policy: Uuid,
    limit: Amount,
    wanted: &EntityQuery,
    more: &[&(dyn ToSql + Sync)],
) -> Result<(i64, Vec<Entity>), ApiError> {
    let organisation = call.caller.organisation_id();
    let EntityQuery { named, types, search, statuses, page: (size, offset) } = wanted;
    let mut values: Vec<&(dyn ToSql + Sync)> =
        vec![&organisation, &policy, named, &limit, types, search, statuses, size, offset];
    values.extend(more);
    let rows = db.query(sql, &values).await?;
    let total = rows.first().map_or(Ok(0), |row| row.try_get("total"))?;
    // A page without rows still carries the total.
    let mut found = Vec::new();
    for row in &rows {
        if row.try_get::<_, Option<Uuid>>("id")?.is_some() {
            found.push(row::read(row)?);
        }
    }
    Ok((total, found))
}

impl EntityQuery {
    /// As a query asks.
    pub fn for_call(call: &Call, page: (i64, i64)) -> Result<Self, ApiError> {
        let some = |chosen: Vec<String>| (!chosen.is_empty()).then_some(chosen);
        Ok(Self {
            named: Vec::new(),
            types: some(call.query().choices("type", &TYPES)?),
            search: call.query().text("search").map(str::to_owned),
            statuses: some(call.query().choices("status", &STATUSES)?),
            page,
        })
    }
}

impl Entity {
    pub fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "object": "policy-entity",
            "value_key": self.value_key,
            "current_usage": self.used,
            "status": self.status,
            "entity_type": self.entity_type,
            "entity_id": self.entity_id,
            "name": self.name,
        })
    }

    /// With the beginning of its period, where that is not a window, and what of its usage is not confirmed.
    pub fn shown_since(&self) -> Value {
        let mut shown = self.shown();
        shown["unconfirmed"] = json!(self.unconfirmed);
        shown["last_reset_at"] = json!(self.since.map(Time));
        shown
    }
}

/// The keys, workspaces and users that conditions name, as value keys.
pub fn named(conditions: &Value) -> Vec<String> {
    struct NamedValue<'a>(&'a str);
    impl Facts for NamedValue<'_> {
        fn target(&self) -> PolicyTarget {
            PolicyTarget::Llm
        }

        fn value(&self, _: &PolicyKey) -> Option<Cow<'_, str>> {
            Some(Cow::Borrowed(self.0))
        }
    }
    let conditions: Vec<Condition> = serde_json::from_value(conditions.clone()).unwrap_or_default();
    let is_somebody = |key: &PolicyKey| match key {
        PolicyKey::ApiKey | PolicyKey::WorkspaceId => true,
        PolicyKey::Metadata(field) => field == "_user",
        _ => false,
    };
    let mut found = Vec::new();
    for condition in conditions.iter().filter(|condition| is_somebody(&condition.key)) {
        let values = condition.value.iter().filter(|value| *value != "*");
        found.extend(values.filter_map(|value| value_key([&condition.key], &NamedValue(value))));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_keys_workspaces_and_users() {
        let conditions = json!([
            { "key": "api_key", "value": ["k-2", "k-1", "k-1"] },
            { "key": "metadata._user", "value": "alice" },
            { "key": "metadata.team", "value": "red" },
            { "key": "workspace_id", "value": "*" },
        ]);
        assert_eq!(named(&conditions), ["api_key:k-1", "api_key:k-2", "metadata._user:alice"]);
    }
}
