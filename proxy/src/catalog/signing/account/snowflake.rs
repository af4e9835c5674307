//! Snowflake: a user's key pair, of which a token is made; else a token that the caller made of it, as the row says.

use super::{Account, AccountCredential, BadAccount};
use crate::catalog::signing::token_request::TokenRequest;

impl Account<'_> {
    pub(super) fn snowflake(&self) -> Result<Option<AccountCredential>, BadAccount> {
        let Some(key) = self.secret("snowflake_private_key")? else { return Ok(None) };
        Ok(Some(AccountCredential::Bearer(TokenRequest::Snowflake {
            account: self.need("snowflake_account")?.to_owned(),
            user: self.need("snowflake_user")?.to_owned(),
            key,
            passphrase: self.secret("snowflake_private_key_passphrase")?,
        })))
    }
}
