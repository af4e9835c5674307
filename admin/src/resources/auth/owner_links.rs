//! `POST /auth/owner-links`: an owner lets an identity provider sign them in for the first time.

use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, text};
use crate::identity::Call;
use crate::resources::login::owner_links;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct NewOwnerLink {
    issuer: String,
}

pub async fn create(State(app): State<App>, call: Call) -> Answer {
    let body: NewOwnerLink = call.body()?;
    let issuer = text::sized("issuer", body.issuer, 1..=1024)?;
    let owner = call.caller.user_id().filter(|_| call.caller.is_owner());
    let owner = owner.ok_or(ApiError::Forbidden("Only an owner of the organisation can allow this, for themselves"))?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let expires_at = owner_links::allow(&action.tx, action.organisation_id(), owner, &issuer).await?;
    let made = json!({ "object": "owner_link", "user_id": owner, "issuer": issuer, "expires_at": expires_at });
    action.commit(Change { resource_id: owner.to_string(), before: None, after: Some(made.clone()) }).await?;
    Ok(Json(made))
}
