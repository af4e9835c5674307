//! What the logs of a key, token, workspace, provider or integration add up to, as far as its budget is charged with them. One
//! statement for all counters of a page that are of one scope.

use super::cause::Cause;
use super::counter::Counter;
use crate::log_data::charged;
use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Which of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Of the counter's period.
    Period,
    /// Shortly before it began: calls that were under way.
    Before,
    /// Rows of a provider's batches that were under way: they bear the time at which the batch began.
    BatchesBefore,
    /// Shortly after it began: proxies may not have heard of it.
    Beginning,
}

impl Span {
    pub fn bounds(self, counter: &Counter) -> (DateTime<Utc>, DateTime<Utc>) {
        let start = counter.starts_at;
        match self {
            Self::Period if counter.is_day_total() => (start, start + TimeDelta::days(1)),
            // No log is of a later time.
            Self::Period => (start, Utc::now() + TimeDelta::days(3)),
            Self::Before => (start - TimeDelta::hours(1), start),
            Self::BatchesBefore => (start - TimeDelta::hours(27), start),
            Self::Beginning => (start, start + TimeDelta::minutes(1)),
        }
    }

    pub fn condition(self) -> &'static str {
        match self {
            Self::BatchesBefore => "AND l.metadata ? '_batch_id'",
            Self::Period | Self::Before | Self::Beginning => "",
        }
    }
}

pub async fn add_up(
    db: &impl GenericClient,
    counters: &[Counter],
    span: Span,
    found: &mut [Result<Decimal, Cause>],
) -> anyhow::Result<()> {
    for (scope, is_its) in charged::SCOPES {
        for is_day_total in [false, true] {
            let chosen: Vec<usize> = (0..counters.len())
                .filter(|place| counters[*place].scope == scope && counters[*place].is_day_total() == is_day_total)
                .collect();
            if chosen.is_empty() {
                continue;
            }
            let is_of_target = matches!(scope, "provider" | "integration");
            let select = charged::sums_of_scope(is_its, is_of_target, is_day_total, span.condition());
            let keys = Keys::new(counters, &chosen, span);
            let rows = db
                .query(
                    &select,
                    &[
                        &keys.places,
                        &keys.organisations,
                        &keys.first,
                        &keys.second,
                        &keys.rest,
                        &keys.units,
                        &keys.since,
                        &keys.until,
                        &keys.since.iter().min(),
                        &keys.until.iter().max(),
                    ],
                )
                .await?;
            for row in rows {
                let place = usize::try_from(row.try_get::<_, i32>("place")?)?;
                found[place] = Ok(row.try_get("amount")?);
            }
        }
    }
    Ok(())
}

/// Counters as columns.
#[derive(Default)]
struct Keys<'c> {
    places: Vec<i32>,
    organisations: Vec<Uuid>,
    first: Vec<Option<Uuid>>,
    second: Vec<Option<Uuid>>,
    rest: Vec<Option<&'c str>>,
    units: Vec<&'c str>,
    since: Vec<DateTime<Utc>>,
    until: Vec<DateTime<Utc>>,
}

impl<'c> Keys<'c> {
    fn new(counters: &'c [Counter], chosen: &[usize], span: Span) -> Self {
        let mut keys = Self::default();
        for place in chosen {
            let counter = &counters[*place];
            let (first, rest) = counter.parts();
            let (since, until) = span.bounds(counter);
            // A page is short.
            keys.places.push(i32::try_from(*place).unwrap_or(i32::MAX));
            keys.organisations.push(counter.organisation_id);
            keys.first.push(first.parse().ok());
            // Behind the id of a token stands which of its budgets it is.
            keys.second.push(rest.and_then(|rest| rest.get(..36)).and_then(|id| id.parse().ok()));
            keys.rest.push(rest);
            keys.units.push(&counter.unit);
            keys.since.push(since);
            keys.until.push(until);
        }
        keys
    }
}
