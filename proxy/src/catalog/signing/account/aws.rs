//! AWS: keys of the account, a role that they or our own identity take on, our own identity itself, or an API key, which
//! is a plain bearer token.

use super::{Account, AccountCredential, BadAccount};
use crate::catalog::signing::token_request::TokenRequest;
use http::HeaderName;
use shared::secrets::cloud::AwsKeys;

impl Account<'_> {
    /// `key_header` carries an API key.
    pub(super) fn aws(&self, service: &'static str, key_header: HeaderName) -> Result<AccountCredential, BadAccount> {
        let region = self.aws_region()?;
        let lent = |keys, region| Ok(AccountCredential::AwsLent { keys, region, service });
        match self.text("aws_auth_type")? {
            Some("apiKey") => self.key_header(key_header),
            Some("assumedRole") => {
                let role_arn = self.need("aws_role_arn")?;
                if !role_arn.starts_with("arn:") {
                    return Err(BadAccount { field: "aws_role_arn", problem: "must begin with arn:" });
                }
                let keys = TokenRequest::AwsRole {
                    base: self.aws_keys()?,
                    region: region.clone(),
                    role_arn: role_arn.to_owned().into(),
                    external_id: self.secret("aws_external_id")?,
                };
                lent(keys, region)
            }
            Some("serviceRole") => lent(TokenRequest::AwsOwn { region: region.clone() }, region),
            Some("accessKey") | None => match self.aws_keys()? {
                Some(keys) => Ok(AccountCredential::AwsKeys { keys, region, service }),
                // Nobody said how to authenticate, and a key is all there is.
                None if self.key.is_some() => self.key_header(key_header),
                None => Err(BadAccount { field: "aws_access_key_id", problem: super::REQUIRED }),
            },
            Some(_) => {
                let problem = "must be one of accessKey, assumedRole, serviceRole, apiKey";
                Err(BadAccount { field: "aws_auth_type", problem })
            }
        }
    }

    /// As signatures name it, and hosts of STS.
    fn aws_region(&self) -> Result<String, BadAccount> {
        let region = self.text("aws_region")?.unwrap_or("us-east-1");
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if region.len() > 63 || !region.bytes().all(is_name) {
            return Err(BadAccount { field: "aws_region", problem: "may only have letters, digits and hyphens" });
        }
        Ok(region.to_owned())
    }

    /// Both halves or none.
    fn aws_keys(&self) -> Result<Option<AwsKeys>, BadAccount> {
        let (id, secret) = (self.text("aws_access_key_id")?, self.text("aws_secret_access_key")?);
        let half = |field| Err(BadAccount { field, problem: super::REQUIRED });
        let (id, secret) = match (id, secret) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return half("aws_access_key_id"),
            (Some(_), None) => return half("aws_secret_access_key"),
            (Some(id), Some(secret)) => (id, secret),
        };
        let session = match self.raw("aws_session_token") {
            Some(token) if token.len() > 16 << 10 || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(BadAccount { field: "aws_session_token", problem: "is no header value" });
            }
            token => token.map(|token| token.to_owned().into()),
        };
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(BadAccount { field: "aws_access_key_id", problem: "may only have letters and digits" });
        }
        Ok(Some(AwsKeys { id: id.to_owned().into(), secret: secret.to_owned().into(), session }))
    }
}
