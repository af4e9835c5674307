//! The gateway as a client of one authorisation server, as it is stored: one for each integration.

use super::discovery::AuthorizationServer;
use super::place;
use crate::app::App;
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use shared::secrets::seal::{Sealed, SealedPlace, Secret};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// A client, opened.
#[derive(Debug)]
pub struct OAuthClient {
    pub id: Uuid,
    pub server: AuthorizationServer,
    pub resource: String,
    pub scope: Option<String>,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub auth_method: String,
    pub redirect_uri: Option<String>,
    pub secret_expires_at: Option<DateTime<Utc>>,
}

/// The column `metadata`.
#[derive(Serialize, Deserialize)]
pub struct StoredMetadata {
    #[serde(flatten)]
    pub server: AuthorizationServer,
    pub auth_method: String,
    pub secret_expires_at: Option<DateTime<Utc>>,
}

const COLUMNS: &str = "id, organisation_id, integration_id, metadata, resource, scope, client_id, client_secret,
                       redirect_uri";

/// Whether tokens of such an integration are a person's own.
pub fn is_per_person(auth_type: &str) -> bool {
    matches!(auth_type, "oauth_auto" | "oauth")
}

pub async fn of_integration(
    app: &App,
    db: &impl GenericClient,
    organisation: Uuid,
    integration: Uuid,
) -> Result<Option<OAuthClient>, ApiError> {
    let find = format!("SELECT {COLUMNS} FROM mcp_clients WHERE integration_id = $1 AND organisation_id = $2");
    match db.query_opt(&find, &[&integration, &organisation]).await? {
        Some(row) => opened(app, db, &row).await.map(Some),
        None => Ok(None),
    }
}

async fn opened(app: &App, db: &impl GenericClient, row: &Row) -> Result<OAuthClient, ApiError> {
    let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
    let client_secret = match row.try_get::<_, Option<&[u8]>>("client_secret")?.map(Sealed::from) {
        Some(sealed) => Some(app.sealer.open(db, &secret_place(organisation, id), &sealed).await?),
        None => None,
    };
    let metadata = serde_json::from_value::<StoredMetadata>(row.try_get("metadata")?);
    let metadata = metadata.map_err(|_| ApiError::Internal)?;
    Ok(OAuthClient {
        id,
        server: metadata.server,
        resource: row.try_get("resource")?,
        scope: row.try_get("scope")?,
        client_id: row.try_get("client_id")?,
        client_secret,
        auth_method: metadata.auth_method,
        redirect_uri: row.try_get("redirect_uri")?,
        secret_expires_at: metadata.secret_expires_at,
    })
}

/// Forgets a client that its issuer does not know any more, so that the next who connects registers anew.
pub async fn forget(db: &impl GenericClient, organisation: Uuid, client: Uuid) -> Result<(), tokio_postgres::Error> {
    const FORGET: &str = "DELETE FROM mcp_clients WHERE id = $1 AND organisation_id = $2";
    db.execute(FORGET, &[&client, &organisation]).await.map(drop)
}

pub fn secret_place(organisation: Uuid, id: Uuid) -> SealedPlace {
    place(organisation, "mcp_clients", id, "client_secret")
}
