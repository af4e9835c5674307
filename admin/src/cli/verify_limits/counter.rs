//! The counters that are verified, page by page: budgets in their running period, also those that nothing was charged to yet, and
//! the totals of today.

use crate::limits::owners::OWNERS;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use std::fmt;
use tokio_postgres::{Error, GenericClient, Row};
use uuid::Uuid;

const PAGE: i64 = 200;

#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    pub organisation_id: Uuid,
    pub scope: String,
    pub scope_id: String,
    pub unit: String,
    pub period: String,
    pub starts_at: DateTime<Utc>,
    pub value: Decimal,
    /// Of it, what calls of dead proxies were promised.
    pub unconfirmed: Decimal,
    /// What proxies hold besides.
    pub leased: Decimal,
}

impl Counter {
    fn from_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            organisation_id: row.try_get("organisation_id")?,
            scope: row.try_get("scope")?,
            scope_id: row.try_get("scope_id")?,
            unit: row.try_get("unit")?,
            period: row.try_get("period")?,
            starts_at: row.try_get("starts_at")?,
            value: row.try_get("value")?,
            unconfirmed: row.try_get("unconfirmed")?,
            leased: row.try_get("leased")?,
        })
    }

    /// Whether it adds up a day, and is no budget.
    pub fn is_day_total(&self) -> bool {
        self.period == "day"
    }

    /// Up to the first slash, and behind it.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.scope_id.split_once('/') {
            Some((first, rest)) => (first, Some(rest)),
            None => (&self.scope_id, None),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { organisation_id, scope, scope_id, unit, starts_at, .. } = self;
        let unit = if unit == "cost" { "cents" } else { unit.as_str() };
        let since = starts_at.format("%Y-%m-%dT%H:%M:%S%.3fZ");
        let what = if self.is_day_total() { "of the day" } else { "since" };
        write!(f, "{scope} {scope_id}, {unit} {what} {since} (organisation {organisation_id})")
    }
}

/// What else is known of a counter `c`.
const BESIDES: &str = "
    coalesce((SELECT sum(i.amount) FROM limit_intents i WHERE i.charged_at IS NOT NULL
        AND i.organisation_id = c.organisation_id AND i.scope = c.scope AND i.scope_id = c.scope_id AND i.unit = c.unit
        AND i.period = c.period AND i.starts_at = c.starts_at), 0) AS unconfirmed,
    coalesce((SELECT sum(l.amount) FROM limit_leases l WHERE l.organisation_id = c.organisation_id
        AND l.scope = c.scope AND l.scope_id = c.scope_id AND l.unit = c.unit AND l.period = c.period
        AND l.starts_at = c.starts_at), 0) AS leased";

pub struct CounterPages {
    organisation: Option<Uuid>,
    /// The last one that was read.
    after: Option<Counter>,
    /// Which of the owners are looked at for budgets without a counter; none while there are counters.
    owner: Option<usize>,
    after_owner: Uuid,
}

impl CounterPages {
    pub fn new(organisation: Option<Uuid>) -> Self {
        Self { organisation, after: None, owner: None, after_owner: Uuid::nil() }
    }

    /// None at the end. A page may be empty.
    pub async fn next(&mut self, db: &impl GenericClient) -> anyhow::Result<Option<Vec<Counter>>> {
        match self.owner {
            None => {
                let page = self.counted(db).await?;
                if page.is_empty() {
                    self.owner = Some(0);
                }
                Ok(Some(page))
            }
            Some(owner) if owner < OWNERS.len() => Ok(Some(self.uncounted(db, owner).await?)),
            Some(_) => Ok(None),
        }
    }

    async fn counted(&mut self, db: &impl GenericClient) -> anyhow::Result<Vec<Counter>> {
        let select = format!(
            "SELECT c.*, {BESIDES} FROM usage_counters c
             WHERE ($7::uuid IS NULL OR c.organisation_id = $7)
               AND (c.organisation_id, c.scope, c.scope_id, c.unit, c.period, c.starts_at) > ($1, $2, $3, $4, $5, $6)
               AND CASE c.period
                   WHEN 'total' THEN c.starts_at > '-infinity' AND NOT EXISTS (SELECT FROM usage_counters n
                       WHERE n.organisation_id = c.organisation_id AND n.scope = c.scope AND n.scope_id = c.scope_id
                         AND n.unit = c.unit AND n.period = 'total' AND n.starts_at > c.starts_at)
                   WHEN 'day' THEN c.scope IN ('organisation', 'workspace', 'api_key', 'provider')
                       AND c.starts_at = date_trunc('day', now(), 'UTC')
                   ELSE false END
             ORDER BY c.organisation_id, c.scope, c.scope_id, c.unit, c.period, c.starts_at LIMIT {PAGE}"
        );
        let (organisation, scope, scope_id, unit, period, starts_at) = match &self.after {
            None => (Uuid::nil(), "", "", "", "", DateTime::<Utc>::UNIX_EPOCH),
            Some(last) => (
                last.organisation_id,
                last.scope.as_str(),
                last.scope_id.as_str(),
                last.unit.as_str(),
                last.period.as_str(),
                last.starts_at,
            ),
        };
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&organisation, &scope, &scope_id, &unit, &period, &starts_at, &self.organisation];
        let rows = db.query(&select, &values).await?;
        let page = rows.iter().map(Counter::from_row).collect::<Result<Vec<_>, _>>()?;
        if let Some(last) = page.last() {
            self.after = Some(last.clone());
        }
        Ok(page)
    }

    /// Budgets that have no counter in their period: nothing may have been used.
    async fn uncounted(&mut self, db: &impl GenericClient, owner: usize) -> anyhow::Result<Vec<Counter>> {
        let budget_owner = &OWNERS[owner];
        let (table, budget, scope, scope_id) =
            (budget_owner.table, budget_owner.budget, budget_owner.scope, budget_owner.scope_id);
        let is_alive = budget_owner.is_alive;
        let select = format!(
            "SELECT t.id, c.organisation_id, c.scope, c.scope_id, c.unit, c.period, c.starts_at, 0::numeric AS value, {BESIDES}
             FROM {table} t CROSS JOIN LATERAL (SELECT t.organisation_id, '{scope}' AS scope, {scope_id} AS scope_id,
                 {budget} ->> 'type' AS unit, 'total' AS period, ({budget} ->> 'last_reset_at')::timestamptz AS starts_at) AS c
             WHERE t.usage_limits IS NOT NULL AND {is_alive} AND t.id > $1 AND ($2::uuid IS NULL OR t.organisation_id = $2)
               AND c.starts_at IS NOT NULL AND c.unit IS NOT NULL
               AND NOT EXISTS (SELECT FROM usage_counters o WHERE o.organisation_id = c.organisation_id
                   AND o.scope = c.scope AND o.scope_id = c.scope_id AND o.unit = c.unit AND o.period = c.period
                   AND o.starts_at = c.starts_at)
             ORDER BY t.id LIMIT {PAGE}"
        );
        let rows = db.query(&select, &[&self.after_owner, &self.organisation]).await?;
        match rows.last() {
            Some(last) => self.after_owner = last.try_get("id")?,
            None => (self.owner, self.after_owner) = (Some(owner + 1), Uuid::nil()),
        }
        Ok(rows.iter().map(Counter::from_row).collect::<Result<Vec<_>, _>>()?)
    }
}
