//! `GET /auth/callback/{organisationId}`: the browser is back from the identity provider. The login must have been begun
//! in this browser, for this organisation, and not be completed yet; the answer must be of the provider that was asked;
//! and the code is worth something only with the verifier that this browser's login was begun with.

use super::begun::{self, Answered};
use super::finish::{self, ProviderSession};
use super::login::callback_url;
use super::{place, refused};
use crate::app::App;
use crate::http::ApiError;
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::identity::oidc::claims::{self, IdClaims};
use crate::identity::oidc::client::{Code, plain_code};
use crate::identity::oidc::discovery::Metadata;
use crate::identity::oidc::{OidcError, OidcProvider};
use crate::identity::tenancy;
use crate::resources::login::LoginProvider;
use crate::resources::login::arrival::Arrival;
use crate::resources::login::attempts;
use crate::resources::login::attempts::Attempt;
use axum::extract::{Path, State};
use axum::response::Response;
use chrono::Utc;
use serde_json::{Map, Value};
use shared::secrets::seal::{Sealed, SealedPlace, Secret};
use uuid::Uuid;

const MAX_CODE: usize = 4096;

pub async fn callback(
    State(app): State<App>,
    PublicCall(origin): PublicCall,
    Path(organisation): Path<String>,
) -> Result<Response, ApiError> {
    let state = origin.query.text("state").ok_or_else(|| ApiError::field("state", "is required"))?;
    place::allow(&app, &origin)?;
    let organisation = tenancy::id(&organisation);
    let answered = Answered { provider: LoginProvider::Oidc, organisation, state };
    let (attempt, browser) = begun::take(&app, &origin, answered).await?;
    let login = ReturnedLogin { app: &app, origin: &origin, attempt: &attempt, state, browser };
    let answered = match login.arrival(organisation).await {
        Ok((arrival, id_token, session)) => {
            let provider = ProviderSession { id: session.as_deref(), id_token: Some(&id_token) };
            finish::finish(&app, &origin, &arrival, provider, &attempt.return_to).await
        }
        Err(refused) => Err(begun::recorded(&app, &origin, Some(attempt.organisation_id), refused).await),
    };
    let provider_error = origin.query.text("error");
    Ok(answered.unwrap_or_else(|refused| refused::answer(&attempt.return_to, refused, provider_error)))
}

struct ReturnedLogin<'a> {
    app: &'a App,
    origin: &'a RequestOrigin,
    attempt: &'a Attempt,
    state: &'a str,
    browser: &'a str,
}

impl ReturnedLogin<'_> {
    /// Who it is, with the ID token and the provider's name for its session.
    async fn arrival(&self, organisation: Option<Uuid>) -> Result<(Arrival, String, Option<String>), ApiError> {
        if organisation != Some(self.attempt.organisation_id) {
            return Err(ApiError::SignInRefused("This login was begun for another organisation".into()));
        }
        let (provider, secret, rules) = self.provider().await?;
        let metadata = self.app.oidc.metadata(&provider.issuer).await?;
        let code = self.code(&metadata)?;
        let redirect_uri = callback_url(self.app, self.attempt.organisation_id);
        let verifier = attempts::derived("verifier", self.browser, self.state);
        let code = Code { code, verifier: &verifier, redirect_uri: &redirect_uri, secret: secret.as_ref() };
        let tokens = self.app.oidc.redeem(&metadata, &provider, code).await?;
        let signed = self.app.oidc.signed_claims(&metadata, &tokens.id_token, &["JWT"]).await?;
        let nonce = attempts::derived("nonce", self.browser, self.state);
        let mut person = claims::id_token(signed, &provider, &nonce, Utc::now())?;
        if let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, &tokens.access_token)
            && lacks_claims(&person, &rules)
        {
            let more = self.app.oidc.user_info(url, token, &person.subject).await?;
            claims::complete(&mut person.all, more);
        }
        let session = person.session.take();
        Ok((arrival(self.attempt, &provider, person), tokens.id_token, session))
    }

    /// The code, if the answer is of the provider that was asked and says yes.
    fn code(&self, metadata: &Metadata) -> Result<&str, ApiError> {
        let query = &self.origin.query;
        match query.text("iss") {
            Some(issuer) if issuer != self.attempt.issuer => {
                return Err(ApiError::SignInRefused("The answer is of another identity provider".into()));
            }
            None if metadata.authorization_response_iss_parameter_supported => {
                return Err(ApiError::SignInRefused("The answer does not say which identity provider it is of".into()));
            }
            _ => {}
        }
        if let Some(error) = query.text("error") {
            return Err(OidcError::Refused(plain_code(error)).into());
        }
        let code = query.text("code").filter(|code| code.len() <= MAX_CODE);
        code.ok_or_else(|| ApiError::field("code", "is required, and at most 4096 bytes"))
    }

    /// The provider as it is set up now, its secret, and the names of claims that rules are about.
    async fn provider(&self) -> Result<(OidcProvider, Option<Secret>, Vec<String>), ApiError> {
        const FIND: &str = "SELECT auth_settings, auth_secrets FROM organisations WHERE id = $1";
        let organisation = self.attempt.organisation_id;
        let db = self.app.db.get().await?;
        let row = db.query_one(FIND, &[&organisation]).await?;
        let settings: Value = row.try_get("auth_settings")?;
        let gone = || ApiError::SignInRefused("The identity provider is no longer set up".into());
        let provider = OidcProvider::by_issuer(&settings, &self.attempt.issuer).ok_or_else(gone)?;
        let secret = match row.try_get::<_, Option<&[u8]>>("auth_secrets")? {
            Some(sealed) => {
                let place =
                    SealedPlace { organisation, table: "organisations", row: organisation, field: "auth_secrets" };
                let open = self.app.sealer.open(&*db, &place, &Sealed::from(sealed)).await?;
                let all: Value = serde_json::from_slice(open.expose()).unwrap_or_default();
                let name = OidcProvider::secret_name(&settings, &provider.issuer);
                all[name.as_str()].as_str().map(|text| Secret::from(text.to_owned()))
            }
            None => None,
        };
        let rules = settings["claim_rules"].as_array().into_iter().flatten();
        let rules = rules.filter_map(|rule| rule["claim"].as_str()).map(str::to_owned).collect();
        Ok((provider, secret, rules))
    }
}

/// Whether the provider is to be asked for more than the ID token says.
fn lacks_claims(person: &IdClaims, rules: &[String]) -> bool {
    let has =
        |name: &str| person.all.contains_key(name.split('.').next().unwrap_or(name)) || person.all.contains_key(name);
    !has("email") || rules.iter().any(|name| !has(name))
}

fn arrival(attempt: &Attempt, provider: &OidcProvider, person: IdClaims) -> Arrival {
    let text = |all: &Map<String, Value>, name: &str| claims::text(all, name).map(str::to_owned);
    let verified = claims::is_email_verified(&person.all);
    Arrival {
        organisation_id: attempt.organisation_id,
        provider: LoginProvider::Oidc,
        issuer: provider.issuer.clone(),
        subject: person.subject,
        email: text(&person.all, "email").unwrap_or_default(),
        // What the provider denies is not believed, whatever the settings say.
        email_verified: verified.unwrap_or(provider.trust_email),
        first_name: text(&person.all, "given_name"),
        last_name: text(&person.all, "family_name"),
        claims: Value::Object(person.all),
    }
}
