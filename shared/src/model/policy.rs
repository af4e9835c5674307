//! Policies as the proxy needs them: which requests they apply to (`rule`), how much they allow, and by which names
//! what was used is counted. Admin checks and shows them with the same types, so both always mean the same.

mod rule;
mod text;

pub use crate::identity::jwt::limits::{RateKind, RateUnit};
pub use crate::settings::limits::UnknownPrice;
pub use rule::{Condition, ConditionValues, Facts, GroupBy, PolicyKey, PolicyTarget, Rule, names_model};
pub use text::{push_id, push_value_key, value_key};

use super::id::{OrganisationId, PolicyId, WorkspaceId};
use super::status::Status;
use crate::amount::Amount;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;
use tokio_postgres::Row;
use uuid::Uuid;

/// Room for the names of most counters.
const SCOPE_ID: usize = 112;

/// So many requests or tokens in each minute, hour or day, for each group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimitsPolicy {
    pub id: PolicyId,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub name: Option<String>,
    pub rule: Rule,
    pub kind: RateKind,
    pub unit: RateUnit,
    pub value: Amount,
    pub dry_run: bool,
    pub status: Status,
    /// Counters began anew at this moment.
    pub counters_since: DateTime<Utc>,
}

/// So much money, or so many tokens or requests, for each group, until usage is reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageLimitsPolicy {
    pub id: PolicyId,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub name: Option<String>,
    pub rule: Rule,
    pub kind: BudgetKind,
    /// Dollars, tokens or requests.
    pub credit_limit: Amount,
    pub strict: bool,
    /// None follows the proxy's setting.
    #[serde(default)]
    pub unknown_price: Option<UnknownPrice>,
    pub dry_run: bool,
    pub status: Status,
    pub last_reset_at: DateTime<Utc>,
}

/// What is remembered of one group of a usage-limits policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyEntity {
    pub id: Uuid,
    pub policy_id: PolicyId,
    pub value_key: String,
    /// When this group was reset alone.
    pub last_reset_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetKind {
    Cost,
    Tokens,
    Requests,
}

impl BudgetKind {
    /// As in `type`, and as the unit of its counters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Requests => "requests",
        }
    }
}

impl RateLimitsPolicy {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, name, conditions, group_by, include_none, \
        trusted_metadata, target, type, unit, value, dry_run, status, counters_since";

    pub fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            name: row.try_get("name")?,
            rule: Rule::from_row(row)?,
            kind: named(row.try_get("type")?)?,
            unit: named(row.try_get("unit")?)?,
            value: row.try_get("value")?,
            dry_run: row.try_get("dry_run")?,
            status: row.try_get("status")?,
            counters_since: row.try_get("counters_since")?,
        })
    }

    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }

    pub fn scope_prefix(&self) -> String {
        Self::scope_prefix_of(self.id.uuid(), self.counters_since)
    }

    /// What the `scope_id` of all its counters begins with; the name of the group follows. Another rule or unit counts
    /// under other names, so it begins at zero.
    pub fn scope_prefix_of(id: Uuid, counters_since: DateTime<Utc>) -> String {
        let mut prefix = String::with_capacity(SCOPE_ID);
        push_id(&mut prefix, id);
        let _ = write!(prefix, "@{}/", counters_since.timestamp_millis());
        prefix
    }
}

impl UsageLimitsPolicy {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, name, conditions, group_by, include_none, \
        trusted_metadata, target, type, credit_limit, strict, unknown_price, dry_run, status, last_reset_at";

    pub fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            name: row.try_get("name")?,
            rule: Rule::from_row(row)?,
            kind: named(row.try_get("type")?)?,
            credit_limit: row.try_get("credit_limit")?,
            strict: row.try_get("strict")?,
            unknown_price: row.try_get::<_, Option<&str>>("unknown_price")?.map(named).transpose()?,
            dry_run: row.try_get("dry_run")?,
            status: row.try_get("status")?,
            last_reset_at: row.try_get("last_reset_at")?,
        })
    }

    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }

    /// What the `scope_id` of all its counters begins with; the name of the group follows.
    pub fn scope_prefix(&self) -> String {
        let mut prefix = String::with_capacity(SCOPE_ID);
        push_id(&mut prefix, self.id.uuid());
        prefix.push('/');
        prefix
    }

    /// The `starts_at` of a group's counter: the last reset, of the policy or of the group alone.
    pub fn starts_at(&self, entity: Option<&PolicyEntity>) -> DateTime<Utc> {
        let alone = entity.and_then(|entity| entity.last_reset_at);
        alone.map_or(self.last_reset_at, |alone| alone.max(self.last_reset_at))
    }
}

impl PolicyEntity {
    pub const COLUMNS: &str = "id, policy_id, value_key, last_reset_at";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            policy_id: row.try_get("policy_id")?,
            value_key: row.try_get("value_key")?,
            last_reset_at: row.try_get("last_reset_at")?,
        })
    }
}

fn named<T: for<'de> Deserialize<'de>>(text: &str) -> anyhow::Result<T> {
    Ok(T::deserialize(Value::from(text))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_group_counts_from_its_own_reset_unless_the_policy_was_reset_since() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let policy = UsageLimitsPolicy {
            id: PolicyId::default(),
            organisation_id: OrganisationId::default(),
            workspace_id: WorkspaceId::default(),
            name: None,
            rule: serde_json::from_value(json!({ "conditions": [], "group_by": [] })).unwrap(),
            kind: BudgetKind::Cost,
            credit_limit: 1.into(),
            strict: false,
            unknown_price: None,
            dry_run: false,
            status: Status::Active,
            last_reset_at: at("2026-02-01T00:00:00Z"),
        };
        let entity = |reset: Option<&str>| PolicyEntity {
            id: Uuid::nil(),
            policy_id: PolicyId::default(),
            value_key: String::new(),
            last_reset_at: reset.map(at),
        };
        assert_eq!(policy.starts_at(None), policy.last_reset_at);
        for (reset, expected) in [
            (None, "2026-02-01T00:00:00Z"),
            (Some("2026-01-31T12:00:00Z"), "2026-02-01T00:00:00Z"),
            (Some("2026-02-03T12:00:00Z"), "2026-02-03T12:00:00Z"),
        ] {
            assert_eq!(policy.starts_at(Some(&entity(reset))), at(expected), "{reset:?}");
        }
    }
}
