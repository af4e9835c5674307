//! Who is asking: the credential looked up in the database, or a 401 that says why not.

use crate::credential::Credential;
use crate::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use shared::api_key::KeyHash;
use shared::model::ApiKey;
use std::sync::Arc;
use tokio_postgres::GenericClient;

/// An authenticated caller. Handlers take it as an argument; `gate` has put it there.
#[derive(Debug, Clone)]
pub struct Caller {
    pub key: Arc<ApiKey>,
}

/// Finds the caller; refuses what is unknown, archived, expired or belongs to an archived workspace.
pub async fn authenticate(
    credential: Credential<'_>,
    db: &impl GenericClient,
    now: DateTime<Utc>,
) -> Result<Caller, ApiError> {
    const FIND: &str = "SELECT k.id, k.organisation_id, k.workspace_id, k.user_id, k.kind, k.hash, k.scopes, k.status,
                               k.expires_at, w.status AS workspace_status
                        FROM api_keys k LEFT JOIN workspaces w ON w.id = k.workspace_id
                        WHERE k.hash = $1";
    let Credential::ApiKey(key) = credential else {
        return Err(ApiError::Unauthenticated("JWT rejected: no organisation accepts tokens yet"));
    };
    let hash = KeyHash::of(key);
    let Some(row) = db.query_opt(FIND, &[&hash.0.as_slice()]).await? else {
        return Err(ApiError::Unauthenticated("The API key is not known"));
    };
    let workspace: Option<&str> = row.try_get("workspace_status")?;
    let key = ApiKey::from_row(&row)?;
    match refusal(&key, workspace, now) {
        Some(reason) => Err(ApiError::Unauthenticated(reason)),
        None => Ok(Caller { key: Arc::new(key) }),
    }
}

/// Why a known key may not be used. An exhausted key still manages: only inference is refused to it.
fn refusal(key: &ApiKey, workspace_status: Option<&str>, now: DateTime<Utc>) -> Option<&'static str> {
    if key.status == "archived" {
        return Some("The API key is archived");
    }
    if key.is_expired(now) {
        return Some("The API key has expired");
    }
    if key.workspace_id.is_some() && workspace_status != Some("active") {
        return Some("The workspace of this API key is archived");
    }
    None
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or(ApiError::Unauthenticated("No valid credential was sent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use shared::model::KeyKind;
    use uuid::Uuid;

    #[test]
    fn only_live_keys_of_live_workspaces_are_callers() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let (past, future) = (now - TimeDelta::seconds(1), now + TimeDelta::seconds(1));
        let workspace = Some(Uuid::nil());
        for (status, expires_at, workspace_id, workspace_status, accepted) in [
            ("active", None, None, None, true),
            ("exhausted", None, None, None, true),
            ("archived", None, None, None, false),
            ("expired", None, None, None, false),
            ("active", Some(past), None, None, false),
            ("active", Some(now), None, None, false),
            ("active", Some(future), None, None, true),
            ("active", None, workspace, Some("active"), true),
            ("active", None, workspace, Some("archived"), false),
            ("active", None, workspace, None, false),
        ] {
            let key = ApiKey {
                id: Uuid::nil(),
                organisation_id: Uuid::nil(),
                workspace_id,
                user_id: None,
                kind: KeyKind::OrganisationService,
                hash: KeyHash([0; 32]),
                scopes: vec![],
                status: status.into(),
                expires_at,
            };
            let refused = refusal(&key, workspace_status, now);
            assert_eq!(refused.is_none(), accepted, "{status} {expires_at:?} {workspace_status:?}: {refused:?}");
        }
    }
}
