//! A new secret for a key. The one before stays good for a while, so that applications can change over one by one;
//! there are never more than two.

use super::{Key, rotation_policy};
use crate::action::{Action, Change};
use crate::app::App;
use crate::call::Call;
use crate::crud::{self, Answer, Resource as _};
use crate::error::ApiError;
use crate::http::Time;
use axum::Json;
use axum::extract::{Path, State};
use chrono::{TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::api_key::{self, KeyHash};

#[derive(Deserialize)]
struct Wish {
    key_transition_period_ms: Option<i64>,
}

pub async fn rotate(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    // The secrets are never read: the present one becomes the previous one where it lies.
    const ROTATE: &str = "UPDATE api_keys SET previous_hash = hash, previous_expires_at = $2, hash = $3, mask = $4,
            rotation_policy = $5, last_rotated_at = $6, last_updated_at = now() WHERE id = $1";
    let wish: Wish = call.body()?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<Key>(&mut action, &name, None).await?;
    let now = Utc::now();
    if current.expires_at.is_some_and(|end| end.0 <= now) {
        return Err(ApiError::invalid("The key has expired; move its end into the future first"));
    }
    if current.previous_expires_at.is_some_and(|end| end.0 > now) {
        return Err(ApiError::Conflict("The key was rotated before, and that transition is not over".into()));
    }
    let policy = current.rotation_policy.clone();
    let usual = policy.as_ref().and_then(|policy| policy["key_transition_period_ms"].as_i64());
    let period = policy.as_ref().and_then(rotation_policy::period_ms);
    let transition = rotation_policy::transition(wish.key_transition_period_ms.or(usual), period)?;
    let ends = now + TimeDelta::milliseconds(transition);
    let key = api_key::generate(&app.api_key_prefix);
    let (hash, mask) = (KeyHash::of(key.as_bytes()).0.to_vec(), api_key::mask(&key));
    let policy: Option<Value> = policy.map(|policy| rotation_policy::advanced(policy, now));
    action.tx.execute(ROTATE, &[&current.id, &ends, &hash, &mask, &policy, &now]).await?;
    let after = json!({
        "api_key_id": current.id,
        "rotation_mode": "manual",
        "old_key_masked": current.key,
        "new_key_masked": mask,
        "transition_expires_at": Time(ends),
    });
    let change = Change { resource_id: current.id.to_string(), before: Some(current.shown(&call)), after: Some(after) };
    action.commit(change).await?;
    Ok(Json(json!({ "id": current.id, "key": key, "key_transition_expires_at": Time(ends), "object": Key::OBJECT })))
}
