//! Client credentials: the gateway's own token at a server behind, which serves everybody who may use the integration.

use super::client::OAuthClient;
use super::ensure::{OAuthIntegration, ensured};
use super::token_endpoint::{TokenError, tokens};
use super::{due, place};
use crate::app::App;
use crate::http::ApiError;
use chrono::Utc;
use shared::secrets::seal::{Sealed, SealedPlace, Secret};
use uuid::Uuid;

/// The token that serves everybody, for integrations with client credentials; fetched where there is none that lasts.
pub async fn own_token(app: &App, integration: &OAuthIntegration) -> Result<Secret, ApiError> {
    const FIND: &str = "SELECT id, access_token FROM mcp_clients WHERE integration_id = $1 AND organisation_id = $2
        AND access_token IS NOT NULL AND (expires_at IS NULL OR expires_at > now() + interval '5 seconds')";
    let client = ensured(app, integration, None).await?;
    {
        let db = app.db.get().await?;
        let row = db.query_opt(FIND, &[&integration.id, &integration.organisation]).await?;
        if let Some(row) = row.filter(|row| row.try_get::<_, Uuid>("id").is_ok_and(|id| id == client.id)) {
            let sealed = Sealed::from(row.try_get::<_, &[u8]>("access_token")?);
            return Ok(app.sealer.open(&*db, &token_place(integration.organisation, client.id), &sealed).await?);
        }
    }
    fetch_own_token(app, integration.organisation, &client).await
}

/// Asks for the next token of client credentials and stores it.
pub async fn fetch_own_token(app: &App, organisation: Uuid, client: &OAuthClient) -> Result<Secret, ApiError> {
    const STORE: &str = "UPDATE mcp_clients SET access_token = $3, expires_at = $4, refresh_due_at = $5, failures = 0,
                         last_updated_at = now() WHERE id = $1 AND organisation_id = $2";
    let now = Utc::now();
    let mut form = vec![("grant_type", "client_credentials"), ("resource", client.resource.as_str())];
    form.extend(client.scope.as_deref().map(|scope| ("scope", scope)));
    let got = tokens(&app.outbound, client, form, now).await.map_err(|fault| match fault {
        TokenError::Dead | TokenError::UnknownClient => {
            ApiError::invalid("the authorisation server refuses the client credentials")
        }
        TokenError::Failed(sentence) => ApiError::invalid(sentence),
    })?;
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    let sealed = app.sealer.seal(&tx, &token_place(organisation, client.id), got.access.expose()).await?.to_vec();
    tx.execute(STORE, &[&client.id, &organisation, &sealed, &got.expires_at, &due(now, got.expires_at)]).await?;
    tx.commit().await?;
    Ok(got.access)
}

fn token_place(organisation: Uuid, id: Uuid) -> SealedPlace {
    place(organisation, "mcp_clients", id, "access_token")
}
