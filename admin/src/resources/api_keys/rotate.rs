//! A new secret for a key. The one before stays good for a while, so that applications can change over one by one;
//! there are never more than two. A secret that nobody has seen (a schedule drew it) is replaced without further ado:
//! that is how it is fetched, and no secret is ever kept or mailed for it.

use super::{ApiKeyRow, authority, rotation_policy};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource as _};
use crate::http::{ApiError, Time};
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::identity::api_key::{self, KeyHash};
use tokio_postgres::Transaction;
use uuid::Uuid;

const NOT_SHOWN: &str =
    "A key is rotated by those who hold all its scopes and whose role is not below that of its owner";

#[derive(Deserialize)]
struct Wish {
    key_transition_period_ms: Option<i64>,
}

pub async fn rotate(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const CLAIM: &str = "UPDATE api_keys SET hash = $2, mask = $3, is_unclaimed = false, last_updated_at = now()
                         WHERE id = $1";
    let wish: Wish = call.body()?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<ApiKeyRow>(&mut action, &name, None).await?;
    if current.id != call.caller.key.id.uuid() && !authority::may_hold(&action, current.power()).await? {
        return Err(ApiError::Forbidden(NOT_SHOWN));
    }
    let now = Utc::now();
    if current.expires_at.is_some_and(|end| end.0 <= now) {
        return Err(ApiError::invalid("The key has expired; move its end into the future first"));
    }
    // A secret that got out must not be good for another half hour.
    let is_at_once = wish.key_transition_period_ms == Some(0);
    let transition = match is_at_once {
        true => TimeDelta::zero(),
        false => transition(current.rotation_policy.as_ref(), wish.key_transition_period_ms)?,
    };
    let open = current.previous_expires_at.filter(|end| end.0 > now);
    let key = api_key::generate(&app.api_key_prefix);
    let fresh = NewSecret { hash: KeyHash::from_key(key.as_bytes()), mask: api_key::mask(&key), is_unclaimed: false };
    let ends = if current.is_unclaimed && !is_at_once {
        let hash = fresh.hash.0.to_vec();
        action.tx.execute(CLAIM, &[&current.id, &hash, &fresh.mask]).await?;
        open
    } else if open.is_some() && !is_at_once {
        return Err(ApiError::Conflict("The key was rotated before, and that transition is not over".into()));
    } else {
        let ends = now + transition;
        replace(&action.tx, current.id, &fresh, ends, current.rotation_policy.clone(), now).await?;
        Some(Time(ends))
    };
    let after = recorded(current.id, "manual", &current.key, &fresh.mask, ends);
    let change = Change { resource_id: current.id.to_string(), before: Some(current.shown(&call)), after: Some(after) };
    action.commit(change).await?;
    Ok(Json(json!({ "id": current.id, "key": key, "key_transition_expires_at": ends, "object": ApiKeyRow::OBJECT })))
}

/// What a rotation puts in place of a secret.
pub struct NewSecret {
    hash: KeyHash,
    mask: String,
    is_unclaimed: bool,
}

impl NewSecret {
    /// A secret that not even this process knows: its hash is drawn, not computed.
    pub fn unclaimed() -> Self {
        Self { hash: KeyHash(rand::random()), mask: "*****".into(), is_unclaimed: true }
    }

    pub fn mask(&self) -> &str {
        &self.mask
    }
}

/// Makes the present secret the previous one, which is good until `ends`, and moves the schedule on. The secrets are
/// never read: the present one becomes the previous one where it lies.
pub async fn replace(
    tx: &Transaction<'_>,
    id: Uuid,
    fresh: &NewSecret,
    ends: DateTime<Utc>,
    policy: Option<Value>,
    now: DateTime<Utc>,
) -> Result<(), tokio_postgres::Error> {
    const ROTATE: &str = "UPDATE api_keys SET previous_hash = hash, previous_expires_at = $2, hash = $3, mask = $4,
            rotation_policy = $5, last_rotated_at = $6, is_unclaimed = $7, last_updated_at = now() WHERE id = $1";
    let policy = policy.map(|policy| rotation_policy::advanced(policy, now));
    let hash = fresh.hash.0.to_vec();
    tx.execute(ROTATE, &[&id, &ends, &hash, &fresh.mask, &policy, &now, &fresh.is_unclaimed]).await.map(|_| ())
}

/// How long the present secret stays good: as asked, else as the policy says.
pub fn transition(policy: Option<&Value>, asked: Option<i64>) -> Result<TimeDelta, ApiError> {
    let usual = policy.and_then(|policy| policy["key_transition_period_ms"].as_i64());
    let period = policy.and_then(rotation_policy::period_ms);
    Ok(TimeDelta::milliseconds(rotation_policy::transition(asked.or(usual), period)?))
}

/// What the audit trail keeps of a rotation.
pub fn recorded(id: Uuid, mode: &str, old_mask: &str, new_mask: &str, ends: Option<Time>) -> Value {
    json!({
        "api_key_id": id,
        "rotation_mode": mode,
        "old_key_masked": old_mask,
        "new_key_masked": new_mask,
        "transition_expires_at": ends,
    })
}
