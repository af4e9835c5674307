//! Tokens as the row of a connection stores them.

use super::{Tokens, place};
use crate::app::App;
use crate::http::ApiError;
use tokio_postgres::Transaction;
use uuid::Uuid;

/// Both tokens as they are stored in a row.
pub async fn sealed(
    app: &App,
    tx: &Transaction<'_>,
    organisation: Uuid,
    id: Uuid,
    tokens: &Tokens,
) -> Result<(Vec<u8>, Option<Vec<u8>>), ApiError> {
    let of = |field| place(organisation, "mcp_connections", id, field);
    let access = app.sealer.seal(tx, &of("access_token"), tokens.access.expose()).await?.to_vec();
    let refresh = match &tokens.refresh {
        Some(token) => Some(app.sealer.seal(tx, &of("refresh_token"), token.expose()).await?.to_vec()),
        None => None,
    };
    Ok((access, refresh))
}
