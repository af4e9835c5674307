//! What new rows used is added to the counters of their limits and taken from the leases it was promised from, in the
//! transaction that stores them: a row that was there before adds nothing, and what is used is never counted both as
//! used and as promised.
//!
//! The calls of a batch are mostly charged to a few counters: each of those is sent once, and for a row its place among
//! them.

use crate::journal::Charge;
use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Transaction};
use uuid::Uuid;

/// Rows that are charged and what each charge comes to. Only those that are new are still staged.
const CHARGED: &str = "
    unnest($1::uuid[], $2::integer[]) AS r (id, place)
    JOIN unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::uuid[]) WITH ORDINALITY
        AS k (scope, scope_id, unit, period, starts_at, lease, place) ON k.place = r.place
    JOIN staged s ON s.id = r.id
    CROSS JOIN LATERAL (SELECT CASE k.unit WHEN 'requests' THEN 1 WHEN 'tokens' THEN s.req_units + s.res_units
        ELSE coalesce(s.cost, 0) END::numeric) AS used (amount)";

pub async fn charge<'c>(
    transaction: &Transaction<'_>,
    charges: impl Iterator<Item = (Uuid, Charge<'c>)>,
) -> Result<(), Error> {
    let ChargedRows { rows, places, counters } = charges.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let text = |of: fn(&Charge<'c>) -> &'c str| counters.iter().map(of).collect::<Vec<_>>();
    let (scopes, scope_ids) = (text(|charge| charge.sort.scope()), text(|charge| charge.scope_id));
    let (units, periods) = (text(|charge| charge.sort.unit.name()), text(|charge| charge.sort.period()));
    let time = |micros| DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    let starts: Vec<_> = counters.iter().map(|charge| time(charge.starts_at)).collect();
    let leases: Vec<_> = counters.iter().map(|charge| charge.lease).collect();
    let add = format!(
        "INSERT INTO usage_counters AS c (organisation_id, scope, scope_id, unit, period, starts_at, value)
         SELECT s.organisation_id, k.scope, k.scope_id, k.unit, k.period, k.starts_at, sum(used.amount) FROM {CHARGED}
         GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
         ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at)
         DO UPDATE SET value = c.value + excluded.value, last_updated_at = now()"
    );
    let values: [&(dyn ToSql + Sync); 8] = [&rows, &places, &scopes, &scope_ids, &units, &periods, &starts, &leases];
    transaction.execute(&add, &values).await?;
    // By id, as everybody locks them; a statement of its own, so that the next one sees them as they are then.
    const LOCK: &str = "SELECT FROM limit_leases WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
    transaction.execute(LOCK, &[&leases]).await?;
    let take = format!(
        "UPDATE limit_leases l SET amount = greatest(0, l.amount - taken.amount)
         FROM (SELECT k.lease, s.organisation_id, sum(used.amount) AS amount FROM {CHARGED} GROUP BY 1, 2) AS taken
         WHERE l.id = taken.lease AND l.organisation_id = taken.organisation_id"
    );
    transaction.execute(&take, &values).await.map(drop)
}

/// Rows, for each what it is charged to by its place, and what they are charged to.
#[derive(Debug, Default, PartialEq, Eq)]
struct ChargedRows<'c> {
    rows: Vec<Uuid>,
    /// The first has the number 1.
    places: Vec<i32>,
    counters: Vec<Charge<'c>>,
}

impl<'c> FromIterator<(Uuid, Charge<'c>)> for ChargedRows<'c> {
    fn from_iter<I: IntoIterator<Item = (Uuid, Charge<'c>)>>(charges: I) -> Self {
        let mut known: HashMap<Charge<'c>, i32, RandomState> = HashMap::default();
        let mut charged = Self::default();
        for (row, charge) in charges {
            let place = *known.entry(charge).or_insert_with(|| {
                charged.counters.push(charge);
                // A batch has some thousand rows with a handful of charges each.
                i32::try_from(charged.counters.len()).unwrap_or(i32::MAX)
            });
            charged.rows.push(row);
            charged.places.push(place);
        }
        charged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CounterKind;

    #[test]
    fn rows_that_are_charged_alike_share_what_they_are_charged_to() {
        let charge = |scope_id, starts_at, lease: Option<u128>| Charge {
            sort: CounterKind::from_words("policy", "cost", "total").unwrap(),
            scope_id,
            starts_at,
            lease: lease.map(Uuid::from_u128),
        };
        let others = [charge("b", 1, None), charge("a", 2, None), charge("a", 1, Some(7))];
        let charges = [charge("a", 1, None), charge("a", 1, None)].into_iter().chain(others).chain(others);
        let charged: ChargedRows<'_> = (1_u128..).map(Uuid::from_u128).zip(charges).collect();
        assert_eq!(charged.rows, (1..=8).map(Uuid::from_u128).collect::<Vec<_>>());
        assert_eq!(charged.places, [1, 1, 2, 3, 4, 2, 3, 4]);
        assert_eq!(charged.counters, [charge("a", 1, None), others[0], others[1], others[2]]);
    }
}
