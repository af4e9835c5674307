//! `GET /auth/methods`: how people of a mail domain sign in, for the page that asks them. The domain alone decides: who
//! asks learns nothing about a person, and of an organisation only what `GET /auth/login` tells anybody.

use super::place;
use crate::app::App;
use crate::http::{ApiError, text};
use crate::identity::call::PublicCall;
use crate::identity::oidc::OidcProvider;
use crate::resources::login::{LoginProvider, domains};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio_postgres::GenericClient;

pub async fn list(State(app): State<App>, PublicCall(origin): PublicCall) -> Result<Response, ApiError> {
    let email = origin.query.text("email").ok_or_else(|| ApiError::field("email", "is required"))?;
    let email = text::email("email", email)?;
    place::allow(&app, &origin)?;
    let settings = settings_for(&*app.db.get().await?, &email).await?;
    let methods = methods(&settings, domains::domain_of(&email).as_deref(), app.mail.has_server());
    let methods: Vec<_> = methods.into_iter().map(LoginProvider::as_str).collect();
    let shown = json!({ "object": "sign_in_methods", "methods": methods, "public_url": app.public_url });
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(shown)).into_response())
}

/// The auth settings of the organisation that proved the domain; null where nobody did.
async fn settings_for(db: &impl GenericClient, email: &str) -> Result<Value, ApiError> {
    const SETTINGS: &str = "SELECT auth_settings FROM organisations WHERE id = $1";
    let Some(organisation) = domains::owner(db, email).await? else { return Ok(Value::Null) };
    Ok(db.query_one(SETTINGS, &[&organisation]).await?.try_get("auth_settings")?)
}

/// The identity provider that `GET /auth/login` leads to, then the link that `POST /auth/link` mails.
fn methods(settings: &Value, domain: Option<&str>, has_mail: bool) -> Vec<LoginProvider> {
    let provider = match OidcProvider::for_domain(settings, domain) {
        Some(_) => Some(LoginProvider::Oidc),
        None => settings["saml"].is_object().then_some(LoginProvider::Saml),
    };
    let may_mail = has_mail && settings["disable_login_links"] != true;
    provider.into_iter().chain(may_mail.then_some(LoginProvider::Link)).collect()
}

#[cfg(test)]
mod tests {
    use super::LoginProvider::{Link, Oidc, Saml};
    use super::*;

    #[test]
    fn a_domain_signs_in_as_its_organisation_has_set_up() {
        let oidc = json!({ "issuer": "https://all.test", "client_id": "c" });
        let others = json!([{ "issuer": "https://eu.test", "client_id": "d", "domains": ["eu.acme.test"] }]);
        let saml = json!({ "entity_id": "https://idp.test" });
        for (settings, domain, has_mail, expected) in [
            (Value::Null, "acme.test", true, &[Link][..]),
            (Value::Null, "acme.test", false, &[]),
            (json!({ "oidc": oidc }), "acme.test", true, &[Oidc, Link]),
            (json!({ "oidc": oidc, "saml": saml }), "acme.test", true, &[Oidc, Link]),
            (json!({ "saml": saml, "disable_login_links": true }), "acme.test", true, &[Saml]),
            (json!({ "saml": saml, "oidc_providers": others }), "acme.test", false, &[Saml]),
            (json!({ "saml": saml, "oidc_providers": others }), "eu.acme.test", false, &[Oidc]),
        ] {
            assert_eq!(methods(&settings, Some(domain), has_mail), expected, "{settings} {domain}");
        }
    }
}
