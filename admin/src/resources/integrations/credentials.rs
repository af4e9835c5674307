//! An account's key and settings on their way into the database and back: told apart into what may be read there and
//! what is sealed, with masks for what is shown.

use super::secrets::{self, Fields, SplitFields};
use crate::crud::Action;
use crate::http::ApiError;
use serde_json::{Value, json};
use shared::db::table::Columns;
use shared::identity::api_key::KeyHash;
use shared::model::Credentials;
use shared::secrets::seal::{Sealed, SealedPlace};

/// Key and settings as they are used: nothing masked, nothing missing.
#[derive(Default)]
pub struct OpenedAccount {
    pub key: Option<String>,
    pub configurations: Fields,
}

impl OpenedAccount {
    /// What is stored, opened.
    pub async fn open(
        action: &Action<'_>,
        place: &SealedPlace,
        plain: &Value,
        sealed: Option<&Sealed>,
    ) -> Result<Self, ApiError> {
        let mut configurations = plain.as_object().cloned().unwrap_or_default();
        let Some(sealed) = sealed else { return Ok(Self { key: None, configurations }) };
        let secret = action.app.sealer.open(&action.tx, place, sealed).await?;
        let credentials = Credentials::parse(&secret).ok_or(ApiError::Internal)?;
        configurations.extend(credentials.configurations);
        Ok(Self { key: credentials.key, configurations })
    }

    /// What was sent over what is there. Masks that come back change nothing.
    pub fn change(&mut self, key: Option<Option<String>>, sent: Option<Fields>, masks: &Value) {
        if let Some(key) = key
            && key.as_deref().is_none_or(|key| masks["key"].as_str() != Some(key))
        {
            self.key = key;
        }
        if let Some(sent) = sent {
            let empty = Fields::new();
            let masks = masks["configurations"].as_object().unwrap_or(&empty);
            self.configurations = secrets::replaced(std::mem::take(&mut self.configurations), sent, masks);
        }
    }

    /// The first of its secrets that is not among these, as one knows them who can read them.
    pub fn first_unknown(&self, key: Option<&str>, sent: &Fields) -> Option<String> {
        let is_equal = |a: &str, b: &str| KeyHash::from_key(a.as_bytes()) == KeyHash::from_key(b.as_bytes());
        if self.key.as_deref().is_some_and(|own| !key.is_some_and(|key| is_equal(own, key))) {
            return Some("key".into());
        }
        let mut secret = self.configurations.iter().filter(|(name, value)| secrets::is_secret(name, value));
        let unknown = secret.find(|(name, value)| sent.get(name.as_str()) != Some(*value));
        unknown.map(|(name, _)| format!("configurations.{name}"))
    }

    /// The columns `sealed` and `masks`, and the rest in the column `plain`.
    pub async fn columns(
        self,
        action: &Action<'_>,
        place: &SealedPlace,
        plain: &'static str,
    ) -> Result<Columns, ApiError> {
        let SplitFields { plain: open, secret } = secrets::parted(self.configurations);
        let masks = json!({
            "key": self.key.as_deref().map(shared::identity::api_key::mask),
            "configurations": secrets::masks(&secret),
        });
        let credentials = Credentials { key: self.key, configurations: secret };
        let sealed = match credentials.is_empty() {
            true => None,
            false => {
                let secret = credentials.to_secret();
                Some(action.app.sealer.seal(&action.tx, place, secret.expose()).await?.to_vec())
            }
        };
        Ok(Columns::default().set(plain, Value::Object(open)).set("sealed", sealed).set("masks", masks))
    }
}
