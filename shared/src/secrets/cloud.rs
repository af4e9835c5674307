//! Clouds as we meet them: who this process is to them, how their keys and tokens are asked for, and how AWS and OAuth
//! have things signed. What to ask and how to read the answer are pure functions, one file per cloud; who dials is
//! behind `Http`, so that the proxy's rules for outbound addresses hold here too. `CloudLogin` puts them together.
//!
//! Nothing is kept here: secrets (`secrets`) and the proxy's accounts (its room `signing`) each have a cache with rules
//! of their own.

mod aws;
mod azure;
mod google;
mod http;
mod login;
mod own_identity;
pub mod rs256;
pub mod sigv4;

pub use aws::LentKeys;
pub use azure::{AzureIdentity, LOGIN as AZURE_LOGIN};
pub use google::ServiceAccount;
pub use http::{Http, Request, Response, Sending, escape, form};
pub use login::{CloudLogin, Endpoints};
pub use own_identity::OwnIdentity;
pub use sigv4::AwsKeys;

use super::seal::Secret;
use std::time::Duration;

/// A token and how long it is good.
#[derive(Debug, Clone)]
pub struct LoginToken {
    pub token: Secret,
    pub lasts: Duration,
}

/// Why a cloud gave no key or token. Never says more of an answer than its status and the cloud's own error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error("the login is refused: {0}")]
    Denied(String),
    #[error("the login service cannot be reached: {0}")]
    Away(String),
    /// It answered, and not as it should.
    #[error("the login service's answer makes no sense: {0}")]
    Malformed(&'static str),
    /// This process has no identity of its own to show, or does not lend it.
    #[error("the gateway has no identity of its own for this: {0}")]
    NoIdentity(&'static str),
    /// What the account holds cannot sign.
    #[error("the private key cannot be used: {0}")]
    Key(&'static str),
}

/// What an HTTP status means, when its body has nothing better to say.
fn refused(status: u16, message: &str) -> LoginError {
    let what = if message.is_empty() { format!("status {status}") } else { format!("status {status}, {message}") };
    match status {
        429 | 500.. => LoginError::Away(what),
        _ => LoginError::Denied(what),
    }
}

/// Codes and names that services answer with; nothing else of an answer is repeated.
pub(crate) fn plain(code: &str) -> String {
    code.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(80).collect()
}

/// A secret part of a request.
pub(crate) fn text(secret: &Secret) -> &str {
    secret.expose_text().unwrap_or_default()
}

/// `access_token` and `expires_in`, as every OAuth service answers.
fn oauth_token(response: &Response) -> Result<LoginToken, LoginError> {
    let body = response.json().unwrap_or_default();
    if !response.is_success() {
        return Err(refused(response.status, &plain(body["error"].as_str().unwrap_or_default())));
    }
    let token = body["access_token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or(LoginError::Malformed("no token"))?;
    // It will stand in a header.
    if token.len() > MAX_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(LoginError::Malformed("a token that cannot be sent"));
    }
    // A number from most, a text from machines of Azure.
    let seconds = &body["expires_in"];
    let seconds = seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok()).unwrap_or(300);
    Ok(LoginToken { token: token.to_owned().into(), lasts: Duration::from_secs(seconds).min(MAX_LIFE) })
}

const MAX_TOKEN: usize = 16 << 10;
/// No service hands out tokens for longer; whoever says so is not believed.
const MAX_LIFE: Duration = Duration::from_secs(48 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response { status, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn a_token_is_read_with_its_life_and_nothing_of_a_refusal_is_repeated_but_its_code() {
        for (body, lasts) in [
            (r#"{"access_token":"t","expires_in":3599}"#, 3599),
            (r#"{"access_token":"t","expires_in":"86399"}"#, 86399),
            (r#"{"access_token":"t"}"#, 300),
            (r#"{"access_token":"t","expires_in":99999999999}"#, 48 * 3600),
        ] {
            assert_eq!(oauth_token(&response(200, body)).unwrap().lasts, Duration::from_secs(lasts), "{body}");
        }
        let denied = r#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret s3cret"}"#;
        let denied = oauth_token(&response(401, denied)).unwrap_err();
        assert_eq!(denied, LoginError::Denied("status 401, invalid_client".into()));
        assert!(matches!(oauth_token(&response(503, "<html>")), Err(LoginError::Away(_))));
        for rubbish in ["<html>", "{}", r#"{"access_token":""}"#, r#"{"access_token":"a\r\nb"}"#, "[1]", "null"] {
            assert!(matches!(oauth_token(&response(200, rubbish)), Err(LoginError::Malformed(_))), "{rubbish}");
        }
    }
}
