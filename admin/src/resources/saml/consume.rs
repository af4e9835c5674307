//! `POST /auth/saml/{organisationId}/acs`: the browser brings the identity provider's answer. The login must have been
//! begun in this browser, for this organisation and this identity provider, and not be completed yet; then the answer is
//! judged, and its assertion taken once.

use super::{ourselves, service_key, settings_of};
use crate::app::App;
use crate::http::ApiError;
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::identity::tenancy;
use crate::resources::auth::begun::{self, Answered};
use crate::resources::auth::finish::{self, ProviderSession};
use crate::resources::auth::{place, refused};
use crate::resources::login::LoginProvider;
use crate::resources::login::arrival::Arrival;
use crate::resources::login::attempts;
use crate::resources::login::attempts::Attempt;
use crate::saml::SamlSettings;
use crate::saml::metadata::IdentityProvider;
use crate::saml::providers::Freshness;
use crate::saml::response::{self, Expected, Statement, Unbelievable};
use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use chrono::Utc;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;

pub async fn consume(
    State(app): State<App>,
    PublicCall(origin): PublicCall,
    Path(organisation): Path<String>,
) -> Result<Response, ApiError> {
    let posted = posted(&origin)?;
    place::allow(&app, &origin)?;
    let organisation = tenancy::id(&organisation);
    let judging = app.saml_judges.run(organisation.unwrap_or_default(), move || readable(&posted));
    let (xml, request_id) = match judging.await? {
        Ok(read) => read,
        Err(why) => return Err(begun::recorded(&app, &origin, organisation, unbelieved(why)).await),
    };
    // Ids of ours begin so; any other is of no login.
    let state = request_id.strip_prefix('_').unwrap_or_default();
    let answered = Answered { provider: LoginProvider::Saml, organisation, state };
    let (attempt, _) = begun::take(&app, &origin, answered).await?;
    let answer = SamlAnswer { app: &app, attempt: &attempt, request_id: &request_id, xml: &xml };
    let answered = match answer.arrival(organisation).await {
        Ok((arrival, session)) => {
            let session = ProviderSession { id: session.as_deref(), id_token: None };
            finish::finish(&app, &origin, &arrival, session, &attempt.return_to).await
        }
        Err(refused) => Err(begun::recorded(&app, &origin, Some(attempt.organisation_id), refused).await),
    };
    Ok(answered.unwrap_or_else(|refused| refused::answer(&attempt.return_to, refused, None)))
}

/// The field of the form.
fn posted(origin: &RequestOrigin) -> Result<String, ApiError> {
    let mut fields = url::form_urlencoded::parse(&origin.body).filter(|(name, _)| name == "SAMLResponse");
    match (fields.next(), fields.next()) {
        (Some((_, response)), None) => Ok(response.into_owned()),
        _ => Err(ApiError::invalid("The form must have one field SAMLResponse")),
    }
}

/// The response, and the id of the request that it says it answers.
fn readable(posted: &str) -> Result<(Bytes, String), Unbelievable> {
    let xml = response::received(posted)?;
    let request_id = response::claimed_request(&xml)?;
    Ok((xml.into(), request_id))
}

fn unbelieved(why: Unbelievable) -> ApiError {
    ApiError::SignInRefused(why.to_string())
}

struct SamlAnswer<'a> {
    app: &'a App,
    attempt: &'a Attempt,
    request_id: &'a str,
    xml: &'a Bytes,
}

impl SamlAnswer<'_> {
    /// Who it is, with the identity provider's name for its session.
    async fn arrival(&self, organisation: Option<Uuid>) -> Result<(Arrival, Option<String>), ApiError> {
        if organisation != Some(self.attempt.organisation_id) {
            return Err(ApiError::SignInRefused("This login was begun for another organisation".into()));
        }
        let db = self.app.db.get().await?;
        let settings = settings_of(&*db, self.attempt.organisation_id).await?;
        drop(db);
        let gone = || ApiError::SignInRefused("The identity provider is no longer set up".into());
        let settings = settings.ok_or_else(gone)?;
        let statement = self.statement(&settings).await?;
        let db = self.app.db.get().await?;
        let (organisation, issuer) = (self.attempt.organisation_id, self.attempt.issuer.as_str());
        if !attempts::take_once(&*db, organisation, issuer, &statement.assertion_id, statement.expires_at).await? {
            return Err(ApiError::SignInRefused("The assertion was used before".into()));
        }
        Ok((arrival(self.attempt, &settings, &statement), statement.session))
    }

    /// Judged again with fresh metadata when the key is not known: identity providers change their keys.
    async fn statement(&self, settings: &SamlSettings) -> Result<Statement, ApiError> {
        let provider = self.app.saml_providers.find(settings, Freshness::Cached).await?;
        match self.believed(settings, &provider).await {
            Err(Judged::Unbelievable(Unbelievable::Signature(_))) if settings.metadata_url.is_some() => {
                let provider = self.app.saml_providers.find(settings, Freshness::Renewed).await?;
                Ok(self.believed(settings, &provider).await?)
            }
            judged => Ok(judged?),
        }
    }

    async fn believed(&self, settings: &SamlSettings, provider: &Arc<IdentityProvider>) -> Result<Statement, Judged> {
        if provider.entity_id != self.attempt.issuer {
            return Err(Judged::Failed(ApiError::SignInRefused("The identity provider is no longer set up".into())));
        }
        let organisation = self.attempt.organisation_id;
        let db = self.app.db.get().await.map_err(Judged::Failed)?;
        let keys = service_key::load(self.app, &*db, organisation).await.map_err(Judged::Failed)?;
        drop(db);
        let (from, to, xml) = (provider.clone(), ourselves(self.app, organisation), self.xml.clone());
        let (request_id, wants_encrypted) = (self.request_id.to_owned(), settings.want_encrypted == Some(true));
        let judge = move || {
            let (from, to, request_id, keys) = (&*from, &to, &*request_id, &*keys);
            response::believed(&xml, &Expected { from, to, request_id, keys, wants_encrypted, now: Utc::now() })
        };
        let judged = self.app.saml_judges.run(organisation, judge).await.map_err(Judged::Failed)?;
        judged.map_err(Judged::Unbelievable)
    }
}

/// Why there is no statement: the answer, or something of ours.
enum Judged {
    Unbelievable(Unbelievable),
    Failed(ApiError),
}

impl From<Judged> for ApiError {
    fn from(judged: Judged) -> Self {
        match judged {
            Judged::Unbelievable(why) => unbelieved(why),
            Judged::Failed(error) => error,
        }
    }
}

const EMAIL: [&str; 5] = [
    "email",
    "mail",
    "emailAddress",
    "urn:oid:0.9.2342.19200300.100.1.3",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
];
const FIRST_NAME: [&str; 4] =
    ["firstName", "givenName", "urn:oid:2.5.4.42", "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname"];
const LAST_NAME: [&str; 4] =
    ["lastName", "sn", "urn:oid:2.5.4.4", "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/surname"];
const TRANSIENT: &str = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient";

/// The organisation's own identity provider vouches for the address, by having been chosen by the organisation.
fn arrival(attempt: &Attempt, settings: &SamlSettings, statement: &Statement) -> Arrival {
    let names = settings.attributes.clone().unwrap_or_default();
    let first = |name: &str| statement.attributes.get(name).and_then(|values| values.first()).cloned();
    let attribute = |chosen: &Option<String>, usual: &[&str]| match chosen {
        Some(name) => first(name),
        None => usual.iter().find_map(|name| first(name)),
    };
    let named = Some(statement.name.clone()).filter(|name| name.contains('@'));
    let email = attribute(&names.email, &EMAIL).or(named).unwrap_or_default();
    // A transient name is another at every login.
    let subject = match statement.name_format == TRANSIENT {
        true => email.clone(),
        false => statement.name.clone(),
    };
    let mut claims: Map<String, Value> =
        statement.attributes.iter().map(|(name, values)| (name.clone(), json!(values))).collect();
    claims.insert("name_id".into(), json!(statement.name));
    Arrival {
        organisation_id: attempt.organisation_id,
        provider: LoginProvider::Saml,
        issuer: attempt.issuer.clone(),
        subject,
        email,
        email_verified: true,
        first_name: attribute(&names.first_name, &FIRST_NAME),
        last_name: attribute(&names.last_name, &LAST_NAME),
        claims: Value::Object(claims),
    }
}
