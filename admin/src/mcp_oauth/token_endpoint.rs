//! An authorisation server's token endpoint: a code, a refresh token or the client itself for tokens; and the endpoint
//! that revokes them.

use super::client::OAuthClient;
use super::{Tokens, is_token};
use crate::outbound::Outbound;
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use shared::secrets::seal::Secret;
use shared::telemetry::{Brief, LogLimit};
use url::form_urlencoded;

/// Why there are no tokens. The sentences repeat nothing of what the server said.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// What was presented is used up, expired or revoked; trying again is useless.
    #[error("the authorisation server does not accept this any more; connect again")]
    Dead,
    #[error("the authorisation server does not know the gateway any more; connect again")]
    UnknownClient,
    #[error("{0}")]
    Failed(String),
}

pub type Form<'a> = Vec<(&'static str, &'a str)>;

/// Asks for tokens; `now` is when they begin to count.
pub async fn tokens(
    outbound: &Outbound,
    client: &OAuthClient,
    form: Form<'_>,
    now: DateTime<Utc>,
) -> Result<Tokens, TokenError> {
    let (headers, body) = request(client, form);
    let answer = outbound.submit(&client.server.token_endpoint, headers, body).await;
    let answer =
        answer.map_err(|fault| TokenError::Failed(format!("the authorisation server gave no token: {fault}")))?;
    match answer.status {
        200 => read(&answer.json(), now),
        status => Err(refused(status, &answer.json())),
    }
}

/// Tells the server that a token is not used any more. Whether it cares is its own affair.
pub async fn revoke(outbound: &Outbound, client: &OAuthClient, token: &Secret, hint: &'static str) {
    let (Some(endpoint), Some(token)) = (&client.server.revocation_endpoint, token.expose_text()) else { return };
    let (headers, body) = request(client, vec![("token", token), ("token_type_hint", hint)]);
    match outbound.submit(endpoint, headers, body).await {
        Ok(answer) if answer.status == 200 => {}
        answer => {
            static UNREVOKED: LogLimit = LogLimit::new();
            if let Some(skipped) = UNREVOKED.pass() {
                let fault =
                    Brief(answer.map_or_else(|fault| fault.to_string(), |answer| format!("status {}", answer.status)));
                tracing::warn!(%fault, skipped, "an authorisation server did not revoke a token");
            }
        }
    }
}

fn request<'a>(client: &'a OAuthClient, mut form: Form<'a>) -> (HeaderMap, Vec<u8>) {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let secret = client.client_secret.as_ref().and_then(Secret::expose_text);
    match (client.auth_method.as_str(), secret) {
        ("client_secret_basic", Some(secret)) => {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encoded(&client.client_id), encoded(secret));
            if let Ok(mut value) = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))) {
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        (_, Some(secret)) => form.extend([("client_id", client.client_id.as_str()), ("client_secret", secret)]),
        (_, None) => form.push(("client_id", client.client_id.as_str())),
    }
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    (headers, body.into_bytes())
}

fn read(answer: &Value, now: DateTime<Utc>) -> Result<Tokens, TokenError> {
    let bad = |what: &str| Err(TokenError::Failed(format!("the authorisation server's answer {what}")));
    let token =
        |name: &str| answer[name].as_str().filter(|text| is_token(text)).map(|text| Secret::from(text.to_owned()));
    let Some(access) = token("access_token") else { return bad("has no access token that can be sent") };
    if !answer["token_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return bad("is not of the type Bearer");
    }
    // Some write the number as a text.
    let seconds = answer["expires_in"].as_i64().or_else(|| answer["expires_in"].as_str()?.parse().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0).map(|seconds| seconds.min(10 * 366 * 86400));
    Ok(Tokens {
        access,
        refresh: token("refresh_token"),
        expires_at: seconds.map(|seconds| now + TimeDelta::seconds(seconds)),
        scope: answer["scope"]
            .as_str()
            .filter(|scope| (1..=4096).contains(&scope.len()) && !scope.contains('\0'))
            .map(str::to_owned),
    })
}

fn refused(status: u16, answer: &Value) -> TokenError {
    match answer["error"].as_str() {
        Some("invalid_grant") => TokenError::Dead,
        Some("invalid_client" | "unauthorized_client") => TokenError::UnknownClient,
        Some(code @ ("invalid_request" | "unsupported_grant_type" | "invalid_scope" | "invalid_target")) => {
            TokenError::Failed(format!("the authorisation server refused with {code}"))
        }
        _ => TokenError::Failed(format!("the authorisation server answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_are_read_or_refused_without_repeating_them() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let good = json!({ "access_token": "a-t0ken", "token_type": "bearer", "expires_in": "60", "refresh_token": "r-t0ken" });
        let tokens = read(&good, now).unwrap();
        assert_eq!(tokens.expires_at, Some(now + TimeDelta::seconds(60)));
        assert_eq!(tokens.refresh.as_ref().and_then(Secret::expose_text), Some("r-t0ken"));
        assert!(!format!("{tokens:?}").contains("t0ken"));
        for (field, value) in [
            ("access_token", json!(null)),
            ("access_token", json!("t0ken\r\nx: y")),
            ("token_type", json!("mac")),
            ("token_type", json!(null)),
        ] {
            let mut answer = good.clone();
            answer[field] = value.clone();
            let refused = read(&answer, now).unwrap_err().to_string();
            assert!(!refused.contains("t0ken"), "{refused}");
        }
    }

    #[test]
    fn refusals_are_told_apart_and_their_words_are_not_repeated() {
        let code = |code: &str| refused(400, &json!({ "error": code, "error_description": "t0ken" }));
        assert_eq!(code("invalid_grant"), TokenError::Dead);
        assert_eq!(code("invalid_client"), TokenError::UnknownClient);
        assert_eq!(code("invalid_target").to_string(), "the authorisation server refused with invalid_target");
        assert_eq!(code("t0ken").to_string(), "the authorisation server answered 400");
        assert_eq!(refused(502, &Value::Null).to_string(), "the authorisation server answered 502");
    }
}
