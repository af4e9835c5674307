//! A secret from Azure, with a token of the reference's own client or of our own identity.

use super::Fetcher;
use crate::secrets::cloud::AzureIdentity;
use crate::secrets::login::Login;
use crate::secrets::reference::{ManagerAccess, Reference};
use crate::secrets::seal::Secret;
use crate::secrets::{FetchError, azure};
use chrono::Utc;
use std::time::Instant;

impl Fetcher {
    pub(super) async fn ask_azure(&self, reference: &Reference, vault_url: &str) -> Result<Secret, FetchError> {
        let token = match self.logins.find(&reference.login, Instant::now()) {
            Some(Login::Token(token)) => token,
            _ => {
                let (login, scope) = (azure::login_host(vault_url), azure::scope(vault_url));
                let token = self.login.azure_token(&identity(&reference.access), login, &scope).await?;
                self.remember_login(reference, token)
            }
        };
        let response = self.login.send(azure::get_secret(vault_url, &reference.secret_path, &token)).await?;
        azure::secret(&response, Utc::now().timestamp())
    }
}

fn identity(access: &ManagerAccess) -> AzureIdentity {
    match access {
        ManagerAccess::AzureEntra { tenant, client, secret, .. } => {
            AzureIdentity::Client { tenant: tenant.clone(), client: client.clone(), secret: secret.clone() }
        }
        ManagerAccess::AzureManaged { client, .. } => AzureIdentity::Managed { client: client.clone() },
        _ => AzureIdentity::Own,
    }
}
