//! The caller behind a SCIM token: an organisation's identity provider. It is no API key and opens nothing but the
//! protocol's own paths; for the audit trail and the limit of requests it counts as one caller, by the token's id.

use crate::http::ApiError;
use crate::identity::Caller;
use crate::identity::caller::AuthFailure;
use crate::identity::credential::bearer;
use axum::http::HeaderMap;
use shared::identity::api_key::KeyHash;
use shared::model::{AccessStatus, ApiKey, KeyKind};
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn authenticate(headers: &HeaderMap, db: &impl GenericClient) -> Result<Caller, AuthFailure> {
    const FIND: &str = "SELECT t.id, t.organisation_id, o.auth_settings #> '{scim,enabled}' = 'true' AS is_enabled
        FROM scim_tokens t JOIN organisations o ON o.id = t.organisation_id
        WHERE t.hash = $1 AND (t.expires_at IS NULL OR t.expires_at > now())";
    let token = bearer(headers).ok_or(ApiError::Unauthenticated("No SCIM token was sent"))?;
    let hash = KeyHash::from_key(token);
    let Some(row) = db.query_opt(FIND, &[&hash.0.as_slice()]).await? else {
        return Err(ApiError::Unauthenticated("The SCIM token is not known").into());
    };
    if !row.try_get::<_, Option<bool>>("is_enabled")?.unwrap_or(false) {
        return Err(ApiError::Forbidden("SCIM is switched off in the settings of this organisation").into());
    }
    let key = ApiKey {
        id: row.try_get::<_, Uuid>("id")?.into(),
        organisation_id: row.try_get::<_, Uuid>("organisation_id")?.into(),
        workspace_id: None,
        user_id: None,
        kind: KeyKind::OrganisationService,
        hash,
        scopes: [].into(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    };
    Ok(Caller::new(key, None))
}
