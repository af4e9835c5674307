//! `/admin/users/{userId}/sessions`: an administrator sees where somebody is signed in, and signs them out everywhere,
//! without removing them.

use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::ApiError;
use crate::identity::{Call, tenancy};
use crate::resources::api_keys::authority;
use crate::resources::login::sessions;
use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn list(State(app): State<App>, call: Call, Path(user): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let organisation = call.caller.organisation_id();
    let user = person(&*db, organisation, &user).await?;
    let current = call.caller.session.as_ref().map_or(Uuid::nil(), |session| session.id);
    let all = sessions::list(&*db, organisation, user, current).await?;
    Ok(Json(json!({ "object": "list", "total": all.len(), "data": all })))
}

/// Links that were mailed to them end too.
pub async fn end_all(State(app): State<App>, call: Call, Path(user): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let organisation = action.organisation_id();
    let user = person(&action.tx, organisation, &user).await?;
    let theirs = authority::standing(&action, user, None).await?;
    if !authority::has_rank_over(&call.caller, user, &theirs) {
        return Err(ApiError::Forbidden("An owner is signed out by owners, and by organisation keys"));
    }
    let ended = json!({ "ended_sessions": sessions::end_all(&action.tx, organisation, user).await? });
    let change = Change { resource_id: user.to_string(), before: None, after: Some(ended.clone()) };
    action.commit(change).await?;
    Ok(Json(ended))
}

async fn person(db: &impl GenericClient, organisation: Uuid, user: &str) -> Result<Uuid, ApiError> {
    const FIND: &str = "SELECT id FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active'";
    let missing = || ApiError::NotFound("user");
    let user = tenancy::id(user).ok_or_else(missing)?;
    crud::id_of(&db.query_opt(FIND, &[&user, &organisation]).await?.ok_or_else(missing)?)
}
