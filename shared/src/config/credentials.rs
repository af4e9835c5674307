//! Credentials that stand in a saved config, sealed where they stand: the text `sealed:1:<data key>:<base64>:<mask>`
//! takes the place of the value, so that whoever reads the row, its versions or the proxy's copy on disk finds no secret.
//!
//! The name of the data key is in plain text because a rotation searches for it, the mask because answers show it.

use super::object::snake;
use crate::identity::api_key::mask;
use crate::secrets::seal::{SealError, Sealed, SealedPlace};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What every sealed text begins with.
pub const MARK: &str = "sealed:1:";

/// Fields of a target that are secret.
static SECRETS: &[&str] = &[
    "api_key",
    "azure_ad_token",
    "azure_entra_client_secret",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_external_id",
    "vertex_service_account_json",
    "oracle_private_key",
    "oracle_key_passphrase",
    "snowflake_private_key",
    "snowflake_private_key_passphrase",
];

/// Fields that decide where a target's credential goes.
static DESTINATIONS: &[&str] = &[
    "provider",
    "virtual_key",
    "passthrough",
    "custom_host",
    "resource_name",
    "azure_resource_name",
    "azure_foundry_url",
    "azure_endpoint_name",
    "azure_region",
    "azure_deployment_name",
    "azure_deployment_type",
    "huggingface_base_url",
    "databricks_workspace",
    "snowflake_account",
];

/// What a target inherits of them from the nodes above it.
const INHERITED: &str = "custom_host";

/// Whether a target's field of this name is secret.
pub fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// The same of a field as it is written, in snake or camel case.
pub fn names_secret(name: &str) -> bool {
    is_secret(&snake(name))
}

/// A secret field of a config: its name, and where it stands as a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretField {
    pub name: String,
    pub pointer: String,
}

/// Every secret field of a config and its targets, in the order they stand.
pub fn secrets(config: &Value) -> Vec<SecretField> {
    let mut found = Vec::new();
    collect(config, "", &mut found);
    found
}

fn collect(node: &Value, at: &str, found: &mut Vec<SecretField>) {
    for (key, value) in node.as_object().into_iter().flatten() {
        let name = snake(key);
        if name == "targets" {
            for (index, target) in value.as_array().into_iter().flatten().enumerate() {
                collect(target, &format!("{at}/{key}/{index}"), found);
            }
        } else if is_secret(&name) && !value.is_null() {
            found.push(SecretField { name: name.into_owned(), pointer: format!("{at}/{key}") });
        }
    }
}

/// What a config says about where the secret at this pointer goes. Names are read as the config's reader reads them, so
/// that no spelling of a field counts for one of them alone.
pub fn destinations<'c>(config: &'c Value, pointer: &str) -> BTreeMap<&'static str, &'c Value> {
    let mut found = BTreeMap::new();
    let own = pointer.rfind('/').unwrap_or(0);
    for end in pointer.match_indices('/').map(|(at, _)| at) {
        let Some(Value::Object(node)) = config.pointer(&pointer[..end]) else { continue };
        for (key, value) in node.iter().filter(|(_, value)| !value.is_null()) {
            let name = snake(key);
            let name = DESTINATIONS.iter().find(|one| **one == name && (end == own || **one == INHERITED));
            // Without a kind it is a part of paths.
            let name = name.filter(|one| **one != "azure_deployment_name" || says(node, "azure_deployment_type"));
            if let Some(name) = name {
                found.insert(*name, value);
            }
        }
    }
    found
}

fn says(node: &serde_json::Map<String, Value>, field: &str) -> bool {
    node.iter().any(|(key, value)| !value.is_null() && snake(key) == field)
}

/// What is sealed of a value; service accounts may be objects, and are sealed as their JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text that takes a secret's place.
pub fn written(sealed: &Sealed, secret: &str) -> Result<String, SealError> {
    Ok(with_mask(sealed, sealed.data_key_id()?, &mask(secret)))
}

fn with_mask(sealed: &Sealed, data_key: Uuid, mask: &str) -> String {
    format!("{MARK}{data_key}:{}:{mask}", STANDARD.encode(sealed.as_bytes()))
}

/// A sealed text, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedText<'t> {
    pub sealed: Sealed,
    pub mask: &'t str,
}

impl<'t> SealedText<'t> {
    /// None for anything else, also for a text that only begins like one.
    pub fn parse(text: &'t str) -> Option<Self> {
        let (data_key, rest) = text.strip_prefix(MARK)?.split_once(':')?;
        let (base64, mask) = rest.split_once(':')?;
        let sealed = Sealed::from(STANDARD.decode(base64).ok()?);
        (sealed.data_key_id().ok()? == Uuid::try_parse(data_key).ok()?).then_some(Self { sealed, mask })
    }

    pub fn from_value(value: &'t Value) -> Option<Self> {
        Self::parse(value.as_str()?)
    }

    /// The same secret under another key.
    pub fn resealed(&self, sealed: &Sealed) -> Result<String, SealError> {
        Ok(with_mask(sealed, sealed.data_key_id()?, self.mask))
    }
}

/// The config as it may be shown: a mask in the place of each secret.
pub fn masked(mut config: Value) -> Value {
    for SecretField { pointer, .. } in secrets(&config) {
        if let Some(value) = config.pointer_mut(&pointer) {
            let shown = SealedText::from_value(value).map_or_else(|| mask(&plain(value)), |text| text.mask.to_owned());
            *value = shown.into();
        }
    }
    config
}

/// Where the secrets of a config belong, those of its older versions included.
pub fn place(organisation: Uuid, config: Uuid) -> SealedPlace {
    SealedPlace { organisation, table: "configs", row: config, field: "config" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Strictness, parse_config};
    use crate::secrets::seal::{SealingKey, Secret};
    use crate::settings::config_limits::ConfigLimits;
    use serde_json::json;

    fn sealed(row: u128, secret: &str) -> (SealingKey, String) {
        let key = SealingKey::random().unwrap();
        let place = place(Uuid::from_u128(1), Uuid::from_u128(row));
        let sealed = Sealed::seal(Uuid::from_u128(9), &key, &place, secret.as_bytes()).unwrap();
        (key, written(&sealed, secret).unwrap())
    }

    #[test]
    fn secrets_are_found_in_every_target_and_spelling() {
        let config = json!({
            "api_key": "a", "provider": "openai",
            "targets": [{ "apiKey": "b", "aws_region": "r" }, { "targets": [{ "vertex_service_account_json": {} }, { "api_key": null }] }],
            "override_params": { "api_key": "no credential of ours" },
        });
        let found: Vec<_> = secrets(&config).into_iter().map(|one| (one.name, one.pointer)).collect();
        let expected = [
            ("api_key", "/api_key"),
            ("api_key", "/targets/0/apiKey"),
            ("vertex_service_account_json", "/targets/1/targets/0/vertex_service_account_json"),
        ];
        assert_eq!(found, expected.map(|(name, at)| (name.to_owned(), at.to_owned())));
    }

    #[test]
    fn a_destination_is_what_the_reader_makes_of_it_in_every_spelling() {
        for key in ["custom_host", "customHost", "Custom_host", "CustomHost"] {
            let host = "https://a.test/v1";
            let mut config = json!({ "provider": "openai", "targets": [{ "Provider": "groq", "api_key": "k" }] });
            config["targets"][0][key] = json!(host);
            let found = destinations(&config, "/targets/0/api_key");
            assert_eq!(found, BTreeMap::from([("custom_host", &json!(host)), ("provider", &json!("groq"))]), "{key}");
            let read = parse_config(&config["targets"][0], Strictness::Inline, &ConfigLimits::default()).unwrap();
            assert_eq!((read.custom_host.as_deref(), read.provider.as_deref()), (Some(host), Some("groq")), "{key}");
        }
        let above = json!({ "customHost": "https://a.test", "provider": "x", "resource_name": "r", "targets": [
            { "targets": [{ "api_key": "k" }], "azureResourceName": "r" },
            { "api_key": "k", "custom_host": "https://b.test", "azureResourceName": "r" },
        ] });
        let inherited = destinations(&above, "/targets/0/targets/0/api_key");
        assert_eq!(inherited, BTreeMap::from([("custom_host", &json!("https://a.test"))]));
        let own = destinations(&above, "/targets/1/api_key");
        let expected = [("azure_resource_name", &json!("r")), ("custom_host", &json!("https://b.test"))];
        assert_eq!(own, BTreeMap::from(expected), "the nearest host holds");
    }

    #[test]
    fn a_sealed_text_is_read_back_and_shows_only_its_mask() {
        let (_, text) = sealed(2, "sk-0123456789:abc");
        assert!(text.starts_with("sealed:1:00000000-0000-0000-0000-000000000009:") && !text.contains("0123"), "{text}");
        assert_eq!(SealedText::parse(&text).unwrap().mask, "sk*****abc");
        for other in ["", "sealed:1:", "sealed:1:x:y:z", &text[..60], &text.replace("0009:", "0008:")] {
            assert!(SealedText::parse(other).is_none(), "{other}");
        }
        let shown = masked(json!({ "targets": [{ "api_key": text }, { "api_key": "plain-as-before" }] }));
        assert_eq!(shown, json!({ "targets": [{ "api_key": "sk*****abc" }, { "api_key": "pl*****ore" }] }));
    }

    #[test]
    fn a_placement_opens_for_its_own_row_and_hides_what_is_not_opened() {
        let (key, text) = sealed(2, r#"{"private_key":"x"}"#);
        let config = json!({ "provider": "vertex-ai", "vertex_service_account_json": text, "vertex_region": "r", "api_key": "k" });
        let open = |place: &SealedPlace, sealed: &Sealed| -> Result<Secret, SealError> { sealed.open(&key, place) };
        for (row, opens) in [(2, true), (3, false)] {
            let mut config = parse_config(&config, Strictness::Saved, &ConfigLimits::default()).unwrap();
            config.sealed_in(Uuid::from_u128(1), Uuid::from_u128(row));
            let placement = &config.placement;
            assert_eq!(placement.text("vertex_service_account_json"), None, "not before it is opened");
            let opened = placement.opened(open);
            assert_eq!(opened.is_ok(), opens, "row {row}");
            if let Ok(opened) = opened {
                assert_eq!(opened.text("vertex_service_account_json"), Some(r#"{"private_key":"x"}"#));
                assert_eq!((opened.text("vertex_region"), opened.text("api_key")), (Some("r"), Some("k")));
            }
        }
    }

    #[test]
    fn what_a_caller_writes_inline_is_taken_at_its_word() {
        let (_, text) = sealed(2, "secret-of-another");
        let config = json!({ "provider": "openai", "api_key": text });
        let config = parse_config(&config, Strictness::Inline, &ConfigLimits::default()).unwrap();
        let opened = config.placement.opened(|_, _| panic!("nothing here is sealed"));
        assert_eq!(opened.unwrap().text("api_key"), Some(&*text));
    }
}
