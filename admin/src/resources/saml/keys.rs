//! `/admin/saml-keys`: our certificates for the organisation's identity provider, and the change from one to the next
//! without a gap. A new key is published first; once the identity provider knows its certificate, it signs; and the one
//! before is forgotten when nothing is encrypted for it any more.

use super::service_key::{self, StoredKey, StoredKeys};
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::ApiError;
use crate::identity::Call;
use crate::saml::key::{certificate_pem, fingerprint};
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn list(State(app): State<App>, call: Call) -> Answer {
    let db = app.db.get().await?;
    Ok(Json(listed(&*db, call.caller.organisation_id()).await?))
}

/// The first one signs at once; any other stands by until it is activated.
pub async fn create(State(app): State<App>, call: Call) -> Answer {
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let before = listed(&action.tx, action.organisation_id()).await?;
    match service_key::stored(&action.tx, action.organisation_id(), "FOR UPDATE").await? {
        None => service_key::first(&action).await?,
        Some(StoredKeys { standby: Some(_), .. }) => {
            return Err(ApiError::Conflict("A second key is there already; activate or delete it first".into()));
        }
        Some(stored) => service_key::stand_by(&action, &stored).await?,
    }
    done(action, before).await
}

pub async fn activate(State(app): State<App>, call: Call) -> Answer {
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let before = listed(&action.tx, action.organisation_id()).await?;
    let stored = service_key::stored(&action.tx, action.organisation_id(), "FOR UPDATE").await?.ok_or_else(missing)?;
    let standby = stored.standby.as_ref().ok_or_else(missing)?;
    service_key::change_places(&action, &stored, standby).await?;
    done(action, before).await
}

pub async fn forget(State(app): State<App>, call: Call) -> Answer {
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let before = listed(&action.tx, action.organisation_id()).await?;
    let stored = service_key::stored(&action.tx, action.organisation_id(), "FOR UPDATE").await?;
    if stored.is_none_or(|stored| stored.standby.is_none()) {
        return Err(missing());
    }
    service_key::forget_standby(&action).await?;
    done(action, before).await.map(drop)?;
    Ok(Json(json!({})))
}

fn missing() -> ApiError {
    ApiError::NotFound("second SAML key of this organisation")
}

async fn done(action: Action<'_>, before: Value) -> Answer {
    let organisation = action.organisation_id();
    let after = listed(&action.tx, organisation).await?;
    let change = Change { resource_id: organisation.to_string(), before: Some(before), after: Some(after.clone()) };
    action.commit(change).await?;
    Ok(Json(after))
}

async fn listed(db: &impl GenericClient, organisation: Uuid) -> Result<Value, ApiError> {
    let stored = service_key::stored(db, organisation, "").await?;
    let mut keys = Vec::new();
    if let Some(StoredKeys { active, standby, .. }) = &stored {
        keys.push(shown("active", active)?);
        if let Some(standby) = standby {
            keys.push(shown("standby", standby)?);
        }
    }
    Ok(json!({ "object": "list", "total": keys.len(), "data": keys }))
}

fn shown(status: &str, key: &StoredKey) -> Result<Value, ApiError> {
    Ok(json!({
        "object": "saml_key",
        "status": status,
        "certificate": certificate_pem(&key.certificate).map_err(|_| ApiError::Internal)?,
        "fingerprint": fingerprint(&key.certificate),
        "since": key.since,
    }))
}
