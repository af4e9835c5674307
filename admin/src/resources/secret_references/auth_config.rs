//! What opens a manager: checked against the fields of its mode, split into what may be shown and what is sealed.

use super::{SecretReference, place};
use crate::crud::Action;
use crate::http::ApiError;
use serde_json::{Map, Value};
use shared::identity::api_key::mask;
use shared::model::whole;
use shared::outbound::Origin;
use shared::secrets::seal::Sealed;
use shared::secrets::{BadAccess, ManagerAccess, ManagerKind, fields};
use uuid::Uuid;

const WITHHELD: &str = "names a way that uses the gateway's own identity, which is not lent to references here; the \
                        operator may set SECRETS_OWN_IDENTITY=ON";

/// Fields that say which server is shown the credentials, or what they open.
static ADDRESSES: &[&str] = &["vault_addr", "azure_vault_url"];

fn origin_text(url: &str) -> String {
    Origin::parse(url).map_or_else(|_| url.to_owned(), |origin| origin.to_string())
}

pub struct AuthConfig {
    kind: ManagerKind,
    /// All fields, as they were sent.
    config: Map<String, Value>,
}

impl AuthConfig {
    /// `lends_identity`: whether the operator lets references speak for the gateway itself.
    pub fn checked(kind: ManagerKind, mut config: Map<String, Value>, lends_identity: bool) -> Result<Self, ApiError> {
        config.retain(|_, value| !value.is_null());
        match ManagerAccess::parse(kind, &config) {
            Ok(access) if access.uses_own_identity() && !lends_identity => {
                Err(ApiError::field(format!("auth_config.{}", kind.mode_field()), WITHHELD))
            }
            Ok(_) => Ok(Self { kind, config }),
            Err(BadAccess { field, message }) => Err(ApiError::field(format!("auth_config.{field}"), message)),
        }
    }

    /// What is stored.
    pub async fn opened(action: &Action<'_>, current: &SecretReference) -> Result<Self, ApiError> {
        let sealed = Sealed::from(current.sealed_auth_config.clone());
        let opened = action.app.sealer.open(&action.tx, &place(action, current.id), &sealed).await?;
        let secrets: Map<String, Value> = serde_json::from_slice(opened.expose()).map_err(|_| ApiError::Internal)?;
        let kind = ManagerKind::parse(&current.manager_type).ok_or(ApiError::Internal)?;
        Ok(Self { kind, config: whole(&current.auth_config, secrets) })
    }

    /// Key by key: null takes a field away, and what belongs to another mode than the one now named goes by itself.
    /// Masks that a client sends back are no values.
    pub fn merged(mut self, sent: Map<String, Value>, lends_identity: bool) -> Result<Self, ApiError> {
        let sent: Map<String, Value> = sent.into_iter().filter(|(name, _)| !name.starts_with("masked_")).collect();
        let mode = self.kind.mode_field();
        if sent.get(mode).is_some_and(|named| Some(named) != self.config.get(mode)) {
            let mut next = self.config.clone();
            next.extend(sent.clone());
            let known = fields(self.kind, &next).unwrap_or_default();
            self.config.retain(|name, _| name == mode || known.iter().any(|field| field.name == name));
        }
        self.refuse_to_lead_away(&sent)?;
        self.config.extend(sent);
        Self::checked(self.kind, self.config, lends_identity)
    }

    /// Whoever changes a reference cannot read what is sealed in it, and must not be able to show it to another host.
    fn refuse_to_lead_away(&self, sent: &Map<String, Value>) -> Result<(), ApiError> {
        let place = |value: Option<&Value>| value.and_then(Value::as_str).map(origin_text);
        let is_moved = |field: &&&str| {
            let after = sent.get(**field).or_else(|| self.config.get(**field));
            place(after) != place(self.config.get(**field))
        };
        let Some(field) = ADDRESSES.iter().find(is_moved) else { return Ok(()) };
        let stored = self.config.keys().find(|name| self.is_secret(name) && !sent.contains_key(name.as_str()));
        match stored {
            None => Ok(()),
            Some(name) => {
                let message = format!("must be sent again, because `{field}` leads it to another host");
                Err(ApiError::field(format!("auth_config.{name}"), message))
            }
        }
    }

    /// As answers show it: `masked_<field>` in place of each secret.
    pub fn shown(&self) -> Value {
        let shown = self.config.iter().map(|(name, value)| match (self.is_secret(name), value.as_str()) {
            (true, text) => (format!("masked_{name}"), mask(text.unwrap_or_default()).into()),
            (false, _) => (name.clone(), value.clone()),
        });
        Value::Object(shown.collect())
    }

    pub async fn sealed(&self, action: &Action<'_>, id: Uuid) -> Result<Vec<u8>, ApiError> {
        let secrets: Map<String, Value> =
            self.config.iter().filter(|(name, _)| self.is_secret(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
        let text = zeroize::Zeroizing::new(Value::Object(secrets).to_string());
        let sealed = action.app.sealer.seal(&action.tx, &place(action, id), text.as_bytes()).await?;
        Ok(sealed.to_vec())
    }

    fn is_secret(&self, name: &str) -> bool {
        let known = fields(self.kind, &self.config).unwrap_or_default();
        // What is not known is not shown.
        name != self.kind.mode_field() && known.iter().find(|field| field.name == name).is_none_or(|one| one.is_secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn vault(config: Value) -> Result<AuthConfig, ApiError> {
        AuthConfig::checked(ManagerKind::Vault, config.as_object().cloned().unwrap(), false)
    }

    #[test]
    fn secrets_are_shown_as_masks_and_a_change_keeps_what_it_does_not_name() {
        let token =
            json!({ "vault_auth_type": "token", "vault_addr": "https://v.test", "vault_token": "hvs.0123456789" });
        let config = vault(token).unwrap();
        let shown = config.shown();
        assert_eq!(
            shown,
            json!({ "vault_auth_type": "token", "vault_addr": "https://v.test", "masked_vault_token": "hv*****789" })
        );
        let sent = json!({ "vault_namespace": "team", "masked_vault_token": "hv*****789" });
        let config = config.merged(sent.as_object().cloned().unwrap(), false).unwrap();
        assert_eq!(
            (&config.config["vault_token"], &config.config["vault_namespace"]),
            (&json!("hvs.0123456789"), &json!("team"))
        );
        let sent = json!({ "vault_namespace": null });
        let config = config.merged(sent.as_object().cloned().unwrap(), false).unwrap();
        assert!(!config.config.contains_key("vault_namespace"));
        let sent = json!({ "vault_auth_type": "approle", "vault_role_id": "r", "vault_secret_id": "s" });
        let config = config.merged(sent.as_object().cloned().unwrap(), false).unwrap();
        assert!(!config.config.contains_key("vault_token"), "it belongs to the mode before");
        assert_eq!(config.config["vault_addr"], "https://v.test");
    }

    #[test]
    fn an_address_of_another_server_brings_the_secret_with_it() {
        let token = json!({ "vault_auth_type": "token", "vault_addr": "https://v.test", "vault_token": "hvs.0123" });
        let role = json!({ "vault_auth_type": "approle", "vault_role_id": "r", "vault_secret_id": "s" });
        for (sent, refused) in [
            (json!({ "vault_addr": "https://v.test/prefix" }), false),
            (json!({ "vault_addr": "https://evil.test" }), true),
            (json!({ "vault_addr": "http://v.test" }), true),
            (json!({ "vault_addr": "https://v.test:8200", "masked_vault_token": "hv*****123" }), true),
            (json!({ "vault_addr": "https://evil.test", "vault_token": "hvs.4567" }), false),
            (role.clone(), false),
            (
                json!({ "vault_addr": "https://evil.test", "vault_auth_type": "approle", "vault_role_id": "r", "vault_secret_id": "s" }),
                false,
            ),
        ] {
            let outcome = vault(token.clone()).unwrap().merged(sent.as_object().cloned().unwrap(), true);
            let field = outcome.err().map(|error| error.to_string().split(':').next().unwrap().to_owned());
            assert_eq!(field.as_deref(), refused.then_some("auth_config.vault_token"), "{sent}");
        }
    }

    #[test]
    fn a_wrong_field_is_named_below_auth_config_and_its_value_is_not_repeated() {
        let sent = json!({ "vault_auth_type": "token", "vault_addr": "https://v.test", "vault_token": "hunter2\n" });
        let refused = vault(sent).err().unwrap().to_string();
        assert!(refused.starts_with("auth_config.vault_token: ") && !refused.contains("hunter2"), "{refused}");
    }

    #[test]
    fn the_gateways_own_identity_is_lent_only_where_the_operator_says_so() {
        let vault = json!({ "vault_auth_type": "kubernetes", "vault_addr": "https://v.test", "vault_role": "r" });
        let url = "https://a.vault.azure.net";
        for (kind, config) in [
            (ManagerKind::Aws, json!({ "aws_auth_type": "serviceRole" })),
            (ManagerKind::Aws, json!({ "aws_auth_type": "assumedRole", "aws_role_arn": "a", "aws_region": "r" })),
            (ManagerKind::Azure, json!({ "azure_auth_mode": "managed", "azure_vault_url": url })),
            (ManagerKind::Azure, json!({ "azure_auth_mode": "default", "azure_vault_url": url })),
            (ManagerKind::Vault, vault),
        ] {
            let checked = |lends| AuthConfig::checked(kind, config.as_object().cloned().unwrap(), lends);
            assert!(checked(true).is_ok(), "{config}");
            let refused = checked(false).err().unwrap().to_string();
            let start = format!("auth_config.{}: ", kind.mode_field());
            assert!(refused.starts_with(&start) && refused.contains("SECRETS_OWN_IDENTITY"), "{refused}");
        }
    }
}
