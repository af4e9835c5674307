//! Becoming a client: the authorisation server is found and the gateway registered there when somebody first needs it.
//! Tokens were given to this client by this issuer, so when either changes they are erased with it.

use super::client::{OAuthClient, StoredMetadata, is_per_person, of_integration, secret_place};
use super::configured::ConfiguredClient;
use super::discovery::{AuthorizationServer, Discovered, discover};
use super::place;
use super::registration::{Registered, auth_method, register};
use crate::app::App;
use crate::http::ApiError;
use chrono::Utc;
use serde_json::Value;
use shared::model::Credentials;
use shared::secrets::seal::{Sealed, Secret};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// The integration that a client is for.
#[derive(Debug)]
pub struct OAuthIntegration {
    pub organisation: Uuid,
    pub id: Uuid,
    pub url: String,
    pub auth_type: String,
    configured: ConfiguredClient,
}

impl OAuthIntegration {
    /// An active integration with what its operator told of the authorisation server.
    pub async fn load(app: &App, db: &impl GenericClient, organisation: Uuid, id: Uuid) -> Result<Self, ApiError> {
        const FIND: &str = "SELECT url, auth_type, sealed FROM mcp_integrations
                            WHERE id = $1 AND organisation_id = $2 AND status = 'active'";
        let row = db.query_opt(FIND, &[&id, &organisation]).await?.ok_or(ApiError::NotFound("mcp-integration"))?;
        let mut configured = ConfiguredClient::default();
        if let Some(sealed) = row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from) {
            let secret = app.sealer.open(db, &place(organisation, "mcp_integrations", id, "sealed"), &sealed).await?;
            let credentials = Credentials::parse(&secret).ok_or(ApiError::Internal)?;
            if let Some(given) = credentials.configurations.get("oauth_metadata").and_then(Value::as_object) {
                configured = ConfiguredClient::parse(app.outbound.guard(), given).map_err(|bad| {
                    ApiError::invalid(format!("configurations.oauth_metadata.{} {}", bad.field, bad.message))
                })?;
            }
        }
        Ok(Self { organisation, id, url: row.try_get("url")?, auth_type: row.try_get("auth_type")?, configured })
    }

    /// Whether tokens are a person's own.
    pub fn is_per_person(&self) -> bool {
        is_per_person(&self.auth_type)
    }
}

/// The client of an integration, found and registered anew where there is none that fits. `redirect_uri` is where people
/// come back to; none for client credentials. No connection to the database is held while others are asked.
pub async fn ensured(
    app: &App,
    integration: &OAuthIntegration,
    redirect_uri: Option<&str>,
) -> Result<OAuthClient, ApiError> {
    {
        let db = app.db.get().await?;
        if let Some(client) = of_integration(app, &*db, integration.organisation, integration.id).await?
            && fits(&client, &integration.configured, redirect_uri)
        {
            return Ok(client);
        }
    }
    let (found, registered) = made(app, integration, redirect_uri).await.map_err(ApiError::invalid)?;
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    replace(app, &tx, integration, &found, &registered, redirect_uri).await?;
    let client = of_integration(app, &tx, integration.organisation, integration.id).await?;
    tx.commit().await?;
    client.ok_or(ApiError::Internal)
}

/// Whether a client is still the one that is wanted.
fn fits(client: &OAuthClient, configured: &ConfiguredClient, redirect_uri: Option<&str>) -> bool {
    let is_same = |given: &Option<String>, own: &str| given.as_deref().is_none_or(|given| given == own);
    let secret = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_vec());
    let has_secret = match (&configured.client_id, &configured.client_secret) {
        (Some(_), given) => secret(given) == secret(&client.client_secret),
        (None, _) => client.secret_expires_at.is_none_or(|at| at > Utc::now()),
    };
    client.redirect_uri.as_deref() == redirect_uri
        && is_same(&configured.client_id, &client.client_id)
        && is_same(&configured.token_endpoint, &client.server.token_endpoint)
        && configured.scope.as_ref().is_none_or(|scope| client.scope.as_ref() == Some(scope))
        && has_secret
}

/// Where tokens come from, and who the gateway is there.
async fn made(
    app: &App,
    integration: &OAuthIntegration,
    redirect_uri: Option<&str>,
) -> Result<(Discovered, Registered), String> {
    let given = &integration.configured;
    let found = match (&given.token_endpoint, &given.authorization_endpoint, redirect_uri) {
        (Some(token_endpoint), Some(_), _) | (Some(token_endpoint), None, None) => Discovered {
            server: AuthorizationServer {
                issuer: given.issuer.clone().unwrap_or_else(|| token_endpoint.clone()),
                authorization_endpoint: given.authorization_endpoint.clone(),
                token_endpoint: token_endpoint.clone(),
                registration_endpoint: given.registration_endpoint.clone(),
                revocation_endpoint: given.revocation_endpoint.clone(),
                auth_methods: Vec::new(),
                names_issuer: false,
            },
            resource: integration.url.clone(),
            scope: None,
        },
        _ => discover(&app.outbound, &integration.url).await?,
    };
    let found = Discovered { scope: given.scope.clone().or(found.scope.clone()), ..found };
    let registered = match (&given.client_id, redirect_uri) {
        (Some(client_id), _) => Registered {
            client_id: client_id.clone(),
            client_secret: given.client_secret.clone(),
            auth_method: match (&given.auth_method, &given.client_secret) {
                (_, None) => "none".into(),
                (Some(method), Some(_)) => method.clone(),
                (None, Some(_)) => auth_method(&found.server).into(),
            },
            secret_expires_at: None,
        },
        (None, Some(redirect_uri)) => {
            register(&app.outbound, &found.server, redirect_uri, found.scope.as_deref()).await?
        }
        (None, None) => return Err("client credentials need a client_id in configurations.oauth_metadata".into()),
    };
    Ok((found, registered))
}

/// Tokens of the client before are of no use to this one, and must not be sent to its issuer.
async fn replace(
    app: &App,
    tx: &Transaction<'_>,
    integration: &OAuthIntegration,
    found: &Discovered,
    registered: &Registered,
    redirect_uri: Option<&str>,
) -> Result<(), ApiError> {
    // Held, so that the integration leads nowhere else meanwhile and only one of two callers registers.
    const HOLD: &str = "SELECT FROM mcp_integrations
        WHERE id = $1 AND organisation_id = $2 AND url = $3 AND status = 'active' FOR NO KEY UPDATE";
    const FORGET: &str = "DELETE FROM mcp_clients WHERE integration_id = $1 AND organisation_id = $2";
    const FORGET_TOKENS: &str = "DELETE FROM mcp_connections c USING mcp_servers s
        WHERE s.id = c.server_id AND s.mcp_integration_id = $1 AND s.organisation_id = $2 AND c.issuer IS NOT NULL";
    const MAKE: &str =
        "INSERT INTO mcp_clients (id, organisation_id, integration_id, issuer, metadata, resource, scope,
            client_id, client_secret, redirect_uri)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let (organisation, id) = (integration.organisation, Uuid::new_v4());
    if tx.query_opt(HOLD, &[&integration.id, &organisation, &integration.url]).await?.is_none() {
        return Err(ApiError::NotFound("mcp-integration"));
    }
    let current = of_integration(app, tx, organisation, integration.id).await?;
    if current.is_some_and(|client| fits(&client, &integration.configured, redirect_uri)) {
        return Ok(());
    }
    tx.execute(FORGET_TOKENS, &[&integration.id, &organisation]).await?;
    tx.execute(FORGET, &[&integration.id, &organisation]).await?;
    let secret = match &registered.client_secret {
        Some(secret) => Some(app.sealer.seal(tx, &secret_place(organisation, id), secret.expose()).await?.to_vec()),
        None => None,
    };
    let metadata = StoredMetadata {
        server: found.server.clone(),
        auth_method: registered.auth_method.clone(),
        secret_expires_at: registered.secret_expires_at,
    };
    let metadata = serde_json::to_value(metadata).map_err(|_| ApiError::Internal)?;
    let values: [&(dyn ToSql + Sync); 10] = [
        &id,
        &organisation,
        &integration.id,
        &found.server.issuer,
        &metadata,
        &found.resource,
        &found.scope,
        &registered.client_id,
        &secret,
        &redirect_uri,
    ];
    tx.execute(MAKE, &values).await?;
    Ok(())
}
