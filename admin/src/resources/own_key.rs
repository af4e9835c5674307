//! `GET /api-keys/self`: what the calling key is and may do. Any key may ask; it learns nothing it does not hold.

use crate::app::App;
use crate::http::{ApiError, Time};
use crate::identity::Call;
use crate::limits::UsageLimits;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use shared::identity::jwt::VerifiedToken;
use tokio_postgres::Row;

pub async fn describe(State(app): State<App>, call: Call) -> Result<Json<Value>, ApiError> {
    const DESCRIBE: &str =
        "SELECT k.name, k.description, k.mask, k.status, k.rate_limits, k.usage_limits, k.expires_at,
                                   k.last_reset_at, k.created_at, k.last_updated_at, w.slug AS workspace_slug,
                                   budget_used(k.organisation_id, 'api_key', k.id::text, k.usage_limits) AS used,
            budget_unconfirmed(k.organisation_id, 'api_key', k.id::text, k.usage_limits) AS unconfirmed
                            FROM api_keys k LEFT JOIN workspaces w ON w.id = k.workspace_id
                            WHERE k.id = $1 AND k.organisation_id = $2";
    if let Some(token) = &call.caller.token {
        return Ok(Json(described(&call, token)));
    }
    if call.caller.session.is_some() {
        return Ok(Json(described_session(&call)));
    }
    let db = app.db.get().await?;
    let row = db.query_one(DESCRIBE, &[&call.caller.key.id, &call.caller.organisation_id()]).await?;
    Ok(Json(description(&call, &row)?))
}

fn description(call: &Call, row: &Row) -> Result<Value, tokio_postgres::Error> {
    let key = &call.caller.key;
    let limits: Option<Value> = row.try_get("usage_limits")?;
    let (used, unconfirmed) = (row.try_get("used")?, row.try_get("unconfirmed")?);
    let limits = limits.and_then(|stored| UsageLimits::from_stored(&stored, used));
    let limits = limits.map(|limits| limits.with_unconfirmed(unconfirmed));
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
        "usage_limits": limits.map(|limits| limits.shown()),
        "expires_at": row.try_get::<_, Option<Time>>("expires_at")?,
        "last_reset_at": row.try_get::<_, Option<Time>>("last_reset_at")?,
        "created_at": row.try_get::<_, Time>("created_at")?,
        "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
    }))
}

/// A token is stored nowhere: what it says of itself is all there is.
fn described(call: &Call, token: &VerifiedToken) -> Value {
    let key = &call.caller.key;
    json!({
        "object": "api-key",
        "id": key.id,
        "name": token.person,
        "type": key.kind.as_str(),
        "organisation_id": key.organisation_id,
        "workspace_id": key.workspace_id,
        "workspace_slug": token.workspace,
        "user_id": key.user_id,
        "status": key.status,
        "scopes": call.caller.scopes,
        "expires_at": Time(token.expires_at),
    })
}

/// A session stands for a key that is stored nowhere; `GET /auth/session` tells the rest.
fn described_session(call: &Call) -> Value {
    let key = &call.caller.key;
    json!({
        "object": "api-key",
        "id": key.id,
        "name": "Session",
        "type": key.kind.as_str(),
        "organisation_id": key.organisation_id,
        "workspace_id": key.workspace_id,
        "user_id": key.user_id,
        "status": key.status,
        "scopes": call.caller.scopes,
    })
}
