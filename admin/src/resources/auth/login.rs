//! `GET /auth/login`: sends the browser to the identity provider of the organisation, found by its id or by the domain of
//! an e-mail address. What comes back is `callback`'s.

use super::finish::redirect;
use super::{begun, place, refused};
use crate::app::App;
use crate::http::{ApiError, text};
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::identity::cookies::{Cookie, SameSite};
use crate::identity::oidc::discovery::Metadata;
use crate::identity::oidc::{OidcError, OidcProvider};
use crate::resources::login::attempts;
use crate::resources::login::attempts::NewAttempt;
use crate::resources::login::{LoginProvider, domains};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use shared::identity::api_key;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// As long as an attempt lasts.
const COOKIE_SECONDS: u32 = attempts::MINUTES.unsigned_abs() * 60;

pub async fn login(State(app): State<App>, PublicCall(origin): PublicCall) -> Result<Response, ApiError> {
    let return_to = place::return_to(origin.query.text("return_to"))?;
    let begun = begin(&app, &origin, &return_to).await;
    Ok(begun.unwrap_or_else(|refused| refused::answer(&return_to, refused, None)))
}

async fn begin(app: &App, origin: &RequestOrigin, return_to: &str) -> Result<Response, ApiError> {
    let query = &origin.query;
    let email = query.text("email").map(|email| text::email("email", email)).transpose()?;
    let organisation = query.uuid("organisation")?;
    if email.is_none() && organisation.is_none() {
        return Err(ApiError::field("email", "is required, or organisation"));
    }
    place::allow(app, origin)?;
    let (organisation, settings) = whose(&*app.db.get().await?, email.as_deref(), organisation).await?;
    let domain = email.as_deref().and_then(domains::domain_of);
    let Some(provider) = OidcProvider::for_domain(&settings, domain.as_deref()) else {
        let by_saml = saml_login(organisation, &settings, return_to).ok_or_else(nobodys)?;
        return Ok(redirect(&by_saml, []));
    };
    let metadata = match app.oidc.metadata(&provider.issuer).await {
        Ok(metadata) => metadata,
        Err(error) => return Err(begun::recorded(app, origin, Some(organisation), error.into()).await),
    };
    let browser = app.cookies.sent(&origin.headers, Cookie::Login).map_or_else(|| api_key::generate(""), str::to_owned);
    let attempt = NewAttempt {
        organisation_id: organisation,
        provider: LoginProvider::Oidc,
        issuer: &provider.issuer,
        return_to,
        browser: &browser,
        network: place::network(origin.seen.client_ip),
    };
    let state = attempts::begin(&*app.db.get().await?, attempt).await?;
    let asked = AuthorizationRequest {
        metadata: &metadata,
        client_id: &provider.client_id,
        redirect_uri: &callback_url(app, organisation),
        scope: &provider.asked_scopes(&app.oidc.custom_scopes),
        state: &state,
        nonce: &attempts::derived("nonce", &browser, &state),
        verifier: &attempts::derived("verifier", &browser, &state),
        email: email.as_deref(),
    };
    let cookie = app.cookies.set(Cookie::Login, &browser, SameSite::Lax, Some(COOKIE_SECONDS));
    Ok(redirect(&asked.url()?, [cookie]))
}

/// Where the provider sends people back. It names the organisation: with one address for all, a provider of one
/// organisation could pass off another's answer as its own (mix-up).
pub fn callback_url(app: &App, organisation: Uuid) -> String {
    format!("{}/v1/auth/callback/{organisation}", app.public_url)
}

/// Where a login begins in an organisation that signs in by SAML.
fn saml_login(organisation: Uuid, settings: &Value, return_to: &str) -> Option<String> {
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("return_to", return_to).finish();
    settings["saml"].is_object().then(|| format!("/v1/auth/saml/{organisation}/login?{query}"))
}

/// The same for every address and organisation that cannot sign in this way.
fn nobodys() -> ApiError {
    ApiError::NotFound("sign-in: ask for a link by mail (POST /v1/auth/link), or an administrator for the settings")
}

/// The organisation that somebody signs in to, with its auth settings.
async fn whose(
    db: &impl GenericClient,
    email: Option<&str>,
    organisation: Option<Uuid>,
) -> Result<(Uuid, Value), ApiError> {
    const SETTINGS: &str = "SELECT auth_settings FROM organisations WHERE id = $1";
    let organisation = match (organisation, email) {
        (Some(id), _) => Some(id),
        (None, Some(email)) => domains::owner(db, email).await?,
        (None, None) => None,
    };
    let Some(organisation) = organisation else { return Err(nobodys()) };
    let row = db.query_opt(SETTINGS, &[&organisation]).await?.ok_or_else(nobodys)?;
    Ok((organisation, row.try_get("auth_settings")?))
}

struct AuthorizationRequest<'a> {
    metadata: &'a Metadata,
    client_id: &'a str,
    redirect_uri: &'a str,
    scope: &'a str,
    state: &'a str,
    nonce: &'a str,
    verifier: &'a str,
    email: Option<&'a str>,
}

impl AuthorizationRequest<'_> {
    fn url(&self) -> Result<String, ApiError> {
        let url = url::Url::parse(&self.metadata.authorization_endpoint);
        let mut url = url.map_err(|_| OidcError::Metadata("an endpoint is no URL"))?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client_id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("scope", self.scope)
            .append_pair("state", self.state)
            .append_pair("nonce", self.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(self.email.map(|email| ("login_hint", email)));
        Ok(url.into())
    }
}
