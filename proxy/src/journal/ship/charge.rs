//! What new rows used is added to the counters of their limits and taken from the leases it was promised from, in the
//! transaction that stores them: a row that was there before adds nothing, and what is used is never counted both as
//! used and as promised.

use crate::journal::Charge;
use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Transaction};
use uuid::Uuid;

/// Rows that are charged and what each charge comes to. Only those that are new are still staged.
const CHARGED: &str = "
    unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::uuid[])
        AS k (id, scope, scope_id, unit, period, starts_at, lease)
    JOIN staged s ON s.id = k.id
    CROSS JOIN LATERAL (SELECT CASE k.unit WHEN 'requests' THEN 1 WHEN 'tokens' THEN s.req_units + s.res_units
        ELSE coalesce(s.cost, 0) END::numeric) AS used (amount)";

pub async fn charge<'c>(
    transaction: &Transaction<'_>,
    charges: impl Iterator<Item = (Uuid, Charge<'c>)>,
) -> Result<(), Error> {
    let charges: Vec<_> = charges.collect();
    if charges.is_empty() {
        return Ok(());
    }
    let rows: Vec<Uuid> = charges.iter().map(|(row, _)| *row).collect();
    let text = |of: fn(&Charge<'c>) -> &'c str| charges.iter().map(|(_, charge)| of(charge)).collect::<Vec<_>>();
    let (scopes, scope_ids) = (text(|charge| charge.sort.scope()), text(|charge| charge.scope_id));
    let (units, periods) = (text(|charge| charge.sort.unit.name()), text(|charge| charge.sort.period()));
    let time = |micros| DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    let starts: Vec<_> = charges.iter().map(|(_, charge)| time(charge.starts_at)).collect();
    let leases: Vec<_> = charges.iter().map(|(_, charge)| charge.lease).collect();
    let counters = format!(
        "INSERT INTO usage_counters AS c (organisation_id, scope, scope_id, unit, period, starts_at, value)
         SELECT s.organisation_id, k.scope, k.scope_id, k.unit, k.period, k.starts_at, sum(used.amount) FROM {CHARGED}
         GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
         ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at)
         DO UPDATE SET value = c.value + excluded.value, last_updated_at = now()"
    );
    transaction.execute(&counters, &[&rows, &scopes, &scope_ids, &units, &periods, &starts, &leases]).await?;
    // By id, as everybody locks them; a statement of its own, so that the next one sees them as they are then.
    const LOCK: &str = "SELECT FROM limit_leases WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
    transaction.execute(LOCK, &[&leases]).await?;
    let taken = format!(
        "UPDATE limit_leases l SET amount = greatest(0, l.amount - taken.amount)
         FROM (SELECT k.lease, s.organisation_id, sum(used.amount) AS amount FROM {CHARGED} GROUP BY 1, 2) AS taken
         WHERE l.id = taken.lease AND l.organisation_id = taken.organisation_id"
    );
    transaction.execute(&taken, &[&rows, &scopes, &scope_ids, &units, &periods, &starts, &leases]).await.map(drop)
}
