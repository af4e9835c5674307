//! Our key pair for one organisation's identity provider: made when its settings first need one, sealed, and kept from
//! then on, because the identity provider pins its certificate. A second one may stand beside it while it is replaced
//! (`keys`): both are in our metadata and open assertions, and the first alone signs.

use crate::app::App;
use crate::crud::Action;
use crate::http::{ApiError, Time};
use crate::saml::SamlSettings;
use crate::saml::key::ServiceKey;
use serde_json::Value;
use shared::secrets::seal::{Sealed, SealedPlace, Secret};
use shared::telemetry::LogLimit;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// The keys as they are stored.
pub struct StoredKeys {
    id: Uuid,
    pub active: StoredKey,
    pub standby: Option<StoredKey>,
}

pub struct StoredKey {
    /// DER.
    pub certificate: Vec<u8>,
    sealed: Vec<u8>,
    pub since: Time,
}

/// Which of the two a key is; each is sealed for its own column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    Active,
    Standby,
}

fn place(organisation: Uuid, row: Uuid, role: KeyRole) -> SealedPlace {
    let field = match role {
        KeyRole::Active => "sealed_key",
        KeyRole::Standby => "sealed_standby_key",
    };
    SealedPlace { organisation, table: "saml_keys", row, field }
}

impl StoredKeys {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (certificate, sealed): (Option<Vec<u8>>, Option<Vec<u8>>) =
            (row.try_get("standby_certificate")?, row.try_get("sealed_standby_key")?);
        let since: Option<Time> = row.try_get("standby_since")?;
        let standby = match (certificate, sealed, since) {
            (Some(certificate), Some(sealed), Some(since)) => Some(StoredKey { certificate, sealed, since }),
            _ => None,
        };
        let active = StoredKey {
            certificate: row.try_get("certificate")?,
            sealed: row.try_get("sealed_key")?,
            since: row.try_get("created_at")?,
        };
        Ok(Self { id: row.try_get("id")?, active, standby })
    }
}

/// `lock` is `FOR UPDATE`, or nothing.
pub async fn stored(db: &impl GenericClient, organisation: Uuid, lock: &str) -> Result<Option<StoredKeys>, ApiError> {
    let sql = format!(
        "SELECT id, certificate, sealed_key, created_at, standby_certificate, sealed_standby_key, standby_since
         FROM saml_keys WHERE organisation_id = $1 {lock}"
    );
    let row = db.query_opt(&sql, &[&organisation]).await?;
    Ok(row.as_ref().map(StoredKeys::from_row).transpose()?)
}

/// The key that signs first; none before one was needed.
pub async fn load(app: &App, db: &impl GenericClient, organisation: Uuid) -> Result<Vec<ServiceKey>, ApiError> {
    let Some(stored) = stored(db, organisation, "").await? else { return Ok(Vec::new()) };
    let mut keys = Vec::new();
    for (role, key) in [(KeyRole::Active, Some(&stored.active)), (KeyRole::Standby, stored.standby.as_ref())] {
        let Some(key) = key else { continue };
        let open = opened(app, db, organisation, stored.id, role, key).await?;
        let key = ServiceKey::from_der(open.expose(), &key.certificate).map_err(|error| {
            static UNREAD: LogLimit = LogLimit::new();
            if let Some(skipped) = UNREAD.pass() {
                tracing::error!(%error, skipped, "a stored SAML key cannot be read");
            }
            ApiError::Internal
        })?;
        keys.push(key);
    }
    Ok(keys)
}

async fn opened(
    app: &App,
    db: &impl GenericClient,
    organisation: Uuid,
    row: Uuid,
    role: KeyRole,
    key: &StoredKey,
) -> Result<Secret, ApiError> {
    Ok(app.sealer.open(db, &place(organisation, row, role), &Sealed::from(key.sealed.as_slice())).await?)
}

/// Makes one if `saml` needs one and there is none. Two who set it at once wait for each other at the organisation's row.
pub async fn ensure(action: &Action<'_>, saml: &Value) -> Result<(), ApiError> {
    let settings: Option<SamlSettings> = serde_json::from_value(saml.clone()).ok();
    let is_needed = settings.is_some_and(|settings| settings.needs_key());
    if !is_needed || stored(&action.tx, action.organisation_id(), "").await?.is_some() {
        return Ok(());
    }
    first(action).await
}

/// The first key of an organisation.
pub async fn first(action: &Action<'_>) -> Result<(), ApiError> {
    const INSERT: &str = "INSERT INTO saml_keys (id, organisation_id, certificate, sealed_key) VALUES ($1, $2, $3, $4)
        ON CONFLICT (organisation_id) DO NOTHING";
    let (id, organisation) = (Uuid::new_v4(), action.organisation_id());
    let (certificate, sealed) = made(action, id, KeyRole::Active).await?;
    action.tx.execute(INSERT, &[&id, &organisation, &certificate, &sealed]).await?;
    Ok(())
}

/// One more, beside the one that signs.
pub async fn stand_by(action: &Action<'_>, stored: &StoredKeys) -> Result<(), ApiError> {
    const UPDATE: &str = "UPDATE saml_keys SET standby_certificate = $2, sealed_standby_key = $3, standby_since = now()
        WHERE organisation_id = $1";
    let (certificate, sealed) = made(action, stored.id, KeyRole::Standby).await?;
    action.tx.execute(UPDATE, &[&action.organisation_id(), &certificate, &sealed]).await?;
    Ok(())
}

/// The two change places. Each is sealed anew, for the column that it goes to.
pub async fn change_places(action: &Action<'_>, stored: &StoredKeys, standby: &StoredKey) -> Result<(), ApiError> {
    const SWAP: &str = "UPDATE saml_keys SET certificate = standby_certificate, standby_certificate = certificate,
            sealed_key = $2, sealed_standby_key = $3, created_at = standby_since, standby_since = created_at
        WHERE organisation_id = $1";
    let (app, organisation) = (action.app, action.organisation_id());
    let next = opened(app, &action.tx, organisation, stored.id, KeyRole::Standby, standby).await?;
    let former = opened(app, &action.tx, organisation, stored.id, KeyRole::Active, &stored.active).await?;
    let next = sealed(action, stored.id, KeyRole::Active, next.expose()).await?;
    let former = sealed(action, stored.id, KeyRole::Standby, former.expose()).await?;
    action.tx.execute(SWAP, &[&organisation, &next, &former]).await?;
    Ok(())
}

pub async fn forget_standby(action: &Action<'_>) -> Result<(), ApiError> {
    const FORGET: &str =
        "UPDATE saml_keys SET standby_certificate = NULL, sealed_standby_key = NULL, standby_since = NULL
        WHERE organisation_id = $1";
    action.tx.execute(FORGET, &[&action.organisation_id()]).await?;
    Ok(())
}

/// A new certificate, and its private key as it is stored.
async fn made(action: &Action<'_>, row: Uuid, role: KeyRole) -> Result<(Vec<u8>, Vec<u8>), ApiError> {
    let made = tokio::task::spawn_blocking(|| ServiceKey::generate("portcullis")).await;
    let key = made.map_err(|_| ApiError::Internal)?.map_err(|_| ApiError::Internal)?;
    let (private, certificate) = key.to_der().map_err(|_| ApiError::Internal)?;
    Ok((certificate, sealed(action, row, role, &private).await?))
}

async fn sealed(action: &Action<'_>, row: Uuid, role: KeyRole, private: &[u8]) -> Result<Vec<u8>, ApiError> {
    let place = place(action.organisation_id(), row, role);
    Ok(action.app.sealer.seal(&action.tx, &place, private).await?.to_vec())
}
