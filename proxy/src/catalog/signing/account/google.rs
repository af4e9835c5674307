//! Google: a service account's key file, the machine's own account, or a token that the caller brings.

use super::{Account, AccountCredential, BadAccount, MAX_SECRET};
use crate::catalog::signing::token_request::TokenRequest;
use http::header;
use shared::secrets::cloud::ServiceAccount;
use std::borrow::Cow;

const FILE: &str = "vertex_service_account_json";

impl Account<'_> {
    pub(super) fn google(&self) -> Result<AccountCredential, BadAccount> {
        match (self.text("vertex_auth_type")?, self.service_account()?) {
            (Some("basic"), _) => self.key_header(header::AUTHORIZATION),
            (Some("workloadIdentity"), _) => Ok(AccountCredential::Bearer(TokenRequest::GoogleMachine)),
            (Some("serviceAccount") | None, Some(account)) => {
                Ok(AccountCredential::Bearer(TokenRequest::Google(Box::new(account))))
            }
            (Some("serviceAccount"), None) => Err(BadAccount { field: FILE, problem: super::REQUIRED }),
            (None, None) => self.key_header(header::AUTHORIZATION),
            (Some(_), _) => {
                let problem = "must be one of basic, serviceAccount, workloadIdentity";
                Err(BadAccount { field: "vertex_auth_type", problem })
            }
        }
    }

    /// An object, or its JSON as text.
    fn service_account(&self) -> Result<Option<ServiceAccount>, BadAccount> {
        const NO_OBJECT: BadAccount = BadAccount { field: FILE, problem: "must be a JSON object" };
        let file = match (self.fields.object(FILE), self.raw(FILE)) {
            (Some(file), _) => Cow::Borrowed(file),
            (None, Some(text)) if text.len() > MAX_SECRET => return Err(NO_OBJECT),
            (None, Some(text)) => Cow::Owned(serde_json::from_str(text).map_err(|_| NO_OBJECT)?),
            (None, None) => return Ok(None),
        };
        ServiceAccount::parse(&file).map(Some).map_err(|problem| BadAccount { field: FILE, problem })
    }
}
