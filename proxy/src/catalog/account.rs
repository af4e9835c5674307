//! Accounts whose credential must be computed: one that is stored, or one that a request and its config describe. The
//! gateway's own identity is lent to stored accounts alone, which somebody with a right to make them made.

use super::signing::{AccountCredential, BadAccount};
use crate::catalog::providers::Provider;
use http::HeaderValue;
use serde_json::{Map, Value};
use shared::model::{Credentials, Integration};
use shared::providers::{AccountFields, Auth, LayeredFields};

/// None where the key is sent as it is.
pub fn stored_account(
    provider: &Provider,
    integration: &Integration,
    opened: &Credentials,
) -> Result<Option<AccountCredential>, BadAccount> {
    let fields = LayeredFields(&[&opened.configurations, &integration.configurations]);
    account(provider, &fields, opened.key.as_deref())
}

/// The same of what is not stored.
pub fn described_account(
    provider: &Provider,
    fields: &dyn AccountFields,
    key: Option<&HeaderValue>,
) -> Result<Option<AccountCredential>, BadAccount> {
    if !AccountCredential::is_made_for(&provider.name) {
        return Ok(None);
    }
    match account(provider, fields, key.and_then(|key| key.to_str().ok()))? {
        Some(own) if own.is_own_identity() => Err(NOT_LENT),
        account => Ok(account),
    }
}

/// Fills the place of a project with that of the account's key file, where nobody names one.
pub fn complete_project(
    placed: &mut Vec<(String, String)>,
    provider: &Provider,
    of_file: impl FnOnce() -> Option<String>,
) {
    const PLACE: &str = "project";
    let is_open = !provider.row.fields_of(PLACE).is_empty() && !placed.iter().any(|(place, _)| place == PLACE);
    if is_open {
        placed.extend(of_file().map(|project| (PLACE.to_owned(), project)));
    }
}

/// The project that a service account of Google's belongs to.
pub fn service_project(fields: &dyn AccountFields) -> Option<String> {
    const FILE: &str = "vertex_service_account_json";
    let read: Map<String, Value>;
    let file = match (fields.object(FILE), fields.text(FILE)) {
        (Some(file), _) => file,
        (None, text) => {
            read = serde_json::from_str(text?).ok()?;
            &read
        }
    };
    file.get("project_id")?.as_str().map(str::to_owned)
}

/// The same of a stored account.
pub fn stored_project(integration: &Integration, opened: &Credentials) -> Option<String> {
    service_project(&LayeredFields(&[&opened.configurations, &integration.configurations]))
}

const NOT_LENT: BadAccount =
    BadAccount { field: "the gateway's own identity", problem: "is for stored accounts alone" };

fn account(
    provider: &Provider,
    fields: &dyn AccountFields,
    key: Option<&str>,
) -> Result<Option<AccountCredential>, BadAccount> {
    let key_header = match &provider.row.auth {
        Auth::Header { name, .. } => Some(name),
        Auth::None | Auth::Signed => None,
    };
    match AccountCredential::parse(&provider.name, fields, key, key_header) {
        // Whatever stands in front of the provider may ask for a credential of its own, or for none.
        Err(_) if is_silent(provider, fields, key) => Ok(None),
        parsed => parsed,
    }
}

/// Whether nothing is said of how to authenticate, at a provider that takes plain keys too.
fn is_silent(provider: &Provider, fields: &dyn AccountFields, key: Option<&str>) -> bool {
    let is_set = |name: &&str| fields.text(name).is_some() || fields.object(name).is_some();
    key.is_none() && provider.row.auth != Auth::Signed && !SAYING.iter().any(is_set)
}

static SAYING: [&str; 8] = [
    "aws_auth_type",
    "aws_access_key_id",
    "aws_secret_access_key",
    "azure_ad_token",
    "azure_auth_mode",
    "snowflake_private_key",
    "vertex_auth_type",
    "vertex_service_account_json",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_file_says_its_project_as_an_object_or_as_text() {
        let file = json!({ "project_id": "p", "private_key": "k" });
        for (fields, project) in [
            (json!({ "vertex_service_account_json": file }), Some("p")),
            (json!({ "vertex_service_account_json": file.to_string() }), Some("p")),
            (json!({ "vertex_service_account_json": "no JSON" }), None),
            (json!({ "vertex_service_account_json": { "project_id": 7 } }), None),
            (json!({}), None),
        ] {
            assert_eq!(service_project(&fields).as_deref(), project, "{fields}");
        }
    }
}
