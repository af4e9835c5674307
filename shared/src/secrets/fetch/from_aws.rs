//! A secret from AWS: with keys that were given, or with those that our own identity has or takes on.

use super::Fetcher;
use crate::seal::Secret;
use crate::secrets::aws::{self, Lent};
use crate::secrets::http::Request;
use crate::secrets::login::Login;
use crate::secrets::reference::{ManagerAccess, Reference};
use crate::secrets::sigv4::AwsKeys;
use crate::secrets::{FetchError, sigv4};
use chrono::Utc;
use std::time::{Duration, Instant};

impl Fetcher {
    pub(super) async fn ask_aws(&self, reference: &Reference) -> Result<Secret, FetchError> {
        let region = match &reference.access {
            ManagerAccess::AwsKey { region, .. } | ManagerAccess::AwsRole { region, .. } => region,
            ManagerAccess::AwsOwn { region: Some(region) } => region,
            _ => self.own.shown()?.region().ok_or(FetchError::NoIdentity("AWS_REGION is not set"))?,
        };
        let keys = self.aws_keys(reference, region).await?;
        let request = aws::get_secret(&self.aws_endpoint("secretsmanager", region), &reference.secret_path);
        let request = sigv4::signed(request, &keys, region, "secretsmanager", Utc::now());
        aws::secret(&self.send(request).await?)
    }

    fn aws_endpoint(&self, service: &str, region: &str) -> String {
        self.endpoints.aws.clone().unwrap_or_else(|| aws::endpoint(service, region))
    }

    async fn aws_keys(&self, reference: &Reference, region: &str) -> Result<AwsKeys, FetchError> {
        if let ManagerAccess::AwsKey { id, secret, .. } = &reference.access {
            return Ok(AwsKeys { id: id.clone(), secret: secret.clone(), session: None });
        }
        if let Some(Login::Aws(keys)) = self.logins.find(&reference.login, Instant::now()) {
            return Ok(keys);
        }
        let own = self.own_aws_keys(region).await?;
        let lent = match &reference.access {
            ManagerAccess::AwsRole { role_arn, external_id, .. } => {
                let request = aws::assume_role(&self.aws_endpoint("sts", region), role_arn, external_id.as_ref());
                let request = sigv4::signed(request, &own.keys, region, "sts", Utc::now());
                aws::assumed(&self.send(request).await?)?
            }
            _ => own,
        };
        let lasts = lent.until.map_or(Duration::from_secs(300), |end| (end - Utc::now()).to_std().unwrap_or_default());
        self.logins.keep(reference.login, Login::Aws(lent.keys.clone()), lasts, Instant::now());
        Ok(lent.keys)
    }

    /// In the order of AWS's own libraries: variables, web identity, container, machine.
    async fn own_aws_keys(&self, region: &str) -> Result<Lent, FetchError> {
        let own = self.own.shown()?;
        if let Some(keys) = own.aws_keys() {
            return Ok(Lent { keys, until: None });
        }
        if let (Some(role), Some(token)) = (own.variable("AWS_ROLE_ARN"), own.file("AWS_WEB_IDENTITY_TOKEN_FILE").await)
        {
            let request = aws::assume_role_with_web_identity(&self.aws_endpoint("sts", region), role, &token);
            return aws::assumed(&self.send(request).await?);
        }
        let relative = own.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let relative = relative.map(|path| format!("{}{path}", self.endpoints.container));
        if let Some(url) = relative.or_else(|| own.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").map(str::to_owned)) {
            let mut request = Request::get(url).to_own_identity();
            let token = own.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned);
            let token = match token {
                Some(token) => Some(token),
                None => own.file("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").await,
            };
            if let Some(token) = token {
                request = request.with("authorization", token);
            }
            return aws::lent(&self.send(request).await?);
        }
        self.aws_keys_of_machine().await
    }

    async fn aws_keys_of_machine(&self) -> Result<Lent, FetchError> {
        const NOBODY: FetchError = FetchError::NoIdentity("this machine has no role in AWS");
        let machine = format!("{}/latest", self.endpoints.machine);
        let ask = Request::put(format!("{machine}/api/token")).with("x-aws-ec2-metadata-token-ttl-seconds", "300");
        let session = self.send(ask.to_own_identity()).await?;
        let session = String::from_utf8(session.body).ok().filter(|_| (200..300).contains(&session.status));
        let session = session.ok_or(NOBODY)?;
        let roles = format!("{machine}/meta-data/iam/security-credentials/");
        let get = |url: String| Request::get(url).with("x-aws-ec2-metadata-token", session.clone()).to_own_identity();
        let role = self.send(get(roles.clone())).await?;
        let name = String::from_utf8_lossy(&role.body).lines().next().unwrap_or_default().trim().to_owned();
        if !role.is_success() || name.is_empty() {
            return Err(NOBODY);
        }
        aws::lent(&self.send(get(format!("{roles}{name}"))).await?)
    }
}
