//! Azure Key Vault: where vaults are, who hands out tokens for them, and the secret itself.

use super::cloud::{AZURE_LOGIN, Request, Response, escape};
use super::seal::Secret;
use super::{FetchError, plain, refused, text};

/// Where key vaults live, who hands out tokens there, and for whom.
static CLOUDS: &[(&str, &str)] = &[
    (".vault.azure.net", AZURE_LOGIN),
    (".vault.usgovcloudapi.net", "https://login.microsoftonline.us"),
    (".vault.azure.cn", "https://login.partner.microsoftonline.cn"),
];

/// Whether this is the address of a key vault. Tokens of ours go there, so no other host will do.
pub fn is_vault_url(url: &str) -> bool {
    cloud(url).is_some()
}

/// The suffix of the vault's host, and its cloud's login service.
fn cloud(url: &str) -> Option<(&'static str, &'static str)> {
    let host = url.strip_prefix("https://")?.trim_end_matches('/').to_ascii_lowercase();
    let is_name =
        |name: &str| (1..=127).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    CLOUDS.iter().copied().find(|(suffix, _)| host.strip_suffix(suffix).is_some_and(is_name))
}

/// What a token must allow to open this vault.
pub fn scope(vault_url: &str) -> String {
    let suffix = cloud(vault_url).map_or(CLOUDS[0].0, |(suffix, _)| suffix);
    format!("https://{}/.default", suffix.trim_start_matches('.'))
}

pub fn login_host(vault_url: &str) -> &'static str {
    cloud(vault_url).map_or(CLOUDS[0].1, |(_, login)| login)
}

/// `path` is the secret's name, with `/version` behind it if it is not the latest one.
pub fn get_secret(vault_url: &str, path: &str, token: &Secret) -> Request {
    let url = format!("{vault_url}/secrets/{}?api-version=7.4", escape(path.trim_matches('/'), "/"));
    Request::get(url).with("authorization", format!("Bearer {}", text(token)))
}

pub fn secret(response: &Response, now_s: i64) -> Result<Secret, FetchError> {
    let body = response.json().unwrap_or_default();
    if !response.is_success() {
        let error = &body["error"];
        let code = error["innererror"]["code"].as_str().or_else(|| error["code"].as_str()).unwrap_or_default();
        return Err(refused(response.status, &plain(code)));
    }
    let attributes = &body["attributes"];
    if attributes["exp"].as_i64().is_some_and(|end| end <= now_s) {
        return Err(FetchError::Denied("it has expired".into()));
    }
    if attributes["enabled"].as_bool() == Some(false) {
        return Err(FetchError::Denied("it is disabled".into()));
    }
    let value = body["value"].as_str().ok_or(FetchError::Malformed("no value"))?;
    Ok(value.to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response { status, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn only_key_vaults_get_a_token() {
        for (url, accepted) in [
            ("https://my-vault.vault.azure.net", true),
            ("https://MY.vault.azure.net/", true),
            ("https://v.vault.usgovcloudapi.net", true),
            ("http://v.vault.azure.net", false),
            ("https://vault.azure.net", false),
            ("https://v.vault.azure.net.evil.test", false),
            ("https://evil.test/.vault.azure.net", false),
            ("https://u@v.vault.azure.net", false),
            ("https://v.vault.azure.net:444", false),
        ] {
            assert_eq!(is_vault_url(url), accepted, "{url}");
        }
        assert_eq!(scope("https://v.vault.azure.cn"), "https://vault.azure.cn/.default");
        assert_eq!(login_host("https://v.vault.usgovcloudapi.net"), "https://login.microsoftonline.us");
    }

    /// Bodies as Key Vault sends them.
    #[test]
    fn answers_are_read_and_refusals_understood() {
        let found = r#"{"value":"s3cret","contentType":null,"id":"https://v.vault.azure.net/secrets/n/1","attributes":{"enabled":true,"exp":2000,"created":1,"updated":1,"recoveryLevel":"Recoverable+Purgeable"}}"#;
        assert_eq!(secret(&response(200, found), 1999).unwrap().expose_text(), Some("s3cret"));
        assert!(matches!(secret(&response(200, found), 2000), Err(FetchError::Denied(_))), "it has expired");
        for (status, body, expected) in [
            (
                404,
                r#"{"error":{"code":"SecretNotFound","message":"A secret with (name/id) n was not found"}}"#,
                FetchError::Missing("status 404, SecretNotFound".into()),
            ),
            (
                403,
                r#"{"error":{"code":"Forbidden","message":"s3cret","innererror":{"code":"SecretDisabled"}}}"#,
                FetchError::Denied("status 403, SecretDisabled".into()),
            ),
            (
                401,
                r#"{"error":{"code":"Unauthorized","message":"AKV10032"}}"#,
                FetchError::Denied("status 401, Unauthorized".into()),
            ),
            (429, r#"{"error":{"code":"Throttled"}}"#, FetchError::Away("status 429, Throttled".into())),
            (503, "", FetchError::Away("status 503".into())),
        ] {
            assert_eq!(secret(&response(status, body), 0).unwrap_err(), expected, "{status} {body}");
        }
    }
}
