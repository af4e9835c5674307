//! A secret from Azure, with a token of the reference's own client or of our own identity.

use super::Fetcher;
use crate::seal::Secret;
use crate::secrets::http::Request;
use crate::secrets::login::Login;
use crate::secrets::reference::{ManagerAccess, Reference};
use crate::secrets::{FetchError, azure};
use chrono::Utc;
use std::time::Instant;

impl Fetcher {
    pub(super) async fn ask_azure(&self, reference: &Reference, vault_url: &str) -> Result<Secret, FetchError> {
        let token = match self.logins.find(&reference.login, Instant::now()) {
            Some(Login::Token(token)) => token,
            _ => {
                let token = azure::token(&self.send(self.azure_login(reference, vault_url).await?).await?)?;
                self.kept(reference, token)
            }
        };
        let vault = self.endpoints.azure_vault.as_deref().unwrap_or(vault_url);
        let response = self.send(azure::get_secret(vault, &reference.secret_path, &token)).await?;
        azure::secret(&response, Utc::now().timestamp())
    }

    async fn azure_login(&self, reference: &Reference, vault_url: &str) -> Result<Request, FetchError> {
        let audience = azure::audience(vault_url);
        let login = self.endpoints.azure_login.as_deref().unwrap_or_else(|| azure::login_host(vault_url));
        let client = match &reference.access {
            ManagerAccess::AzureEntra { tenant, client, secret, .. } => {
                return Ok(azure::token_by_secret(login, tenant, client, secret, &audience));
            }
            ManagerAccess::AzureManaged { client, .. } => client.as_deref(),
            _ => {
                let own = self.own.shown()?;
                let known = (own.variable("AZURE_TENANT_ID"), own.variable("AZURE_CLIENT_ID"));
                if let (Some(tenant), Some(client)) = known {
                    if let Some(assertion) = own.file("AZURE_FEDERATED_TOKEN_FILE").await {
                        return Ok(azure::token_by_assertion(login, tenant, client, &assertion, &audience));
                    }
                    if let Some(secret) = own.variable("AZURE_CLIENT_SECRET") {
                        let secret = secret.to_owned().into();
                        return Ok(azure::token_by_secret(login, tenant, client, &secret, &audience));
                    }
                }
                known.1
            }
        };
        let own = self.own.shown()?;
        Ok(match (own.variable("IDENTITY_ENDPOINT"), own.variable("IDENTITY_HEADER")) {
            (Some(endpoint), Some(header)) => azure::token_of_app(endpoint, header, client, &audience),
            _ => azure::token_of_machine(&self.endpoints.machine, client, &audience),
        })
    }
}
