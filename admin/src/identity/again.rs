//! Whether somebody who was let in before still would be, and what they may do by now: for answers that last. Nothing that the
//! request carries is used up by it: a session is not renewed, and not kept alive.

use super::caller::authenticate;
use super::credential::{self, Credential};
use super::session;
use super::tokens::Tokens;
use super::{Call, Caller};
use crate::http::ApiError;
use crate::http::backpressure::db_queue::DbQueue;
use chrono::Utc;
use shared::headers::header_prefix::Aliases;
use shared::routes::Access;

pub async fn authenticate_again(
    call: &Call,
    db: &DbQueue,
    aliases: &Aliases,
    tokens: &Tokens,
) -> Result<Caller, ApiError> {
    let (headers, operation) = (&call.origin.headers, call.origin.operation);
    let found = match credential::sent(headers, aliases)? {
        Some(Credential::Jwt(token)) => tokens.authenticate(db, token, Utc::now()).await,
        Some(Credential::ApiKey(key)) => authenticate(key, &*db.get().await?, Utc::now()).await,
        None => {
            let workspace = session::named_workspace(headers, aliases);
            session::authenticate_again(&call.caller, operation.session_reach(), workspace, &*db.get().await?).await
        }
    };
    let caller = found.map_err(|failure| failure.refused)?;
    if let Access::Keys(kinds) = operation.access
        && !kinds.contains(caller.key.kind)
    {
        return Err(ApiError::WrongKeyKind);
    }
    match operation.scopes.are_met_by(&caller.scopes) {
        true => Ok(caller),
        false => Err(ApiError::MissingScope { needs: operation.scopes }),
    }
}
