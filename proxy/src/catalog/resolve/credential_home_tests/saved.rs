//! Saved configs that hold credentials, and where each belongs.

use super::{HTTP, HTTPS, ORGANISATION, WORKSPACE};
use crate::net::dial::Scheme;
use crate::snapshot::saved_config::SavedConfig;
use serde_json::{Value, json};
use shared::config::credentials;
use shared::secrets::seal::Sealer;
use shared::secrets::seal::data_key::DataKey;
use uuid::Uuid;

/// A saved config with one credential. Its slug is its number in `SAVED`.
pub struct Saved {
    /// Where it says `SEALED` the sealed credential stands.
    config: &'static str,
    pub credential: &'static str,
    /// None for a credential that no provider is named for.
    pub origin: Option<(Scheme, &'static str, u16)>,
}

#[rustfmt::skip]
pub static SAVED: &[Saved] = &[
    Saved { config: r#"{"provider":"openai","api_key":"SEALED"}"#,
        credential: "sk-saved-for-openai-end", origin: Some((HTTPS, "api.openai.com", 443)) },
    Saved { config: r#"{"provider":"openai","custom_host":"https://llm.example.com/v1","apiKey":"SEALED"}"#,
        credential: "sk-saved-for-house-end", origin: Some((HTTPS, "llm.example.com", 443)) },
    Saved { config: r#"{"provider":"groq","custom_host":"http://gpu.lab.example/v1","api_key":"SEALED"}"#,
        credential: "sk-saved-for-lab-end", origin: Some((HTTP, "gpu.lab.example", 80)) },
    Saved { config: r#"{"custom_host":"https://tuned.example.com:8443","strategy":{"mode":"fallback"},
            "targets":[{"provider":"@openai"},{"provider":"anthropic","api_key":"SEALED"},{"passthrough":true}]}"#,
        credential: "sk-saved-for-tree-end", origin: Some((HTTPS, "tuned.example.com", 8443)) },
    Saved { config: r#"{"retry":{"attempts":1},"api_key":"SEALED"}"#,
        credential: "sk-saved-for-nobody-end", origin: None },
    Saved { config: r#"{"passthrough":true,"provider":"openai","api_key":"SEALED"}"#,
        credential: "sk-saved-to-pass-end", origin: None },
    Saved { config: r#"{"retry":{"attempts":1},"custom_host":"https://llm.example.com/v1","api_key":"SEALED"}"#,
        credential: "sk-saved-for-host-end", origin: None },
];

/// Their rows, each credential sealed under its config's own place.
pub fn rows(sealer: &Sealer, data_key: &DataKey) -> Vec<SavedConfig> {
    let row = |(n, saved): (usize, &Saved)| {
        let id = Uuid::from_u128(400 + n as u128);
        let place = credentials::place(ORGANISATION, id);
        let sealed = sealer.seal_with(data_key, &place, saved.credential.as_bytes()).unwrap();
        let text = credentials::written(&sealed, saved.credential).unwrap();
        let config: Value = serde_json::from_str(&saved.config.replace("SEALED", &text)).unwrap();
        let row = json!({
            "id": id, "organisation_id": ORGANISATION, "workspace_id": WORKSPACE, "slug": n.to_string(),
            "config": config, "is_default": false, "status": "active", "version_id": id,
        });
        serde_json::from_value(row).unwrap()
    };
    SAVED.iter().enumerate().map(row).collect()
}
