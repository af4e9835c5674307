//! Oracle: a user's key, named by its fingerprint.

use super::{Account, AccountCredential, BadAccount};
use crate::catalog::signing::token_request::TokenRequest;

impl Account<'_> {
    pub(super) fn oracle(&self) -> Result<AccountCredential, BadAccount> {
        let part = |field: &'static str| {
            let text = self.need(field)?;
            // It stands in quotes in a header.
            let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-".contains(&byte);
            match text.bytes().all(is_id) {
                true => Ok(text),
                false => Err(BadAccount { field, problem: "may only have letters, digits, dots, colons and hyphens" }),
            }
        };
        let (tenancy, user) = (part("oracle_tenancy")?, part("oracle_user")?);
        let key_id = format!("{tenancy}/{user}/{}", part("oracle_fingerprint")?);
        let key = TokenRequest::OracleKey {
            key: self.need_secret("oracle_private_key")?,
            passphrase: self.secret("oracle_key_passphrase")?,
        };
        Ok(AccountCredential::Oracle { key_id, key })
    }
}
