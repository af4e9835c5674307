//! Signing in by SAML: our metadata for the identity provider, the way there, and the way back. What is said in between
//! is judged in `crate::saml`, and who comes back becomes a person with a session in `auth::finish`, as with OIDC.

mod consume;
mod docs;
mod keys;
mod login;
pub mod service_key;

use crate::app::App;
use crate::crud::Routes;
use crate::http::ApiError;
use crate::identity::tenancy;
use crate::saml::SamlSettings;
use crate::saml::message::ServiceProvider;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .get("/auth/saml/{organisationId}/metadata", metadata)
        .get("/auth/saml/{organisationId}/login", login::login)
        .post("/auth/saml/{organisationId}/acs", consume::consume)
        .get("/admin/saml-keys", keys::list)
        .post("/admin/saml-keys", keys::create)
        .post("/admin/saml-keys/activate", keys::activate)
        .delete("/admin/saml-keys/standby", keys::forget)
        .describe(docs::docs())
}

/// Who we are to the identity provider of an organisation. Each organisation has names of its own: an answer that was
/// meant for one is for no other.
fn ourselves(app: &App, organisation: Uuid) -> ServiceProvider {
    let base = format!("{}/v1/auth/saml/{organisation}", app.public_url);
    ServiceProvider { entity_id: format!("{base}/metadata"), consumer_url: format!("{base}/acs") }
}

fn settings_in(auth_settings: &Value) -> Option<SamlSettings> {
    let saml = auth_settings.get("saml").filter(|saml| saml.is_object())?;
    serde_json::from_value(saml.clone()).ok()
}

async fn settings_of(db: &impl GenericClient, organisation: Uuid) -> Result<Option<SamlSettings>, ApiError> {
    const SETTINGS: &str = "SELECT auth_settings FROM organisations WHERE id = $1";
    let row = db.query_opt(SETTINGS, &[&organisation]).await?.ok_or(ApiError::NotFound("organisation"))?;
    Ok(settings_in(&row.try_get("auth_settings")?))
}

/// There before SAML is set up: the identity provider wants to know us first.
async fn metadata(State(app): State<App>, Path(organisation): Path<String>) -> Result<Response, ApiError> {
    let organisation = tenancy::id(&organisation).ok_or(ApiError::NotFound("organisation"))?;
    let db = app.db.get().await?;
    let settings = settings_of(&*db, organisation).await?.unwrap_or_default();
    let keys = service_key::load(&app, &*db, organisation).await?;
    let xml = ourselves(&app, organisation).metadata(&keys, settings.sign_requests == Some(true));
    Ok(([(header::CONTENT_TYPE, "application/samlmetadata+xml")], xml).into_response())
}
