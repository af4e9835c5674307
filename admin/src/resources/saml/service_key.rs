//! Our key pair for one organisation's identity provider: made when its settings first need one, sealed, and kept from
//! then on, because the identity provider pins its certificate.

use crate::app::App;
use crate::crud::Action;
use crate::http::ApiError;
use crate::saml::SamlSettings;
use crate::saml::key::ServiceKey;
use serde_json::Value;
use shared::seal::{Sealed, SealedPlace};
use tokio_postgres::GenericClient;
use uuid::Uuid;

const FIND: &str = "SELECT id, certificate, sealed_key FROM saml_keys WHERE organisation_id = $1";

fn place(organisation: Uuid, row: Uuid) -> SealedPlace {
    SealedPlace { organisation, table: "saml_keys", row, field: "sealed_key" }
}

pub async fn load(app: &App, db: &impl GenericClient, organisation: Uuid) -> Result<Option<ServiceKey>, ApiError> {
    let Some(row) = db.query_opt(FIND, &[&organisation]).await? else { return Ok(None) };
    let (id, certificate, sealed): (Uuid, Vec<u8>, Vec<u8>) =
        (row.try_get("id")?, row.try_get("certificate")?, row.try_get("sealed_key")?);
    let open = app.sealer.open(db, &place(organisation, id), &Sealed::from(sealed.as_slice())).await?;
    ServiceKey::from_der(open.expose(), &certificate).map(Some).map_err(|error| {
        tracing::error!(%error, "a stored SAML key cannot be read");
        ApiError::Internal
    })
}

/// Makes one if `saml` needs one and there is none. Two who set it at once wait for each other at the organisation's row.
pub async fn ensure(action: &Action<'_>, saml: &Value) -> Result<(), ApiError> {
    const INSERT: &str = "INSERT INTO saml_keys (id, organisation_id, certificate, sealed_key) VALUES ($1, $2, $3, $4)
        ON CONFLICT (organisation_id) DO NOTHING";
    let settings: Option<SamlSettings> = serde_json::from_value(saml.clone()).ok();
    let organisation = action.organisation_id();
    let is_needed = settings.is_some_and(|settings| settings.needs_key());
    if !is_needed || action.tx.query_opt(FIND, &[&organisation]).await?.is_some() {
        return Ok(());
    }
    let made = tokio::task::spawn_blocking(|| ServiceKey::generate("portcullis")).await;
    let key = made.map_err(|_| ApiError::Internal)?.map_err(|_| ApiError::Internal)?;
    let (private, certificate) = key.to_der().map_err(|_| ApiError::Internal)?;
    let id = Uuid::new_v4();
    let sealed = action.app.sealer.seal(&action.tx, &place(organisation, id), &private).await?.to_vec();
    action.tx.execute(INSERT, &[&id, &organisation, &certificate, &sealed]).await?;
    Ok(())
}
