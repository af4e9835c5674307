//! Whether a policy matches anything at all, as its counters tell. One that never does is most likely a mistake, and
//! nobody would notice: nothing is refused.

use crate::http::Time;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

/// Silence of this length is reported.
const SILENCE: TimeDelta = TimeDelta::hours(24);

type Last = Option<DateTime<Utc>>;

/// Of a policy that counts in windows: the newest one tells.
pub async fn in_windows(
    db: &impl GenericClient,
    organisation: Uuid,
    policy: Uuid,
    period: &str,
) -> Result<Last, Error> {
    const LAST: &str = "SELECT max(last_updated_at) FROM usage_counters c
        WHERE scope = 'policy' AND left(scope_id, 36) = $1 AND organisation_id = $2 AND period = $3
          AND starts_at = (SELECT max(starts_at) FROM usage_counters
                           WHERE scope = 'policy' AND left(scope_id, 36) = $1 AND organisation_id = $2 AND period = $3)";
    db.query_one(LAST, &[&policy.to_string(), &organisation, &period]).await?.try_get(0)
}

/// Of a policy that counts from reset to reset.
pub async fn in_all(db: &impl GenericClient, organisation: Uuid, policy: Uuid) -> Result<Last, Error> {
    const LAST: &str = "SELECT max(last_updated_at) FROM usage_counters
        WHERE scope = 'policy' AND left(scope_id, 36) = $1 AND organisation_id = $2 AND period = 'total'";
    db.query_one(LAST, &[&policy.to_string(), &organisation]).await?.try_get(0)
}

pub fn show(shown: &mut Value, last: Last, created_at: DateTime<Utc>, now: DateTime<Utc>) {
    shown["last_matched_at"] = json!(last.map(Time));
    shown["unmatched"] = (now - last.unwrap_or(created_at) >= SILENCE).into();
}

/// The counters of a policy that is gone.
pub async fn forget(db: &impl GenericClient, organisation: Uuid, policy: Uuid) -> Result<(), Error> {
    // Held in the order in which proxies settle them, so that neither waits for the other for ever.
    const FORGET: &str = "WITH held AS (SELECT ctid AS place FROM usage_counters
            WHERE scope = 'policy' AND left(scope_id, 36) = $1 AND organisation_id = $2
            ORDER BY organisation_id, scope, scope_id, unit, period, starts_at FOR UPDATE)
        DELETE FROM usage_counters c USING held WHERE c.ctid = held.place";
    db.execute(FORGET, &[&policy.to_string(), &organisation]).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_of_a_day_is_reported() {
        let now: DateTime<Utc> = "2026-01-15T10:30:00Z".parse().unwrap();
        let ago = |hours| now - TimeDelta::hours(hours);
        for (last, created, expected) in [
            (None, ago(1), false),
            (None, ago(24), true),
            (Some(ago(23)), ago(100), false),
            (Some(ago(25)), ago(100), true),
        ] {
            let mut shown = json!({});
            show(&mut shown, last, created, now);
            assert_eq!(shown["unmatched"], expected, "{last:?} {created}");
        }
    }
}
