//! Setting one group of a usage-limits policy back to zero: its counter begins anew, and its alerts may be sent again.
//! Calls that began before still settle on the old counter.

use super::usage::UsagePolicy;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::ApiError;
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

const ENTITY: &str = "policy entity";

#[derive(Deserialize)]
struct Reset {
    entity_id: String,
}

pub async fn by_path(State(app): State<App>, call: Call, Path((id, entity)): Path<(String, String)>) -> Answer {
    one(&app, &call, &id, &entity).await?;
    Ok(Json(json!({})))
}

/// As one client asks for it.
pub async fn by_body(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let Reset { entity_id } = call.body()?;
    one(&app, &call, &id, &entity_id).await?;
    Ok(Json(json!({ "success": true })))
}

async fn one(app: &App, call: &Call, id: &str, entity: &str) -> Result<(), ApiError> {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, app, call).await?;
    let policy = crud::held::<UsagePolicy>(&mut action, id, None).await?;
    let value_key = value(&action, &policy, entity).await?;
    let after = Some(json!({ "value_key": value_key, "current_usage": 0 }));
    action.commit(Change { resource_id: policy.id.to_string(), before: None, after }).await
}

/// Resets the group of this id, value key or, where groups have one value, this value. Says which it was.
pub async fn value(action: &Action<'_>, policy: &UsagePolicy, name: &str) -> Result<String, ApiError> {
    const FIND: &str = "SELECT value_key FROM policy_entities
            WHERE policy_id = $1 AND organisation_id = $2 AND (id = $3 OR value_key = ANY ($4))
        UNION SELECT substr(scope_id, 38) FROM usage_counters
            WHERE scope = 'policy' AND left(scope_id, 36) = $1::uuid::text AND organisation_id = $2 AND period = 'total'
              AND (md5(scope_id)::uuid = $3 OR substr(scope_id, 38) = ANY ($4))
        LIMIT 1";
    const RESET: &str = "INSERT INTO policy_entities (id, organisation_id, policy_id, value_key, last_reset_at)
        VALUES (md5($2::uuid || '/' || $3::text)::uuid, $1, $2, $3, date_trunc('milliseconds', clock_timestamp()))
        ON CONFLICT (policy_id, value_key) DO UPDATE SET last_reset_at = excluded.last_reset_at, status = 'active',
            is_threshold_alerts_sent = false, is_exhausted_alerts_sent = false";
    let mut names = vec![name.to_owned()];
    if let Some([only]) = policy.group_by.as_array().map(Vec::as_slice) {
        names.push(format!("{}:{name}", only["key"].as_str().unwrap_or_default()));
    }
    let organisation = policy.organisation_id;
    let found = action.tx.query_opt(FIND, &[&policy.id, &organisation, &tenancy::id(name), &names]).await?;
    let value_key: String = found.ok_or(ApiError::NotFound(ENTITY))?.try_get("value_key")?;
    action.tx.execute(RESET, &[&organisation, &policy.id, &value_key]).await?;
    Ok(value_key)
}

/// What was remembered of a policy's groups.
pub async fn forget(db: &impl GenericClient, organisation: Uuid, policy: Uuid) -> Result<(), Error> {
    const FORGET: &str = "DELETE FROM policy_entities WHERE policy_id = $1 AND organisation_id = $2";
    db.execute(FORGET, &[&policy, &organisation]).await.map(|_| ())
}
