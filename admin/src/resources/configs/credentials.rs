//! Credentials written into a config. They are sealed when they come in and shown as masks; a mask that a client sends
//! back stands for what is stored, but only where it would still go to the same place: otherwise whoever may write a
//! config could send a credential that they cannot read to a host of their own.

use crate::crud::Action;
use crate::http::ApiError;
use serde_json::Value;
use shared::config::credentials::{self, SealedText, SecretField, destinations, plain, secrets};
use shared::secrets::seal::Secret;
use std::collections::BTreeSet;
use uuid::Uuid;

/// What every mask has, and no credential.
const STARS: &str = "*****";

/// Puts the stored value in the place of each mask, and says where; `stored` is the present config.
pub fn keep_stored(sent: &mut Value, stored: &Value) -> Result<BTreeSet<String>, ApiError> {
    let old: Vec<(SecretField, String, &Value)> = secrets(stored)
        .into_iter()
        .filter_map(|found| {
            let value = stored.pointer(&found.pointer)?;
            Some((found, mask_of(value), value))
        })
        .collect();
    let mut unchanged = BTreeSet::new();
    for found in secrets(sent) {
        let mask = sent.pointer(&found.pointer).and_then(Value::as_str).unwrap_or_default();
        if !mask.contains(STARS) {
            continue;
        }
        // Where it stood, or wherever else nothing but this can be meant.
        let same: Vec<_> = old.iter().filter(|(one, shown, _)| one.name == found.name && shown == mask).collect();
        let here = same.iter().find(|(one, ..)| one.pointer == found.pointer).or_else(|| same.first());
        let is_clear = same.len() == 1 || here.is_some_and(|(one, ..)| one.pointer == found.pointer);
        let Some((was, _, value)) = here.filter(|_| is_clear) else {
            return Err(refused(&found, "is a mask that stands for no stored credential; send the credential itself"));
        };
        if destinations(sent, &found.pointer) != destinations(stored, &was.pointer) {
            return Err(refused(&found, "would go to another place than before; send the credential itself"));
        }
        if let Some(place) = sent.pointer_mut(&found.pointer) {
            *place = (*value).clone();
            unchanged.insert(found.pointer);
        }
    }
    Ok(unchanged)
}

fn mask_of(value: &Value) -> String {
    SealedText::from_value(value)
        .map_or_else(|| shared::identity::api_key::mask(&plain(value)), |text| text.mask.to_owned())
}

/// Seals what is not kept. A credential that was sent again is left as it was, so that no version is made of it.
pub async fn sealed(
    action: &Action<'_>,
    id: Uuid,
    mut config: Value,
    unchanged: &BTreeSet<String>,
    stored: &Value,
) -> Result<Value, ApiError> {
    let place = credentials::place(action.organisation_id(), id);
    let sealer = &action.app.sealer;
    for SecretField { pointer, .. } in secrets(&config) {
        let Some(value) = config.pointer_mut(&pointer).filter(|_| !unchanged.contains(&pointer)) else { continue };
        let secret = Secret::from(plain(value));
        let before = stored.pointer(&pointer).and_then(|old| Some((old, SealedText::from_value(old)?)));
        if let Some((old, text)) = before
            && sealer.open(&action.tx, &place, &text.sealed).await.is_ok_and(|open| open.expose() == secret.expose())
        {
            *value = old.clone();
            continue;
        }
        let sealed = sealer.seal(&action.tx, &place, secret.expose()).await?;
        *value = credentials::written(&sealed, secret.expose_text().unwrap_or_default())?.into();
    }
    Ok(config)
}

/// `/targets/0/api_key` is `config.targets[0].api_key`.
fn refused(found: &SecretField, why: &str) -> ApiError {
    let mut path = String::from("config");
    for part in found.pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) => path.push_str(&format!(".{part}")),
        }
    }
    ApiError::field(path, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(sent: &Value, stored: &Value) -> Option<String> {
        match keep_stored(&mut sent.clone(), stored) {
            Ok(_) => None,
            Err(ApiError::Invalid { field, .. }) => field,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_mask_stands_for_what_is_stored_also_when_targets_change_places() {
        let stored = json!({ "targets": [
            { "provider": "openai", "api_key": "sk-0123456789abc" }, { "provider": "groq", "api_key": "gk-0123456789xyz" }] });
        let mut sent = json!({ "targets": [
            { "provider": "groq", "api_key": "gk*****xyz" }, { "provider": "@other" },
            { "provider": "openai", "api_key": "sk*****abc" }, { "provider": "mistral-ai", "api_key": "new-0123456789" }] });
        let found = keep_stored(&mut sent, &stored).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["/targets/0/api_key", "/targets/2/api_key"]);
        assert_eq!(sent["targets"][0]["api_key"], "gk-0123456789xyz");
        assert_eq!(sent["targets"][2]["api_key"], "sk-0123456789abc");
        assert_eq!(sent["targets"][3]["api_key"], "new-0123456789");
    }

    #[test]
    fn a_mask_that_could_mean_nothing_or_several_things_is_refused() {
        let one = |key: &str| json!({ "provider": "openai", "api_key": key });
        let stored = json!({ "targets": [one("sk-0123456789abc"), one("sk-9876543210abc")] });
        for (sent, expected) in [
            (json!({ "targets": [one("sk*****abc"), one("sk*****abc")] }), None),
            (json!({ "targets": [one("sk*****abd")] }), Some("config.targets[0].api_key")),
            (json!({ "targets": [one("k"), one("k"), one("sk*****abc")] }), Some("config.targets[2].api_key")),
            (
                json!({ "provider": "bedrock", "aws_secret_access_key": "sk*****abc" }),
                Some("config.aws_secret_access_key"),
            ),
        ] {
            assert_eq!(fault(&sent, &stored).as_deref(), expected, "{sent}");
        }
        assert!(fault(&one("sk*****abc"), &Value::Null).is_some(), "a new config has nothing to keep");
    }

    #[test]
    fn a_kept_credential_goes_where_it_went() {
        let stored = json!({ "custom_host": "https://a.test", "targets": [{ "provider": "openai", "api_key": "sk-0123456789abc" }] });
        let target = |more: Value| {
            let mut target = json!({ "provider": "openai", "api_key": "sk*****abc" });
            target.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            target
        };
        for (sent, accepted) in [
            (json!({ "custom_host": "https://a.test", "targets": [target(json!({}))] }), true),
            (
                json!({ "customHost": "https://a.test", "targets": [target(json!({ "weight": 2 })), { "provider": "@b" }] }),
                true,
            ),
            (json!({ "targets": [target(json!({ "custom_host": "https://a.test" }))] }), true),
            (json!({ "targets": [target(json!({}))] }), false),
            (json!({ "custom_host": "https://evil.test", "targets": [target(json!({}))] }), false),
            (json!({ "targets": [target(json!({ "custom_host": "https://evil.test" }))] }), false),
            (json!({ "targets": [target(json!({ "customHost": "https://evil.test" }))] }), false),
            (
                json!({ "custom_host": "https://a.test", "targets": [target(json!({ "Custom_host": "https://evil.test" }))] }),
                false,
            ),
            (
                json!({ "custom_host": "https://a.test", "targets": [target(json!({ "Huggingface_base_url": "https://evil.test" }))] }),
                false,
            ),
            (json!({ "custom_host": "https://a.test", "targets": [target(json!({ "provider": "groq" }))] }), false),
            (json!({ "customHost": "https://evil.test", "targets": [{ "targets": [target(json!({}))] }] }), false),
        ] {
            assert_eq!(fault(&sent, &stored).is_none(), accepted, "{sent}");
        }
    }
}
