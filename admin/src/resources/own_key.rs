//! `GET /api-keys/self`: what the calling key is and may do. Any key may ask; it learns nothing it does not hold.

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tokio_postgres::Row;

pub async fn describe(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    const DESCRIBE: &str =
        "SELECT k.name, k.description, k.mask, k.status, k.rate_limits, k.usage_limits, k.expires_at,
                                   k.last_reset_at, k.created_at, k.last_updated_at, w.slug AS workspace_slug
                            FROM api_keys k LEFT JOIN workspaces w ON w.id = k.workspace_id
                            WHERE k.id = $1 AND k.organisation_id = $2";
    let db = app.db.get().await?;
    let row = db.query_one(DESCRIBE, &[&caller.key.id, &caller.key.organisation_id]).await?;
    Ok(Json(description(&caller, &row)?))
}

fn description(caller: &Caller, row: &Row) -> Result<Value, tokio_postgres::Error> {
    let key = &caller.key;
    Ok(json!({
        "object": "api-key",
        "id": key.id,
        "name": row.try_get::<_, &str>("name")?,
        "description": row.try_get::<_, Option<&str>>("description")?,
        "key": row.try_get::<_, &str>("mask")?,
        "type": key.kind.as_str(),
        "organisation_id": key.organisation_id,
        "workspace_id": key.workspace_id,
        "workspace_slug": row.try_get::<_, Option<&str>>("workspace_slug")?,
        "user_id": key.user_id,
        "status": row.try_get::<_, &str>("status")?,
        "scopes": key.scopes,
        "rate_limits": row.try_get::<_, Value>("rate_limits")?,
        "usage_limits": row.try_get::<_, Option<Value>>("usage_limits")?,
        "expires_at": row.try_get::<_, Option<DateTime<Utc>>>("expires_at")?.map(rfc3339),
        "last_reset_at": row.try_get::<_, Option<DateTime<Utc>>>("last_reset_at")?.map(rfc3339),
        "created_at": rfc3339(row.try_get("created_at")?),
        "last_updated_at": rfc3339(row.try_get("last_updated_at")?),
    }))
}

/// Milliseconds and `Z`: one client decodes times strictly.
fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_milliseconds_and_a_z() {
        let time = DateTime::from_timestamp(1_768_473_000, 0).unwrap();
        assert_eq!(rfc3339(time), "2026-01-15T10:30:00.000Z");
    }
}
