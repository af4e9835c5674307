//! What a token is asked with, and the token. A request's identity is a hash of everything in it, so that a changed
//! secret is another request and no secret is a key of a map.

use super::error::SigningError;
use super::{sensitive, snowflake};
use chrono::Utc;
use http::HeaderValue;
use openssl::pkey::{PKey, Private};
use sha2::{Digest as _, Sha256};
use shared::secrets::cloud::{AZURE_LOGIN, AwsKeys, AzureIdentity, CloudLogin, LoginToken, ServiceAccount, rs256};
use shared::secrets::seal::Secret;
use std::fmt;
use std::time::Duration;

#[derive(Clone)]
pub enum TokenRequest {
    /// `base` takes the role on; without one our own identity does.
    AwsRole {
        base: Option<AwsKeys>,
        region: String,
        role_arn: Secret,
        external_id: Option<Secret>,
    },
    AwsOwn {
        region: String,
    },
    Google(Box<ServiceAccount>),
    GoogleMachine,
    Azure {
        identity: AzureIdentity,
        scope: String,
    },
    Snowflake {
        account: String,
        user: String,
        key: Secret,
        passphrase: Option<Secret>,
    },
    /// Nothing is fetched, but reading a key is not for every request.
    OracleKey {
        key: Secret,
        passphrase: Option<Secret>,
    },
}

/// What a request is given.
pub enum GrantedToken {
    /// The whole header.
    Bearer(HeaderValue),
    Aws(AwsKeys),
    Key(PKey<Private>),
}

/// A key that was read is read again so often.
const KEY_LIFE: Duration = Duration::from_secs(3600);

impl TokenRequest {
    /// Whether the token stands for this process.
    pub fn is_own_identity(&self) -> bool {
        match self {
            Self::AwsRole { base, .. } => base.is_none(),
            Self::AwsOwn { .. } | Self::GoogleMachine => true,
            Self::Azure { identity, .. } => !matches!(identity, AzureIdentity::Client { .. }),
            Self::Google(_) | Self::Snowflake { .. } | Self::OracleKey { .. } => false,
        }
    }

    /// The token and how long it is good. Takes as many steps as the login has.
    pub async fn fetch(&self, login: &CloudLogin) -> Result<(GrantedToken, Duration), SigningError> {
        match self {
            Self::AwsRole { base, region, role_arn, external_id } => {
                let base = match base {
                    Some(keys) => keys.clone(),
                    None => login.own_aws_keys(region).await?.keys,
                };
                let lent = login.assume_role(&base, region, role_arn, external_id.as_ref()).await?;
                let lasts = lent.lasts(Utc::now());
                Ok((GrantedToken::Aws(lent.keys), lasts))
            }
            Self::AwsOwn { region } => {
                let lent = login.own_aws_keys(region).await?;
                let lasts = lent.lasts(Utc::now());
                Ok((GrantedToken::Aws(lent.keys), lasts))
            }
            Self::Google(account) => bearer(login.google_token(account).await?),
            Self::GoogleMachine => bearer(login.google_token_of_machine().await?),
            Self::Azure { identity, scope } => bearer(login.azure_token(identity, AZURE_LOGIN, scope).await?),
            Self::Snowflake { account, user, key, passphrase } => {
                let key = rs256::private_key(key, passphrase.as_ref())?;
                let token = snowflake::token(account, user, &key, Utc::now().timestamp())?;
                bearer(LoginToken { token, lasts: snowflake::LIFE })
            }
            Self::OracleKey { key, passphrase } => {
                Ok((GrantedToken::Key(rs256::private_key(key, passphrase.as_ref())?), KEY_LIFE))
            }
        }
    }

    /// Equal for two that would be given the same token.
    pub fn identity(&self) -> [u8; 32] {
        let text = |text: &str| Part(Some(text.as_bytes().to_vec()));
        let optional = |text: &Option<String>| Part(text.as_ref().map(|text| text.as_bytes().to_vec()));
        let secret = |secret: &Secret| Part(Some(secret.expose().to_vec()));
        let maybe = |secret: Option<&Secret>| Part(secret.map(|secret| secret.expose().to_vec()));
        let (kind, parts) = match self {
            Self::AwsRole { base, region, role_arn, external_id } => {
                let base = base.as_ref();
                let of = |part: fn(&AwsKeys) -> Option<&Secret>| maybe(base.and_then(part));
                let keys = [of(|keys| Some(&keys.id)), of(|keys| Some(&keys.secret)), of(|keys| keys.session.as_ref())];
                let role = [text(region), secret(role_arn), maybe(external_id.as_ref())];
                ("aws role", keys.into_iter().chain(role).collect())
            }
            Self::AwsOwn { region } => ("aws", vec![text(region)]),
            Self::Google(account) => {
                let ServiceAccount { client_email, private_key, private_key_id, token_uri, .. } = &**account;
                let parts = [text(client_email), secret(private_key), optional(private_key_id), text(token_uri)];
                ("google", parts.into_iter().collect())
            }
            Self::GoogleMachine => ("google machine", Vec::new()),
            Self::Azure { identity, scope } => match identity {
                AzureIdentity::Client { tenant, client, secret: own } => {
                    ("azure client", vec![text(scope), text(tenant), text(client), secret(own)])
                }
                AzureIdentity::Managed { client } => ("azure managed", vec![text(scope), optional(client)]),
                AzureIdentity::Workload { tenant, client } => {
                    ("azure workload", vec![text(scope), optional(tenant), optional(client)])
                }
                AzureIdentity::Own => ("azure", vec![text(scope)]),
            },
            Self::Snowflake { account, user, key, passphrase } => {
                ("snowflake", vec![text(account), text(user), secret(key), maybe(passphrase.as_ref())])
            }
            Self::OracleKey { key, passphrase } => ("oracle", vec![secret(key), maybe(passphrase.as_ref())]),
        };
        hashed(kind, parts)
    }
}

/// One field of an identity, or that there is none.
struct Part(Option<Vec<u8>>);

/// Each part with its length, so that no two lists read the same.
fn hashed(kind: &str, parts: Vec<Part>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(kind);
    for Part(part) in parts {
        match part.map(Secret::from) {
            Some(bytes) => {
                hash.update([1]);
                hash.update(bytes.expose().len().to_be_bytes());
                hash.update(bytes.expose());
            }
            None => hash.update([0]),
        }
    }
    hash.finalize().into()
}

fn bearer(token: LoginToken) -> Result<(GrantedToken, Duration), SigningError> {
    let text = token.token.expose_text().ok_or(SigningError::Unsendable)?;
    Ok((GrantedToken::Bearer(sensitive(format!("Bearer {text}"))?), token.lasts))
}

/// The kind alone.
impl fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AwsRole { .. } => "AwsRole",
            Self::AwsOwn { .. } => "AwsOwn",
            Self::Google(_) => "Google",
            Self::GoogleMachine => "GoogleMachine",
            Self::Azure { .. } => "Azure",
            Self::Snowflake { .. } => "Snowflake",
            Self::OracleKey { .. } => "OracleKey",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_in_a_request_makes_it_another() {
        let keys = |id: &str| AwsKeys { id: id.to_owned().into(), secret: "s".to_owned().into(), session: None };
        let role = |base: Option<AwsKeys>, region: &str, external: Option<&str>| TokenRequest::AwsRole {
            base,
            region: region.into(),
            role_arn: "arn".to_owned().into(),
            external_id: external.map(|id| id.to_owned().into()),
        };
        let azure = |identity| TokenRequest::Azure { identity, scope: "s".into() };
        let client = |client: &str, secret: &str| {
            azure(AzureIdentity::Client { tenant: "t".into(), client: client.into(), secret: secret.to_owned().into() })
        };
        let all = [
            role(None, "r", None),
            role(None, "r", Some("")),
            role(None, "q", None),
            role(Some(keys("a")), "r", None),
            role(Some(keys("b")), "r", None),
            TokenRequest::AwsOwn { region: "r".into() },
            TokenRequest::GoogleMachine,
            client("ab", "c"),
            client("a", "bc"),
            azure(AzureIdentity::Managed { client: None }),
            azure(AzureIdentity::Managed { client: Some("ab".into()) }),
            azure(AzureIdentity::Workload { tenant: None, client: Some("ab".into()) }),
            azure(AzureIdentity::Workload { tenant: Some("ab".into()), client: None }),
            azure(AzureIdentity::Own),
            TokenRequest::OracleKey { key: "s".to_owned().into(), passphrase: None },
        ];
        for (n, one) in all.iter().enumerate() {
            for (m, other) in all.iter().enumerate() {
                assert_eq!(one.identity() == other.identity(), n == m, "{n} {m}");
            }
        }
        assert_eq!(format!("{:?}", client("c", "s3cret")), "Azure");
    }
}
