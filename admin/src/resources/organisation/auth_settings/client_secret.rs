//! The OIDC client secret: sealed, shown as a mask, kept when a change says nothing about it. It belongs to its issuer:
//! a change of issuer without a new secret forgets it, so that it is never sent to another host.

use super::sign_in::Oidc;
use crate::crud::Action;
use crate::http::{ApiError, Field, text};
use serde_json::{Value, json};
use shared::identity::api_key;
use shared::seal::SealedPlace;

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
        Field::Value(secret) if stored[MASK].as_str() == Some(&secret) => Ok(kept_for(oidc, stored)),
        Field::Value(secret) => Ok(ClientSecretChange::Replace(text::sized("oidc.client_secret", secret, 1..=4096)?)),
        Field::Null => Ok(ClientSecretChange::Forget),
        Field::Absent => Ok(kept_for(oidc, stored)),
    }
}

fn kept_for(oidc: &Oidc, stored: &Value) -> ClientSecretChange {
    if stored["issuer"].as_str() == Some(oidc.issuer()) { ClientSecretChange::Keep } else { ClientSecretChange::Forget }
}

/// Seals or forgets it, and leaves its mask in the new `oidc` object.
pub async fn keep(
    action: &Action<'_>,
    secret: ClientSecretChange,
    before: &Value,
    after: &mut Value,
) -> Result<(), ApiError> {
    const WRITE: &str = "UPDATE organisations SET auth_secrets = $2 WHERE id = $1";
    let id = action.organisation_id();
    let (sealed, mask) = match secret {
        ClientSecretChange::Keep => {
            if after.is_object() && !before[MASK].is_null() {
                after[MASK] = before[MASK].clone();
            }
            return Ok(());
        }
        ClientSecretChange::Forget => (None, Value::Null),
        ClientSecretChange::Replace(secret) => {
            let mask = api_key::mask(&secret).into();
            let place = SealedPlace { organisation: id, table: "organisations", row: id, field: "auth_secrets" };
            let object = shared::seal::Secret::from(json!({ "oidc.client_secret": secret }).to_string());
            (Some(action.app.sealer.seal(&action.tx, &place, object.expose()).await?.to_vec()), mask)
        }
    };
    action.tx.execute(WRITE, &[&id, &sealed]).await?;
    if after.is_object() && !mask.is_null() {
        after[MASK] = mask;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
