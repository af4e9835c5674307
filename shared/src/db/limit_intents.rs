//! What becomes of the promises of a proxy that is gone. Both services use it: the proxy that finds the dead one's journal,
//! and the operator who says that it will never come.

use tokio_postgres::{Error, Transaction};
use uuid::Uuid;

/// Charges what a process had promised to calls that nobody has a log of, before its leases go back. Answers how many
/// charges those were. A call whose last log is stored is over, in whichever order the files of the journal came.
pub async fn charge_lost(transaction: &Transaction<'_>, boot: Uuid) -> Result<u64, Error> {
    // Whoever else does the same waits here, and finds nothing left to charge.
    const LOCK: &str = "SELECT FROM limit_intents WHERE boot = $1 AND charged_at IS NULL
        ORDER BY request_id, attempt, scope, scope_id, unit, period FOR UPDATE";
    const OVER: &str = "DELETE FROM limit_intents i WHERE i.boot = $1 AND i.charged_at IS NULL
        AND EXISTS (SELECT FROM request_logs l WHERE l.created_at = i.created_at AND l.id = i.request_id)";
    const CHARGE: &str = "
        INSERT INTO usage_counters AS c (organisation_id, scope, scope_id, unit, period, starts_at, value)
        SELECT organisation_id, scope, scope_id, unit, period, starts_at, sum(amount) FROM limit_intents
        WHERE boot = $1 AND charged_at IS NULL GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at)
        DO UPDATE SET value = c.value + excluded.value, last_updated_at = now()";
    const CHARGED: &str = "UPDATE limit_intents SET charged_at = now() WHERE boot = $1 AND charged_at IS NULL";
    if transaction.execute(LOCK, &[&boot]).await? == 0 {
        return Ok(0);
    }
    transaction.execute(OVER, &[&boot]).await?;
    transaction.execute(CHARGE, &[&boot]).await?;
    transaction.execute(CHARGED, &[&boot]).await
}
