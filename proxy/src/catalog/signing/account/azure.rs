//! Azure: the resource's key, a token that the caller brings, or one of Entra for a client or for our own identity.

use super::{Account, AccountCredential, BadAccount, header_value};
use crate::catalog::signing::token_request::TokenRequest;
use http::{HeaderName, header};
use shared::secrets::cloud::AzureIdentity;

/// What Azure's models belong to.
const SCOPE: &str = "https://cognitiveservices.azure.com/.default";

impl Account<'_> {
    /// `key_header` carries the resource's key.
    pub(super) fn azure(&self, key_header: HeaderName) -> Result<AccountCredential, BadAccount> {
        let identity = match self.text("azure_auth_mode")? {
            Some("default") | None => {
                return match self.raw("azure_ad_token") {
                    Some(token) => header_value("azure_ad_token", header::AUTHORIZATION, token),
                    None => self.key_header(key_header),
                };
            }
            Some("entra") => AzureIdentity::Client {
                tenant: self
                    .tenant("azure_entra_tenant_id")?
                    .ok_or(BadAccount { field: "azure_entra_tenant_id", problem: super::REQUIRED })?,
                client: self.need("azure_entra_client_id")?.to_owned(),
                secret: self.need_secret("azure_entra_client_secret")?,
            },
            Some("managed") => AzureIdentity::Managed { client: self.owned("azure_managed_client_id")? },
            Some("workload") => AzureIdentity::Workload {
                tenant: self.tenant("azure_workload_tenant_id")?,
                client: self.owned("azure_workload_client_id")?,
            },
            Some("entraFederated") => AzureIdentity::Workload {
                tenant: self.tenant("azure_entra_tenant_id")?,
                client: self.owned("azure_entra_client_id")?,
            },
            Some(_) => {
                let problem = "must be one of default, entra, managed, workload, entraFederated";
                return Err(BadAccount { field: "azure_auth_mode", problem });
            }
        };
        let scope = self.text("azure_entra_scope")?.unwrap_or(SCOPE).to_owned();
        Ok(AccountCredential::Bearer(TokenRequest::Azure { identity, scope }))
    }

    /// A part of a path: an id or a domain.
    fn tenant(&self, field: &'static str) -> Result<Option<String>, BadAccount> {
        let tenant = self.owned(field)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        match &tenant {
            Some(name) if !name.bytes().all(is_name) || name.starts_with('.') => {
                Err(BadAccount { field, problem: "may only have letters, digits, hyphens and dots" })
            }
            _ => Ok(tenant),
        }
    }

    fn owned(&self, field: &'static str) -> Result<Option<String>, BadAccount> {
        Ok(self.text(field)?.map(str::to_owned))
    }
}
