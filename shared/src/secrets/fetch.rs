//! Fetching one secret: log in where that is needed, ask, read. A login that was kept and is refused is made anew
//! once: it may have been revoked before its time.

mod from_aws;
mod from_azure;
mod from_vault;

use super::http::{Http, Request, Response};
use super::login::{Login, LoginToken, Logins};
use super::reference::{ManagerAccess, Reference};
use super::value::FetchedSecret;
use super::{FetchError, OwnIdentity};
use crate::seal::Secret;
use std::time::Instant;

/// Where services are that have fixed addresses. Others than the usual ones are for private clouds and for tests.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// In place of both AWS services.
    pub aws: Option<String>,
    pub azure_login: Option<String>,
    /// In place of the vault's own address.
    pub azure_vault: Option<String>,
    /// What virtual machines ask who they are.
    pub machine: String,
    /// What containers on AWS ask.
    pub container: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            aws: None,
            azure_login: None,
            azure_vault: None,
            machine: "http://169.254.169.254".into(),
            container: "http://169.254.170.2".into(),
        }
    }
}

pub struct Fetcher {
    http: Box<dyn Http>,
    own: OwnIdentity,
    endpoints: Endpoints,
    logins: Logins,
}

impl Fetcher {
    pub fn new(http: impl Http + 'static, own: OwnIdentity, endpoints: Endpoints) -> Self {
        Self { http: Box::new(http), own, endpoints, logins: Logins::default() }
    }

    /// The secret as its manager holds it now.
    pub async fn fetch(&self, reference: &Reference) -> Result<FetchedSecret, FetchError> {
        let was_kept = self.logins.find(&reference.login, Instant::now()).is_some();
        match self.attempt(reference).await {
            Err(FetchError::Denied(_)) if was_kept => {
                self.logins.forget(&reference.login);
                self.attempt(reference).await
            }
            outcome => outcome,
        }
    }

    async fn attempt(&self, reference: &Reference) -> Result<FetchedSecret, FetchError> {
        match &reference.access {
            ManagerAccess::AwsKey { .. } | ManagerAccess::AwsRole { .. } | ManagerAccess::AwsOwn { .. } => {
                self.ask_aws(reference).await.map(|text| FetchedSecret { text, is_always_map: false })
            }
            ManagerAccess::AzureEntra { vault_url, .. }
            | ManagerAccess::AzureManaged { vault_url, .. }
            | ManagerAccess::AzureOwn { vault_url } => {
                self.ask_azure(reference, vault_url).await.map(|text| FetchedSecret { text, is_always_map: false })
            }
            ManagerAccess::VaultToken { address, namespace, .. }
            | ManagerAccess::VaultAppRole { address, namespace, .. }
            | ManagerAccess::VaultKubernetes { address, namespace, .. } => self
                .ask_vault(reference, address, namespace.as_deref())
                .await
                .map(|text| FetchedSecret { text, is_always_map: true }),
        }
    }

    async fn send(&self, request: Request) -> Result<Response, FetchError> {
        self.http.send(request).await.map_err(FetchError::Away)
    }

    fn kept(&self, reference: &Reference, token: LoginToken) -> Secret {
        let login = Login::Token(token.token.clone());
        self.logins.keep(reference.login, login, token.lasts, Instant::now());
        token.token
    }
}

#[cfg(test)]
mod tests;
