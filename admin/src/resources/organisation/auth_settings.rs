//! How an organisation's people and tokens are recognised: JWKS for tokens, OIDC or SAML for sign-in, SCIM for its
//! directory. Only stored and checked here. Of the SCIM token a hash is kept, OIDC client secrets are sealed.

mod claim_rules;
mod client_secret;
mod jwks;
mod oidc_providers;
pub mod saml;
mod scim_tokens;
mod sign_in;
mod verified;

use super::{Organisation, current, merge};
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, Field, text};
use crate::identity::Call;
use crate::resources::saml::service_key;
use crate::saml::SamlSettings;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::identity::api_key::{self, KeyHash};
use shared::outbound::Guard;

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuthChange {
    jwks_url: Field<String>,
    jwks_json: Field<Value>,
    jwt_issuer: Field<String>,
    jwt_audiences: Field<Vec<String>>,
    oidc: Field<sign_in::Oidc>,
    oidc_providers: Field<Vec<oidc_providers::DomainProvider>>,
    claim_rules: Field<Vec<claim_rules::ClaimRule>>,
    disable_login_links: Field<bool>,
    saml: Field<SamlSettings>,
    allowed_domains: Field<Vec<sign_in::Domain>>,
    disable_auto_provision_user: Field<bool>,
    session_settings: Field<SessionSettings>,
    scim: Field<ScimChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionSettings {
    max_session_ttl: Option<i64>,
    idle_timeout: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScimChange {
    enabled: Field<bool>,
    token: Field<String>,
    workspace_prefix: Field<String>,
    role_separator: Field<String>,
    group_based_user_provisioning: Field<bool>,
}

pub async fn read_auth_settings(State(app): State<App>, call: Call) -> Answer {
    let mut settings = shown(&current(&app, &call).await?.auth_settings);
    verified::mark(&*app.db.get().await?, call.caller.organisation_id(), &mut [&mut settings]).await?;
    Ok(Json(settings))
}

pub async fn update(State(app): State<App>, call: Call) -> Answer {
    const UPDATE: &str = "UPDATE organisations SET auth_settings = $2, last_updated_at = now() WHERE id = $1";
    let mut change: AuthChange = call.body()?;
    if change.is_empty() {
        return Err(ApiError::invalid("Nothing to update"));
    }
    let token = match &change.scim {
        Field::Value(scim) => scim.token.as_ref().try_map(|token| checked_token(token))?,
        Field::Absent => Field::Absent,
        Field::Null => Field::Null,
    };
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let id = action.organisation_id();
    let before = Organisation::hold(&action).await?.auth_settings;
    let general = client_secret::taken(&mut change.oidc, &before["oidc"])?;
    let sent = std::mem::take(&mut change.oidc_providers);
    let (providers, secrets) = oidc_providers::split(
        sent.try_map(|all| oidc_providers::checked(all, &before["oidc_providers"], app.outbound.guard()))?,
    );
    let rules = match std::mem::take(&mut change.claim_rules) {
        Field::Value(rules) => Field::Value(claim_rules::checked(&action, rules).await?),
        Field::Absent => Field::Absent,
        Field::Null => Field::Null,
    };
    let mut after = changed(&before, change, app.outbound.guard())?;
    if let Value::Object(settings) = &mut after {
        merge(settings, "claim_rules", rules);
        merge(settings, "oidc_providers", providers);
    }
    oidc_providers::refuse_shared_issuer(&after)?;
    client_secret::show(after.get_mut("oidc"), client_secret::masked(&general, &before["oidc"]));
    client_secret::keep(&action, general, secrets).await?;
    service_key::ensure(&action, &after["saml"]).await?;
    action.tx.execute(UPDATE, &[&id, &after]).await?;
    if let Some(hash) = token.sent() {
        scim_tokens::replace(&action, hash).await?;
    }
    let (mut before, mut after) = (shown(&before), shown(&after));
    verified::mark(&action.tx, id, &mut [&mut before, &mut after]).await?;
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: Some(after.clone()) }).await?;
    Ok(Json(after))
}

fn changed(stored: &Value, change: AuthChange, guard: &Guard) -> Result<Value, ApiError> {
    let mut settings = stored.as_object().cloned().unwrap_or_default();
    merge(&mut settings, "jwks_url", change.jwks_url.try_map(|url| key_address(url, guard))?);
    merge(&mut settings, "jwks_json", change.jwks_json.try_map(jwks::checked)?);
    if settings.contains_key("jwks_url") && settings.contains_key("jwks_json") {
        return Err(ApiError::field("jwks_json", "cannot be set together with jwks_url; set the other to null"));
    }
    merge(
        &mut settings,
        "jwt_issuer",
        change.jwt_issuer.try_map(|issuer| text::sized("jwt_issuer", issuer, 1..=2048))?,
    );
    merge(&mut settings, "jwt_audiences", change.jwt_audiences.try_map(audiences)?);
    merge(&mut settings, "oidc", change.oidc.try_map(|oidc| oidc.checked(guard))?);
    merge(&mut settings, "saml", change.saml.try_map(|sent| saml::checked(sent, guard))?);
    merge(&mut settings, "allowed_domains", change.allowed_domains.try_map(sign_in::domains)?);
    merge(&mut settings, "disable_auto_provision_user", change.disable_auto_provision_user);
    merge(&mut settings, "disable_login_links", change.disable_login_links);
    merge(&mut settings, "session_settings", change.session_settings.try_map(SessionSettings::checked)?);
    let scim = change.scim.try_map(|scim| scim.merged(&stored["scim"]))?;
    merge(&mut settings, "scim", scim);
    Ok(Value::Object(settings))
}

/// https, or plain HTTP on a host that the operator trusts.
fn key_address(url: String, guard: &Guard) -> Result<String, ApiError> {
    if url.len() <= 2048 && guard.custom_url(&url).is_ok() {
        return Ok(url);
    }
    sign_in::https("jwks_url", url)
}

/// What the audience of a token may be; an empty list is the same as none.
fn audiences(sent: Vec<String>) -> Result<Vec<String>, ApiError> {
    const MAX_AUDIENCES: usize = 20;
    if sent.len() > MAX_AUDIENCES {
        return Err(ApiError::field("jwt_audiences", "must be at most 20 texts"));
    }
    let each = sent.into_iter().enumerate();
    each.map(|(n, audience)| text::sized(&format!("jwt_audiences[{n}]"), audience, 1..=2048)).collect()
}

impl AuthChange {
    fn is_empty(&self) -> bool {
        let is_sent = self.jwks_url.is_sent()
            || self.jwks_json.is_sent()
            || self.jwt_issuer.is_sent()
            || self.jwt_audiences.is_sent()
            || self.oidc.is_sent()
            || self.oidc_providers.is_sent()
            || self.claim_rules.is_sent()
            || self.disable_login_links.is_sent()
            || self.saml.is_sent()
            || self.allowed_domains.is_sent()
            || self.disable_auto_provision_user.is_sent()
            || self.session_settings.is_sent()
            || self.scim.is_sent();
        !is_sent
    }
}

impl SessionSettings {
    fn checked(self) -> Result<Value, ApiError> {
        if self.max_session_ttl.is_some_and(|ttl| !(900..=31_536_000).contains(&ttl)) {
            return Err(ApiError::field("session_settings.max_session_ttl", "must be 900 to 31536000 seconds"));
        }
        if self.idle_timeout.is_some_and(|idle| !(300..=31_536_000).contains(&idle)) {
            return Err(ApiError::field("session_settings.idle_timeout", "must be 300 to 31536000 seconds"));
        }
        Ok(json!({ "max_session_ttl": self.max_session_ttl, "idle_timeout": self.idle_timeout }))
    }
}

impl ScimChange {
    /// Over what is stored, as the token cannot be sent back by a client that only changes a prefix.
    fn merged(self, stored: &Value) -> Result<Value, ApiError> {
        let part = |field: &'static str| {
            move |value: String| text::sized(field, value, 1..=64).map_err(|error| error.under("scim"))
        };
        let mut scim: Map<String, Value> = stored.as_object().cloned().unwrap_or_default();
        merge(&mut scim, "enabled", self.enabled);
        let masked = self.token.try_map(|token| Ok::<_, ApiError>(api_key::mask(&token)))?;
        merge(&mut scim, "masked_token", masked);
        merge(&mut scim, "workspace_prefix", self.workspace_prefix.try_map(part("workspace_prefix"))?);
        merge(&mut scim, "role_separator", self.role_separator.try_map(part("role_separator"))?);
        merge(&mut scim, "group_based_user_provisioning", self.group_based_user_provisioning);
        Ok(Value::Object(scim))
    }
}

/// The token alone opens the directory, and only a fast hash protects it.
fn checked_token(token: &str) -> Result<KeyHash, ApiError> {
    let is_strong = (32..=255).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_strong {
        return Ok(KeyHash::from_key(token.as_bytes()));
    }
    Err(ApiError::field("scim.token", "must be 32 to 255 visible ASCII characters"))
}

fn shown(stored: &Value) -> Value {
    let or = |value: &Value, default: Value| if value.is_null() { default } else { value.clone() };
    let scim = &stored["scim"];
    json!({
        "jwks_url": stored["jwks_url"],
        "jwks_json": stored["jwks_json"],
        "jwt_issuer": stored["jwt_issuer"],
        "jwt_audiences": stored["jwt_audiences"],
        "oidc": stored["oidc"],
        "saml": stored["saml"],
        "allowed_domains": or(&stored["allowed_domains"], json!([])),
        "disable_auto_provision_user": or(&stored["disable_auto_provision_user"], json!(false)),
        "oidc_providers": or(&stored["oidc_providers"], json!([])),
        "claim_rules": or(&stored["claim_rules"], json!([])),
        "disable_login_links": or(&stored["disable_login_links"], json!(false)),
        "session_settings": {
            "max_session_ttl": stored["session_settings"]["max_session_ttl"],
            "idle_timeout": stored["session_settings"]["idle_timeout"],
        },
        "scim": {
            "enabled": or(&scim["enabled"], json!(false)),
            "masked_token": scim["masked_token"],
            "workspace_prefix": or(&scim["workspace_prefix"], json!("ws-")),
            "role_separator": or(&scim["role_separator"], json!("-role-")),
            "group_based_user_provisioning": or(&scim["group_based_user_provisioning"], json!(false)),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::json;

    fn apply(stored: Value, sent: Value) -> Result<Value, String> {
        let change = json::parse(sent).map_err(|error| error.to_string())?;
        changed(&stored, change, &Guard::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_keys_of_tokens_come_from_one_place() {
        let keys = json!({ "keys": [] });
        let by_url = apply(json!({}), json!({ "jwks_url": "https://id.test/keys" })).unwrap();
        assert!(apply(by_url.clone(), json!({ "jwks_json": keys })).unwrap_err().starts_with("jwks_json: "));
        let moved = apply(by_url, json!({ "jwks_json": keys, "jwks_url": null })).unwrap();
        assert_eq!(moved, json!({ "jwks_json": keys }));
    }

    #[test]
    fn the_token_is_not_in_what_is_stored_and_stays_when_other_fields_change() {
        let token = "0123456789abcdef0123456789abcdef";
        let stored = apply(json!({}), json!({ "scim": { "enabled": true, "token": token } })).unwrap();
        assert!(!stored.to_string().contains(token));
        let stored = apply(stored, json!({ "scim": { "workspace_prefix": "x-" } })).unwrap();
        assert_eq!(shown(&stored)["scim"]["masked_token"], "01*****def");
        assert_eq!(shown(&stored)["scim"]["enabled"], true);
        for (token, accepted) in [(token, true), ("short", false), ("0123456789abcdef 0123456789abcdef", false)] {
            assert_eq!(checked_token(token).is_ok(), accepted, "{token}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (sent, field) in [
            (json!({ "jwks_url": "http://id.test/keys" }), "jwks_url"),
            (json!({ "jwks_url": "https://user:pw@id.test/keys" }), "jwks_url"),
            (json!({ "jwt_issuer": "" }), "jwt_issuer"),
            (json!({ "jwt_audiences": vec!["a"; 21] }), "jwt_audiences"),
            (json!({ "jwt_audiences": ["a", ""] }), "jwt_audiences[1]"),
            (json!({ "session_settings": { "max_session_ttl": 899 } }), "session_settings.max_session_ttl"),
            (json!({ "session_settings": { "idle_timeout": 299 } }), "session_settings.idle_timeout"),
            (json!({ "session_settings": { "ttl": 900 } }), "session_settings.ttl"),
            (json!({ "scim": { "workspace_prefix": "" } }), "scim.workspace_prefix"),
            (json!({ "scim": { "secret": "" } }), "scim.secret"),
            (json!({ "disable_auto_provision_user": 1 }), "disable_auto_provision_user"),
        ] {
            let refused = apply(json!({}), sent.clone()).unwrap_err();
            assert!(refused.starts_with(&format!("{field}: ")), "{sent}: {refused}");
        }
    }
}
