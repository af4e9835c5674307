//! Trying an account: one cheap call, a list of models, through the guarded dialer, and a sentence that says what is
//! wrong. Stored accounts are tried as they are; settings can be tried before they are saved. Nothing that a provider
//! answers is repeated, because some repeat the credential.

use super::change::unknown_provider;
use super::fields::AccountToCheck;
use super::{Fields, OpenedAccount, list, mappings};
use crate::app::App;
use crate::crud::{Action, Answer};
use crate::http::ApiError;
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::nearest::nearest;
use shared::providers::{Auth, ProviderEntry};
use std::time::{Duration, Instant};

/// Whoever waits for the answer is a person.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct TriedAccount {
    key: Option<String>,
    configurations: Option<Fields>,
}

/// `POST /integrations/{slug}/test`: the account as it is stored.
pub async fn try_stored(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let stored = list::held(&mut action, &name).await?;
    let is_mapped = !mappings::stored(&stored.secret_mappings).is_empty();
    let (plain, sealed) = (&stored.configurations, stored.sealed.as_ref());
    let account = OpenedAccount::open(&action, &stored.place(), plain, sealed).await?;
    drop(action);
    drop(db);
    let slug = &stored.ai_provider_id;
    let provider = app.providers.get(slug).ok_or_else(|| unknown_provider(&app, slug))?;
    if is_mapped {
        return Ok(Json(untried("Its credentials come from a secret reference, which only the proxies fetch")));
    }
    Ok(Json(tried(&app, provider, &account).await))
}

/// `POST /providers/types/{type}/test`: settings that are not saved.
pub async fn try_settings(State(app): State<App>, call: Call, Path(slug): Path<String>) -> Answer {
    let sent: TriedAccount = call.body()?;
    let provider = app.providers.get(slug.as_str()).ok_or_else(|| no_such_type(&app, &slug))?;
    let mut account = OpenedAccount::default();
    account.change(Some(sent.key), sent.configurations, &Value::Null);
    let checked = AccountToCheck {
        provider,
        key: account.key.as_deref(),
        configurations: &account.configurations,
        mapped: Vec::new(),
        hosts: app.outbound.guard(),
    };
    checked.check()?;
    Ok(Json(tried(&app, provider, &account).await))
}

/// The path is at fault, so it is 404; the name is what was mistyped.
fn no_such_type(app: &App, slug: &str) -> ApiError {
    match nearest(slug, app.providers.iter().map(|one| &*one.slug)) {
        Some(meant) => ApiError::NoSuchPath { hint: Some(format!("was the provider `{meant}` meant?")) },
        None => ApiError::NotFound("type of provider"),
    }
}

/// How an account of this provider is tried: what its address is asked for.
pub fn test_path(provider: &ProviderEntry) -> Option<&'static str> {
    match (&*provider.slug, &provider.auth) {
        // These sign their calls, or log in first, or have their address in the settings.
        (
            "azure-openai"
            | "azure-ai"
            | "bedrock"
            | "claude-platform-aws"
            | "sagemaker"
            | "vertex-ai"
            | "cortex"
            | "workers-ai",
            _,
        ) => None,
        (_, Auth::Signed) => None,
        ("google", _) => Some("/v1beta/models"),
        _ => Some("/models"),
    }
}

async fn tried(app: &App, provider: &ProviderEntry, account: &OpenedAccount) -> Value {
    let Some(path) = test_path(provider) else {
        return untried("Accounts of this provider cannot be tried by a call yet; its settings are complete");
    };
    let own = account.configurations.get("custom_host").and_then(Value::as_str);
    let Some(host) = own.or(provider.base_url.as_deref()) else {
        return untried("This provider has no address of its own: set `custom_host`");
    };
    let url = format!("{}{path}", host.trim_end_matches('/'));
    let Some(headers) = headers(provider, account) else {
        return untried("Its key or one of its headers cannot be sent");
    };
    let start = Instant::now();
    let answer = tokio::time::timeout(PATIENCE, app.outbound.status(&url, &headers)).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("it did not answer within {} s", PATIENCE.as_secs())));
    let verdict = verdict(&answer, own.is_some());
    json!({
        "object": "integration-test",
        "is_tested": true,
        "success": verdict.is_working,
        "message": verdict.message,
        "url": url,
        "status": answer.ok(),
        "response_time": u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// No call was made, and why.
fn untried(message: &str) -> Value {
    json!({
        "object": "integration-test", "is_tested": false, "success": null, "message": message,
        "url": null, "status": null, "response_time": null,
    })
}

fn headers(provider: &ProviderEntry, account: &OpenedAccount) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("portcullis"));
    for (name, value) in &provider.headers {
        headers.insert(name.clone(), value.clone());
    }
    if let Some(key) = &account.key {
        let mut key = HeaderValue::try_from(key.as_str()).ok()?;
        key.set_sensitive(true);
        if let Some((name, value)) = provider.auth.header(&key) {
            headers.insert(name, value);
        }
    }
    let custom = account.configurations.get("custom_headers").and_then(Value::as_object);
    for (name, value) in custom.into_iter().flatten() {
        headers.insert(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value.as_str()?).ok()?);
    }
    Some(headers)
}

#[derive(Debug, PartialEq)]
struct ProbeVerdict {
    /// None when the call proves neither.
    is_working: Option<bool>,
    message: String,
}

/// `has_own_host`: whether the account names an address of its own.
fn verdict(answer: &Result<u16, String>, has_own_host: bool) -> ProbeVerdict {
    let (is_working, message) = match answer {
        Err(why) => {
            let check = if has_own_host { "check `custom_host`" } else { "does this machine reach the internet?" };
            (Some(false), format!("The provider cannot be reached: {why}; {check}"))
        }
        Ok(200..=299) => (Some(true), "The provider accepts the account".to_owned()),
        Ok(status @ (401 | 403)) => {
            (Some(false), format!("The provider refused the credential ({status}); check `key`"))
        }
        Ok(429) => (Some(true), "The provider knows the account, and limits its rate at the moment (429)".to_owned()),
        Ok(404 | 405) => (
            None,
            "The address answers, but has no list of models there: the credential was not tried. A `custom_host` ends \
             where paths such as /chat/completions begin, often in /v1"
                .to_owned(),
        ),
        Ok(status @ 300..=399) => {
            (Some(false), format!("The address answers with a redirect ({status}), which is not followed"))
        }
        Ok(status @ 500..) => (Some(false), format!("The provider failed ({status}); try again later")),
        Ok(status) => (Some(false), format!("The provider refused the call ({status})")),
    };
    ProbeVerdict { is_working, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::providers::Providers;

    #[test]
    fn each_answer_says_what_to_look_at() {
        for (answer, is_working, part) in [
            (Ok(200), Some(true), "accepts"),
            (Ok(401), Some(false), "`key`"),
            (Ok(403), Some(false), "`key`"),
            (Ok(404), None, "`custom_host`"),
            (Ok(429), Some(true), "rate"),
            (Ok(302), Some(false), "redirect"),
            (Ok(503), Some(false), "failed (503)"),
            (Ok(418), Some(false), "(418)"),
            (Err("its host name did not resolve".to_owned()), Some(false), "did not resolve"),
        ] {
            let verdict = verdict(&answer, true);
            assert_eq!(verdict.is_working, is_working, "{answer:?}");
            assert!(verdict.message.contains(part), "{answer:?}: {}", verdict.message);
        }
    }

    #[test]
    fn nobody_is_sent_to_a_setting_that_they_did_not_make() {
        let lost = Err("its host name did not resolve".to_owned());
        assert!(verdict(&lost, true).message.ends_with("check `custom_host`"));
        assert!(!verdict(&lost, false).message.contains("custom_host"));
    }

    #[test]
    fn the_credential_goes_into_the_providers_own_header() {
        let table = Providers::bundled().unwrap();
        let account = OpenedAccount { key: Some("k".into()), configurations: Fields::new() };
        for (slug, name, value) in [("openai", "authorization", "Bearer k"), ("anthropic", "x-api-key", "k")] {
            let headers = headers(table.get(slug).unwrap(), &account).unwrap();
            assert_eq!(headers[name], value, "{slug}");
        }
        assert_eq!(test_path(table.get("bedrock").unwrap()), None);
        assert_eq!(test_path(table.get("openai").unwrap()), Some("/models"));
    }
}
