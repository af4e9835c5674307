//! A secret from Vault, with a token that was given or that a login brought.

use super::Fetcher;
use crate::secrets::login::Login;
use crate::secrets::reference::{ManagerAccess, Reference};
use crate::secrets::seal::Secret;
use crate::secrets::{FetchError, vault};
use std::time::Instant;

impl Fetcher {
    pub(super) async fn ask_vault(
        &self,
        reference: &Reference,
        address: &str,
        namespace: Option<&str>,
    ) -> Result<Secret, FetchError> {
        let token = self.vault_token(reference, address, namespace).await?;
        let ask = |path: &str| vault::get_secret(address, path, &token, namespace);
        let found = vault::secret(&self.login.send(ask(&reference.secret_path)).await?);
        match (found, vault::versioned(&reference.secret_path)) {
            (Err(FetchError::Missing(_)), Some(path)) => vault::secret(&self.login.send(ask(&path)).await?),
            (found, _) => found,
        }
    }

    async fn vault_token(
        &self,
        reference: &Reference,
        address: &str,
        namespace: Option<&str>,
    ) -> Result<Secret, FetchError> {
        if let ManagerAccess::VaultToken { token, .. } = &reference.access {
            return Ok(token.clone());
        }
        if let Some(Login::Token(token)) = self.logins.find(&reference.login, Instant::now()) {
            return Ok(token);
        }
        let request = match &reference.access {
            ManagerAccess::VaultAppRole { role_id, secret_id, .. } => {
                vault::login_by_approle(address, role_id, secret_id, namespace)
            }
            ManagerAccess::VaultKubernetes { role, .. } => {
                let jwt = self.login.own()?.kubernetes_token().await?;
                vault::login_by_kubernetes(address, role, &jwt, namespace)
            }
            _ => return Err(FetchError::Malformed("not a way to log in to Vault")),
        };
        Ok(self.remember_login(reference, vault::logged_in(&self.login.send(request).await?)?))
    }
}
