//! Logging in to a cloud: in as many steps as it takes, each through `Http`. What is asked and how answers are read
//! stand with their cloud; here is the order in which identities are tried.

use super::aws::{self, LentKeys};
use super::azure::{self, AzureIdentity};
use super::google::{self, ServiceAccount};
use super::http::{Http, Request, Response};
use super::own_identity::OwnIdentity;
use super::sigv4::{self, AwsKeys, SigningScope};
use super::{LoginError, LoginToken, oauth_token};
use crate::secrets::seal::Secret;
use chrono::Utc;

/// Where services are that have fixed addresses. Others than the usual ones are for private clouds and for tests.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// In place of every service of AWS that is asked here.
    pub aws: Option<String>,
    pub azure_login: Option<String>,
    /// What virtual machines ask who they are.
    pub machine: String,
    /// What containers on AWS ask.
    pub container: String,
    /// What machines of Google ask.
    pub google_metadata: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            aws: None,
            azure_login: None,
            machine: "http://169.254.169.254".into(),
            container: "http://169.254.170.2".into(),
            google_metadata: "http://metadata.google.internal".into(),
        }
    }
}

pub struct CloudLogin {
    http: Box<dyn Http>,
    own: OwnIdentity,
    endpoints: Endpoints,
}

impl CloudLogin {
    pub fn new(http: impl Http + 'static, own: OwnIdentity, endpoints: Endpoints) -> Self {
        Self { http: Box::new(http), own, endpoints }
    }

    pub async fn send(&self, request: Request) -> Result<Response, LoginError> {
        self.http.send(request).await.map_err(LoginError::Away)
    }

    /// Refuses where it is not lent.
    pub fn own(&self) -> Result<&OwnIdentity, LoginError> {
        self.own.shown()
    }

    pub fn aws_endpoint(&self, service: &str, region: &str) -> String {
        self.endpoints.aws.clone().unwrap_or_else(|| aws::endpoint(service, region))
    }

    /// The keys of a role, which `keys` may take on.
    pub async fn assume_role(
        &self,
        keys: &AwsKeys,
        region: &str,
        role_arn: &Secret,
        external_id: Option<&Secret>,
    ) -> Result<LentKeys, LoginError> {
        let request = aws::assume_role(&self.aws_endpoint("sts", region), role_arn, external_id);
        let request = sigv4::signed(request, keys, SigningScope { region, service: "sts" }, Utc::now());
        aws::assumed(&self.send(request).await?)
    }

    /// In the order of AWS's own libraries: variables, web identity, container, machine.
    pub async fn own_aws_keys(&self, region: &str) -> Result<LentKeys, LoginError> {
        let own = self.own()?;
        if let Some(keys) = own.aws_keys() {
            return Ok(LentKeys { keys, until: None });
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

    /// Instance metadata, version 2: a session first, then the role's name, then its keys.
    async fn aws_keys_of_machine(&self) -> Result<LentKeys, LoginError> {
        const NOBODY: LoginError = LoginError::NoIdentity("this machine has no role in AWS");
        let endpoint = self.own()?.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or(&self.endpoints.machine);
        let machine = format!("{}/latest", endpoint.trim_end_matches('/'));
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

    /// `login` is Entra's address in the cloud that `scope` belongs to.
    pub async fn azure_token(
        &self,
        identity: &AzureIdentity,
        login: &str,
        scope: &str,
    ) -> Result<LoginToken, LoginError> {
        let login = self.endpoints.azure_login.as_deref().unwrap_or(login);
        let request = match identity {
            AzureIdentity::Client { tenant, client, secret } => {
                azure::token_by_secret(login, tenant, client, secret, scope)
            }
            AzureIdentity::Managed { client } => self.azure_managed(client.as_deref(), scope)?,
            AzureIdentity::Workload { tenant, client } => {
                const INCOMPLETE: LoginError =
                    LoginError::NoIdentity("workload identity needs AZURE_FEDERATED_TOKEN_FILE, a tenant and a client");
                let own = self.own()?;
                let tenant = tenant.as_deref().or_else(|| own.variable("AZURE_TENANT_ID")).ok_or(INCOMPLETE)?;
                let client = client.as_deref().or_else(|| own.variable("AZURE_CLIENT_ID")).ok_or(INCOMPLETE)?;
                let assertion = own.file("AZURE_FEDERATED_TOKEN_FILE").await.ok_or(INCOMPLETE)?;
                azure::token_by_assertion(login, tenant, client, &assertion, scope)
            }
            AzureIdentity::Own => self.azure_own(login, scope).await?,
        };
        oauth_token(&self.send(request).await?)
    }

    /// In the order of Azure's own libraries: workload, client of the environment, app, machine.
    async fn azure_own(&self, login: &str, scope: &str) -> Result<Request, LoginError> {
        let own = self.own()?;
        let known = (own.variable("AZURE_TENANT_ID"), own.variable("AZURE_CLIENT_ID"));
        if let (Some(tenant), Some(client)) = known {
            if let Some(assertion) = own.file("AZURE_FEDERATED_TOKEN_FILE").await {
                return Ok(azure::token_by_assertion(login, tenant, client, &assertion, scope));
            }
            if let Some(secret) = own.variable("AZURE_CLIENT_SECRET") {
                let secret = secret.to_owned().into();
                return Ok(azure::token_by_secret(login, tenant, client, &secret, scope));
            }
        }
        self.azure_managed(known.1, scope)
    }

    fn azure_managed(&self, client: Option<&str>, scope: &str) -> Result<Request, LoginError> {
        let own = self.own()?;
        Ok(match (own.variable("IDENTITY_ENDPOINT"), own.variable("IDENTITY_HEADER")) {
            (Some(endpoint), Some(header)) => azure::token_of_app(endpoint, header, client, scope),
            _ => azure::token_of_machine(&self.endpoints.machine, client, scope),
        })
    }

    pub async fn google_token(&self, account: &ServiceAccount) -> Result<LoginToken, LoginError> {
        let request = google::token_by_assertion(account, Utc::now().timestamp())?;
        oauth_token(&self.send(request).await?)
    }

    pub async fn google_token_of_machine(&self) -> Result<LoginToken, LoginError> {
        let named = self.own()?.variable("GCE_METADATA_HOST").map(|host| format!("http://{host}"));
        let metadata = named.as_deref().unwrap_or(&self.endpoints.google_metadata);
        oauth_token(&self.send(google::token_of_machine(metadata)).await?)
    }
}
