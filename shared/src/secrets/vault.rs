//! HashiCorp Vault (and what speaks its interface): logins, and secrets of the key-value engines of both versions.

use super::cloud::{LoginToken, Request, Response, escape};
use super::seal::Secret;
use super::{FetchError, refused, text};
use serde_json::{Value, json};
use std::time::Duration;

pub fn login_by_approle(address: &str, role_id: &str, secret_id: &Secret, namespace: Option<&str>) -> Request {
    let body = json!({ "role_id": role_id, "secret_id": text(secret_id) });
    login(address, "approle", &body, namespace)
}

pub fn login_by_kubernetes(address: &str, role: &str, jwt: &str, namespace: Option<&str>) -> Request {
    login(address, "kubernetes", &json!({ "role": role, "jwt": jwt }), namespace)
}

fn login(address: &str, method: &str, body: &Value, namespace: Option<&str>) -> Request {
    let url = format!("{address}/v1/auth/{method}/login");
    within(Request::post(url, "application/json", body.to_string().into_bytes()), namespace)
}

/// Vault answers 400 to credentials that it does not know.
pub fn logged_in(response: &Response) -> Result<LoginToken, FetchError> {
    if !response.is_success() {
        return Err(refused(response.status, "the login failed"));
    }
    let body = response.json().unwrap_or_default();
    let auth = &body["auth"];
    let token = auth["client_token"].as_str().ok_or(FetchError::Malformed("no token"))?;
    // Zero is for ever; an hour is as good, and notices a revocation.
    let seconds = auth["lease_duration"].as_u64().filter(|seconds| *seconds > 0).unwrap_or(3600);
    Ok(LoginToken { token: token.to_owned().into(), lasts: Duration::from_secs(seconds) })
}

pub fn get_secret(address: &str, path: &str, token: &Secret, namespace: Option<&str>) -> Request {
    let url = format!("{address}/v1/{}", escape(path.trim_matches('/'), "/"));
    within(Request::get(url).with("x-vault-token", text(token)), namespace)
}

fn within(request: Request, namespace: Option<&str>) -> Request {
    match namespace {
        Some(namespace) => request.with("x-vault-namespace", namespace),
        None => request,
    }
}

/// The second version of the engine has `data` behind its mount, which people leave out: `secret/app` is
/// `secret/data/app` there. None when it is there already.
pub fn versioned(path: &str) -> Option<String> {
    let (mount, rest) = path.trim_matches('/').split_once('/')?;
    (rest != "data" && !rest.starts_with("data/")).then(|| format!("{mount}/data/{rest}"))
}

/// All entries of a secret, as a JSON object.
pub fn secret(response: &Response) -> Result<Secret, FetchError> {
    let body = response.json().unwrap_or_default();
    if !response.is_success() {
        // 472 and 473 are replicas that cannot answer, 503 a sealed Vault.
        return Err(match response.status {
            472 | 473 => FetchError::Away(format!("status {}", response.status)),
            404 if body["data"]["metadata"].is_object() => FetchError::Missing("its latest version is deleted".into()),
            status => refused(status, ""),
        });
    }
    let data = &body["data"];
    let is_versioned = data["metadata"].is_object() && (data["data"].is_object() || data["data"].is_null());
    let entries = if is_versioned { &data["data"] } else { data };
    match entries {
        Value::Object(_) => Ok(entries.to_string().into()),
        _ => Err(FetchError::Malformed("no data")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response { status, body: body.as_bytes().to_vec() }
    }

    /// Bodies as Vault 1.15 sends them.
    #[test]
    fn both_versions_of_the_engine_are_read_and_refusals_understood() {
        let first = r#"{"request_id":"1","lease_id":"","renewable":false,"lease_duration":2764800,"data":{"key":"s3cret"},"wrap_info":null,"warnings":null,"auth":null}"#;
        let second = r#"{"request_id":"1","lease_duration":0,"data":{"data":{"key":"s3cret"},"metadata":{"created_time":"2026-01-05T10:30:00Z","deletion_time":"","destroyed":false,"version":1}}}"#;
        for body in [first, second] {
            assert_eq!(secret(&response(200, body)).unwrap().expose_text(), Some(r#"{"key":"s3cret"}"#));
        }
        let deleted = r#"{"data":{"data":null,"metadata":{"deletion_time":"2026-01-05T10:30:00Z","version":1}}}"#;
        for (status, body, expected) in [
            (404, deleted, FetchError::Missing("its latest version is deleted".into())),
            (404, r#"{"errors":[]}"#, FetchError::Missing("status 404".into())),
            (
                403,
                r#"{"errors":["1 error occurred:\n\t* permission denied\n\n"]}"#,
                FetchError::Denied("status 403".into()),
            ),
            (503, r#"{"errors":["Vault is sealed"]}"#, FetchError::Away("status 503".into())),
            (473, "", FetchError::Away("status 473".into())),
        ] {
            assert_eq!(secret(&response(status, body)).unwrap_err(), expected, "{status} {body}");
        }
        let login = r#"{"auth":{"client_token":"hvs.x","accessor":"a","policies":["p"],"lease_duration":1200,"renewable":true}}"#;
        assert_eq!(logged_in(&response(200, login)).unwrap().lasts, Duration::from_secs(1200));
        let denied = logged_in(&response(400, r#"{"errors":["invalid role or secret ID"]}"#)).unwrap_err();
        assert!(matches!(denied, FetchError::Denied(_)), "{denied}");
    }

    #[test]
    fn a_path_without_data_is_tried_with_it() {
        for (path, expected) in [
            ("secret/app", Some("secret/data/app")),
            ("/secret/a/b/", Some("secret/data/a/b")),
            ("secret/data/app", None),
            ("secret", None),
        ] {
            assert_eq!(versioned(path).as_deref(), expected, "{path}");
        }
    }
}
