//! Fetching one secret: log in where that is needed, ask, read. A login that was kept and is refused is made anew
//! once: it may have been revoked before its time.

mod from_aws;
mod from_azure;
mod from_vault;

use super::FetchError;
use super::cloud::{CloudLogin, Endpoints, Http, LoginToken, OwnIdentity};
use super::login::{Login, Logins};
use super::reference::{ManagerAccess, Reference};
use super::seal::Secret;
use super::value::FetchedSecret;
use std::time::Instant;

pub struct Fetcher {
    login: CloudLogin,
    logins: Logins,
}

impl Fetcher {
    pub fn new(http: impl Http + 'static, own: OwnIdentity, endpoints: Endpoints) -> Self {
        Self { login: CloudLogin::new(http, own, endpoints), logins: Logins::default() }
    }

    /// The secret as its manager holds it now.
    pub async fn fetch(&self, reference: &Reference) -> Result<FetchedSecret, FetchError> {
        let was_logged_in = self.logins.find(&reference.login, Instant::now()).is_some();
        match self.attempt(reference).await {
            Err(FetchError::Denied(_)) if was_logged_in => {
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

    fn remember_login(&self, reference: &Reference, token: LoginToken) -> Secret {
        let login = Login::Token(token.token.clone());
        self.logins.keep(reference.login, login, token.lasts, Instant::now());
        token.token
    }
}

#[cfg(test)]
mod tests;
