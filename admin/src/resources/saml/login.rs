//! `GET /auth/saml/{organisationId}/login`: the browser is sent to the identity provider with a request that only this
//! browser's answer fits.

use super::{ourselves, service_key, settings_of};
use crate::app::App;
use crate::http::ApiError;
use crate::http::page::{PagePolicy, page_headers};
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::identity::cookies::{Cookie, SameSite};
use crate::identity::tenancy;
use crate::resources::auth::{begun, finish, place, refused};
use crate::resources::login::LoginProvider;
use crate::resources::login::attempts;
use crate::resources::login::attempts::NewAttempt;
use crate::saml::message::CannotSign;
use crate::saml::providers::Freshness;
use crate::saml::{Binding, escaped};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse as _, Response};
use chrono::Utc;
use shared::identity::api_key;

/// As long as an attempt lasts.
const COOKIE_SECONDS: u32 = attempts::MINUTES.unsigned_abs() * 60;
/// What sends the form; its hash is in the policy of the page.
const SCRIPT: &str = "document.forms[0].submit()";

pub async fn login(
    State(app): State<App>,
    PublicCall(origin): PublicCall,
    Path(organisation): Path<String>,
) -> Result<Response, ApiError> {
    let return_to = place::return_to(origin.query.text("return_to"))?;
    let begun = begin(&app, &origin, &organisation, &return_to).await;
    Ok(begun.unwrap_or_else(|refused| refused::answer(&return_to, refused, None)))
}

async fn begin(app: &App, origin: &RequestOrigin, organisation: &str, return_to: &str) -> Result<Response, ApiError> {
    place::allow(app, origin)?;
    let organisation = tenancy::id(organisation).ok_or(ApiError::NotFound("organisation"))?;
    let settings = settings_of(&*app.db.get().await?, organisation).await?;
    let settings = settings.ok_or(ApiError::NotFound("sign-in by SAML in this organisation"))?;
    let provider = match app.saml_providers.find(&settings, Freshness::Cached).await {
        Ok(provider) => provider,
        Err(refused) => return Err(begun::recorded(app, origin, Some(organisation), refused).await),
    };
    let signs = settings.sign_requests == Some(true) || provider.wants_signed_requests;
    let db = app.db.get().await?;
    let keys = if signs { service_key::load(app, &*db, organisation).await? } else { Vec::new() };
    let browser = app.cookies.sent(&origin.headers, Cookie::Login).map_or_else(|| api_key::generate(""), str::to_owned);
    let attempt = NewAttempt {
        organisation_id: organisation,
        provider: LoginProvider::Saml,
        issuer: &provider.entity_id,
        return_to,
        browser: &browser,
        network: place::network(origin.seen.client_ip),
    };
    let request_id = format!("_{}", attempts::begin(&*db, attempt).await?);
    let cookie = app.cookies.set(Cookie::Login, &browser, SameSite::None, Some(COOKIE_SECONDS));
    let ours = ourselves(app, organisation);
    let (key, now) = (keys.first(), Utc::now());
    match (&provider.redirect_url, &provider.post_url, settings.binding) {
        (_, Some(url), Some(Binding::Post)) | (None, Some(url), _) => {
            let value = ours.form_value(&request_id, url, key, now).map_err(unsigned)?;
            Ok(form(url, &value, cookie))
        }
        (Some(url), ..) => {
            let address = ours.redirect(&request_id, url, key, now).map_err(unsigned)?;
            Ok(finish::redirect(&address, [cookie]))
        }
        (None, None, _) => Err(ApiError::NotFound("address to sign in at")),
    }
}

fn unsigned(_: CannotSign) -> ApiError {
    ApiError::Internal
}

/// A page that posts itself. Both values are written by us, and escaped as if they were not.
fn form(url: &str, request: &str, cookie: HeaderValue) -> Response {
    let page = format!(
        "<!DOCTYPE html><title>Sign in</title><form method=\"post\" action=\"{}\"><input type=\"hidden\" \
         name=\"SAMLRequest\" value=\"{}\"><noscript><button>Continue</button></noscript></form>\
         <script>{SCRIPT}</script>",
        escaped(url),
        escaped(request),
    );
    let policy = PagePolicy { script: Some(SCRIPT), has_form: true, ..PagePolicy::default() }.header();
    let mut response = (page_headers(policy, "no-referrer"), Html(page)).into_response();
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}
