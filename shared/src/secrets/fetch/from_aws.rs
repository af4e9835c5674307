//! A secret from AWS: with keys that were given, or with those that our own identity has or takes on.

use super::Fetcher;
use crate::secrets::cloud::AwsKeys;
use crate::secrets::cloud::sigv4;
use crate::secrets::cloud::sigv4::SigningScope;
use crate::secrets::login::Login;
use crate::secrets::reference::{ManagerAccess, Reference};
use crate::secrets::seal::Secret;
use crate::secrets::{FetchError, aws};
use chrono::Utc;
use std::time::Instant;

impl Fetcher {
    pub(super) async fn ask_aws(&self, reference: &Reference) -> Result<Secret, FetchError> {
        let region = match &reference.access {
            ManagerAccess::AwsKey { region, .. } | ManagerAccess::AwsRole { region, .. } => region,
            ManagerAccess::AwsOwn { region: Some(region) } => region,
            _ => self.login.own()?.region().ok_or(FetchError::NoIdentity("AWS_REGION is not set"))?,
        };
        let keys = self.aws_keys(reference, region).await?;
        let request = aws::get_secret(&self.login.aws_endpoint("secretsmanager", region), &reference.secret_path);
        let request = sigv4::signed(request, &keys, SigningScope { region, service: "secretsmanager" }, Utc::now());
        aws::secret(&self.login.send(request).await?)
    }

    async fn aws_keys(&self, reference: &Reference, region: &str) -> Result<AwsKeys, FetchError> {
        if let ManagerAccess::AwsKey { id, secret, .. } = &reference.access {
            return Ok(AwsKeys { id: id.clone(), secret: secret.clone(), session: None });
        }
        if let Some(Login::Aws(keys)) = self.logins.find(&reference.login, Instant::now()) {
            return Ok(keys);
        }
        let own = self.login.own_aws_keys(region).await?;
        let lent = match &reference.access {
            ManagerAccess::AwsRole { role_arn, external_id, .. } => {
                self.login.assume_role(&own.keys, region, role_arn, external_id.as_ref()).await?
            }
            _ => own,
        };
        self.logins.keep(reference.login, Login::Aws(lent.keys.clone()), lent.lasts(Utc::now()), Instant::now());
        Ok(lent.keys)
    }
}
