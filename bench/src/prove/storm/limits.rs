//! The limits of a storm, and what Postgres says of them. Each kind of trouble is a group of its own of every policy, so
//! that nothing is left of one when the next begins.

use super::REPLICAS;
use crate::prove::client::{Caller, empty};
use crate::prove::rotation::made;
use anyhow::{Context as _, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Rate,
    Budget,
    Strict,
}

/// What happens in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Calm,
    Killed,
    Restarted,
}

pub struct Policy {
    pub sort: Sort,
    id: String,
}

/// What the logs and the counter of a group say, in the unit of its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Books {
    pub calls: u64,
    /// What the dearest call took of the limit.
    pub call: f64,
    /// As exact decimals. What is counted is what the logs add up to, and what calls were promised that left no log.
    pub logged: String,
    pub counted: String,
    pub unconfirmed: f64,
}

impl Sort {
    /// Also the field of the metadata that a policy speaks of.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Budget => "budget",
            Self::Strict => "strict",
        }
    }

    /// In requests, or in cents.
    pub fn cap(self) -> f64 {
        match self {
            Self::Rate => 1000.0,
            Self::Budget | Self::Strict => 100.0,
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Self::Rate => "requests",
            Self::Budget | Self::Strict => "cost",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Rate => "/v1/policies/rate-limits",
            Self::Budget | Self::Strict => "/v1/policies/usage-limits",
        }
    }
}

impl Trouble {
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Killed => "killed",
            Self::Restarted => "restarted",
        }
    }
}

impl Policy {
    pub async fn make(sort: Sort, administrator: &Caller, workspace: Uuid) -> anyhow::Result<Self> {
        let key = format!("metadata.{}", sort.name());
        let mut body = json!({
            "name": sort.name(), "workspace_id": workspace,
            "conditions": [{ "key": key, "value": "*" }], "group_by": [{ "key": key }],
        });
        match sort {
            Sort::Rate => {
                body["type"] = json!("requests");
                body["unit"] = json!("rpm");
                body["value"] = json!(sort.cap());
            }
            Sort::Budget | Sort::Strict => {
                body["type"] = json!("cost");
                body["credit_limit"] = json!(sort.cap() / 100.0);
                body["strict"] = json!(sort == Sort::Strict);
            }
        }
        let made = made(administrator, sort.path(), &body).await?;
        Ok(Self { sort, id: made["id"].as_str().context("it has an id")?.to_owned() })
    }

    pub async fn books(&self, client: &Client, trouble: Trouble) -> anyhow::Result<Books> {
        const BOOKS: &str = "WITH logs AS (
                SELECT count(*) AS calls, coalesce(sum(cost), 0) AS cost, coalesce(max(cost), 0) AS dearest FROM request_logs
                WHERE metadata ->> $1::text = $2::text AND response_status_code NOT IN (412, 429, 503)),
            counted AS (
                SELECT coalesce(sum(value), 0) AS value FROM usage_counters
                WHERE scope = 'policy' AND left(scope_id, 36) = $3::text AND unit = $4::text
                    AND right(scope_id, length($2::text) + 1) = ':' || $2::text),
            lost AS (
                SELECT coalesce(sum(amount), 0) AS amount FROM limit_intents
                WHERE scope = 'policy' AND left(scope_id, 36) = $3::text AND unit = $4::text AND charged_at IS NOT NULL
                    AND right(scope_id, length($2::text) + 1) = ':' || $2::text)
            SELECT calls, CASE $4::text WHEN 'cost' THEN dearest ELSE 1 END::float8,
                trim_scale(CASE $4::text WHEN 'cost' THEN cost ELSE calls END + amount)::text, trim_scale(value)::text,
                amount::float8
            FROM logs, counted, lost";
        let row = client
            .query_one(BOOKS, &[&self.sort.name(), &trouble.name(), &self.id, &self.sort.unit()])
            .await
            .context("the books cannot be read")?;
        let calls: i64 = row.try_get(0)?;
        Ok(Books {
            calls: calls.cast_unsigned(),
            call: row.try_get(1)?,
            logged: row.try_get(2)?,
            counted: row.try_get(3)?,
            unconfirmed: row.try_get(4)?,
        })
    }

    /// The most that one process holds of a group, in the unit of its limit.
    pub async fn largest_lease(&self, client: &Client, trouble: Trouble) -> anyhow::Result<f64> {
        const LEASE: &str = "SELECT coalesce(max(held.amount), 0)::float8 FROM (
            SELECT sum(amount) AS amount FROM limit_leases WHERE scope = 'policy' AND left(scope_id, 36) = $1::text
                AND right(scope_id, length($2::text) + 1) = ':' || $2::text GROUP BY boot) AS held";
        Ok(client.query_one(LEASE, &[&self.id, &trouble.name()]).await?.try_get(0)?)
    }

    /// What the interface says that a group has used. None of a rate, whose window is over by then.
    pub async fn shown(&self, administrator: &Caller, trouble: Trouble) -> anyhow::Result<Option<f64>> {
        if self.sort == Sort::Rate {
            return Ok(None);
        }
        let path = format!("{}/{}/entities", self.sort.path(), self.id);
        let (status, text) = administrator.answer(administrator.request(Method::GET, &path, empty())).await?;
        ensure!(status == 200, "GET {path}: {status} {text}");
        let entities: Value = serde_json::from_str(&text)?;
        let is_this = |entity: &&Value| entity["entity_id"] == trouble.name();
        let entity = entities["data"].as_array().and_then(|data| data.iter().find(is_this));
        Ok(entity.and_then(|entity| entity["current_usage"].as_f64()))
    }
}

/// What a limit may be passed by, and what of it may be left, when more is wanted than there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub over: f64,
    pub under: f64,
}

/// `lease`: the most that one process held; `cut`: what calls may have used that nobody heard of again. A strict budget
/// bounds what the provider is paid, whatever becomes of the calls.
pub fn bounds(sort: Sort, trouble: Trouble, in_redis: bool, lease: f64, cut: f64) -> Bounds {
    let over = match (sort, trouble) {
        (Sort::Strict, _) => 0.0,
        (Sort::Rate, _) if in_redis => 0.0,
        (Sort::Rate, Trouble::Calm) => 0.0,
        (Sort::Rate, Trouble::Killed) => lease + cut,
        (Sort::Rate | Sort::Budget, _) => lease * REPLICAS as f64 + cut,
    };
    let under = sort.cap() / 100.0
        + match trouble {
            Trouble::Killed => lease + cut,
            Trouble::Calm | Trouble::Restarted => 0.0,
        };
    Bounds { over, under }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_budgets_and_redis_are_never_passed_and_leases_by_one_each() {
        use {Sort::*, Trouble::*};
        for (sort, trouble, in_redis, over, under) in [
            (Rate, Calm, false, 0.0, 10.0),
            (Rate, Killed, false, 50.0 + 2.0, 10.0 + 50.0 + 2.0),
            (Rate, Restarted, false, 152.0, 10.0),
            (Rate, Killed, true, 0.0, 62.0),
            (Rate, Restarted, true, 0.0, 10.0),
            (Strict, Restarted, false, 0.0, 1.0),
            (Strict, Killed, false, 0.0, 1.0 + 50.0 + 2.0),
            (Budget, Calm, false, 152.0, 1.0),
        ] {
            let found = bounds(sort, trouble, in_redis, 50.0, 2.0);
            assert_eq!(found, Bounds { over, under }, "{sort:?} {trouble:?} {in_redis}");
        }
    }
}
