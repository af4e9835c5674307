//! `POST /auth/backchannel-logout/{organisationId}`: an identity provider tells that somebody signed out there. Its token
//! ends the sessions that it vouched for in this organisation, and is worth nothing a second time.

use super::place;
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::ApiError;
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::identity::oidc::{OidcProvider, claims};
use crate::identity::tenancy;
use crate::resources::login::{attempts, sessions};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use serde_json::{Value, json};
use uuid::Uuid;

/// Some providers leave the type of the token at the usual one.
const TYPES: [&str; 2] = ["logout+jwt", "JWT"];

pub async fn logout(
    State(app): State<App>,
    PublicCall(origin): PublicCall,
    Path(organisation): Path<String>,
) -> Result<Response, ApiError> {
    const SETTINGS: &str = "SELECT auth_settings FROM organisations WHERE id = $1";
    let form = url::form_urlencoded::parse(&origin.body).find(|(name, _)| name == "logout_token");
    let token = form.map(|(_, token)| token.into_owned()).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| ApiError::field("logout_token", "is required, in a form"))?;
    place::allow(&app, &origin)?;
    let organisation = tenancy::id(&organisation).ok_or_else(refused)?;
    let row = app.db.get().await?.query_opt(SETTINGS, &[&organisation]).await?;
    let settings: Value = row.ok_or_else(refused)?.try_get("auth_settings")?;
    let ended = end_sessions(&app, &origin, organisation, &settings, &token).await;
    if let Err(refused) = &ended {
        audit::logout_token(&app, &origin, organisation, refused).await;
    }
    ended?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(json!({}))).into_response())
}

async fn end_sessions(
    app: &App,
    origin: &RequestOrigin,
    organisation: Uuid,
    settings: &Value,
    token: &str,
) -> Result<(), ApiError> {
    let issuer = issuer(token).ok_or_else(refused)?;
    let provider = OidcProvider::by_issuer(settings, &issuer).ok_or_else(refused)?;
    let metadata = app.oidc.metadata(&provider.issuer).await.map_err(invalid)?;
    let signed = app.oidc.signed_claims(&metadata, token, &TYPES).await.map_err(invalid)?;
    let token = claims::logout_token(&signed, &provider, Utc::now()).map_err(invalid)?;
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    if !attempts::take_once(&tx, organisation, &provider.issuer, &token.id, token.until).await? {
        return Err(ApiError::field("logout_token", "was sent before"));
    }
    let (subject, session) = (token.subject.as_deref(), token.session.as_deref());
    let ended = sessions::end_by_provider(&tx, organisation, &provider.issuer, subject, session).await?;
    let mut record = AuditRecord::for_visitor(origin, organisation);
    record.user_id = ended.first().copied();
    record.after = Some(json!({ "issuer": provider.issuer, "ended_sessions": ended.len(), "user_ids": ended }));
    audit::record(&tx, &record).await?;
    Ok(tx.commit().await?)
}

/// Who claims to have sent it: whose keys are to be asked.
fn issuer(token: &str) -> Option<String> {
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?).ok()?;
    claims["iss"].as_str().map(str::to_owned)
}

/// The same whether organisation or provider is unknown.
fn refused() -> ApiError {
    ApiError::field("logout_token", "is of no identity provider of this organisation")
}

/// 400 is what the protocol says of a token that is not accepted.
fn invalid(error: crate::identity::oidc::OidcError) -> ApiError {
    ApiError::field("logout_token", error.to_string())
}
