//! OIDC client secrets: sealed, shown as masks, kept when a change says nothing about them. A secret belongs to its
//! issuer: a change of issuer without a new secret forgets it, so that it is never sent to another host.

use super::sign_in::Oidc;
use crate::crud::Action;
use crate::http::{ApiError, Field, text};
use crate::identity::oidc::provider::{GENERAL_SECRET, LISTED_SECRETS, listed_secret};
use serde_json::{Map, Value};
use shared::identity::api_key;
use shared::secrets::seal::{Sealed, SealedPlace, Secret};

const MASK: &str = "masked_client_secret";

/// What a change says about the secret.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub enum ClientSecretChange {
    Keep,
    Forget,
    Replace(String),
}

/// Takes the secret out of what was sent. `stored` is the present `oidc` object.
pub fn taken(sent: &mut Field<Oidc>, stored: &Value) -> Result<ClientSecretChange, ApiError> {
    let oidc = match sent {
        Field::Absent => return Ok(ClientSecretChange::Keep),
        Field::Null => return Ok(ClientSecretChange::Forget),
        Field::Value(oidc) => oidc,
    };
    match std::mem::take(&mut oidc.client_secret) {
        Field::Value(secret) if stored[MASK].as_str() == Some(&secret) => Ok(unchanged_for(oidc, stored)),
        Field::Value(secret) => Ok(ClientSecretChange::Replace(text::sized("oidc.client_secret", secret, 1..=4096)?)),
        Field::Null => Ok(ClientSecretChange::Forget),
        Field::Absent => Ok(unchanged_for(oidc, stored)),
    }
}

fn unchanged_for(oidc: &Oidc, stored: &Value) -> ClientSecretChange {
    if stored["issuer"].as_str() == Some(oidc.issuer()) { ClientSecretChange::Keep } else { ClientSecretChange::Forget }
}

/// How the secret is shown after the change; `stored` is the present object.
pub fn masked(change: &ClientSecretChange, stored: &Value) -> Option<Value> {
    match change {
        ClientSecretChange::Keep => Some(stored[MASK].clone()).filter(|mask| !mask.is_null()),
        ClientSecretChange::Forget => None,
        ClientSecretChange::Replace(secret) => Some(api_key::mask(secret).into()),
    }
}

/// Puts the mask where the provider is shown.
pub fn show(provider: Option<&mut Value>, mask: Option<Value>) {
    if let (Some(Value::Object(provider)), Some(mask)) = (provider, mask) {
        provider.insert(MASK.into(), mask);
    }
}

/// Seals what is new and forgets what is to be forgotten. `listed` are the further providers by issuer, where they were
/// sent: secrets of others are forgotten.
pub async fn keep(
    action: &Action<'_>,
    general: ClientSecretChange,
    listed: Option<Vec<(String, ClientSecretChange)>>,
) -> Result<(), ApiError> {
    const WRITE: &str = "UPDATE organisations SET auth_secrets = $2 WHERE id = $1";
    if matches!(general, ClientSecretChange::Keep) && listed.is_none() {
        return Ok(());
    }
    let id = action.organisation_id();
    let place = SealedPlace { organisation: id, table: "organisations", row: id, field: "auth_secrets" };
    let stored = stored(action, &place).await?;
    let mut all = stored.clone();
    if let Some(listed) = &listed {
        all.retain(|name, _| {
            !name.starts_with(LISTED_SECRETS) || listed.iter().any(|(one, _)| *name == listed_secret(one))
        });
    }
    let listed = listed.into_iter().flatten().map(|(issuer, change)| (listed_secret(&issuer), change));
    for (name, change) in listed.chain([(GENERAL_SECRET.to_owned(), general)]) {
        match change {
            ClientSecretChange::Keep => {}
            ClientSecretChange::Forget => drop(all.shift_remove(&name)),
            ClientSecretChange::Replace(secret) => drop(all.insert(name, secret.into())),
        }
    }
    if all == stored {
        return Ok(());
    }
    let sealed = match all.is_empty() {
        true => None,
        false => {
            let object = Secret::from(Value::Object(all).to_string());
            Some(action.app.sealer.seal(&action.tx, &place, object.expose()).await?.to_vec())
        }
    };
    action.tx.execute(WRITE, &[&id, &sealed]).await?;
    Ok(())
}

async fn stored(action: &Action<'_>, place: &SealedPlace) -> Result<Map<String, Value>, ApiError> {
    const READ: &str = "SELECT auth_secrets FROM organisations WHERE id = $1";
    let row = action.tx.query_one(READ, &[&action.organisation_id()]).await?;
    let Some(sealed) = row.try_get::<_, Option<&[u8]>>("auth_secrets")?.map(Sealed::from) else {
        return Ok(Map::new());
    };
    let open = action.app.sealer.open(&action.tx, place, &sealed).await?;
    Ok(serde_json::from_slice(open.expose()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_stays_with_its_issuer() {
        let stored = json!({ "issuer": "https://id.test", "masked_client_secret": "s3*****ret" });
        for (sent, expected) in [
            (json!({ "issuer": "https://id.test", "client_id": "c" }), ClientSecretChange::Keep),
            (
                json!({ "issuer": "https://id.test", "client_id": "c", "client_secret": "s3*****ret" }),
                ClientSecretChange::Keep,
            ),
            (json!({ "issuer": "https://other.test", "client_id": "c" }), ClientSecretChange::Forget),
            (
                json!({ "issuer": "https://other.test", "client_id": "c", "client_secret": "s3*****ret" }),
                ClientSecretChange::Forget,
            ),
            (
                json!({ "issuer": "https://id.test", "client_id": "c", "client_secret": null }),
                ClientSecretChange::Forget,
            ),
            (
                json!({ "issuer": "https://other.test", "client_id": "c", "client_secret": "new" }),
                ClientSecretChange::Replace("new".into()),
            ),
        ] {
            let mut oidc = Field::Value(crate::http::json::parse::<Oidc>(sent.clone()).unwrap());
            assert_eq!(taken(&mut oidc, &stored).unwrap(), expected, "{sent}");
        }
        assert_eq!(taken(&mut Field::Absent, &stored).unwrap(), ClientSecretChange::Keep);
        assert_eq!(taken(&mut Field::Null, &stored).unwrap(), ClientSecretChange::Forget);
    }
}
