//! Which fields of an account come from a secret manager, and whether this workspace may have them. Decided from the
//! snapshot alone; the values are fetched afterwards.

use crate::catalog::providers::Provider;
use crate::net::dial::Origin;
use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use serde::Deserialize;
use serde_json::Value;
use shared::model::id::OrganisationId;
use shared::model::{Credentials, Integration, McpIntegration, SecretReference, Workspace};
use shared::secrets::seal::Secret;
use shared::telemetry::{Brief, LogLimit};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// A field of an account with the reference behind it.
#[derive(Debug)]
pub struct Mapped {
    pub reference: Arc<SecretReference>,
    /// Names another entry of the secret than the reference does.
    pub entry: Option<String>,
    target: String,
    format: Format,
    /// Once it was fetched.
    pub value: OnceLock<Secret>,
}

#[derive(Debug, Deserialize)]
struct Mapping {
    target_field: String,
    secret_reference_id: Uuid,
    secret_key: Option<String>,
    #[serde(default)]
    value_format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    String,
    Json,
}

/// An account, of a provider or of an MCP server, as far as its secrets are concerned.
#[derive(Clone, Copy)]
pub struct MappingOwner<'a> {
    pub slug: &'a str,
    pub organisation_id: OrganisationId,
    pub secret_mappings: &'a Value,
}

impl<'a> From<&'a Integration> for MappingOwner<'a> {
    fn from(integration: &'a Integration) -> Self {
        let Integration { slug, organisation_id, secret_mappings, .. } = integration;
        Self { slug, organisation_id: *organisation_id, secret_mappings }
    }
}

impl<'a> From<&'a McpIntegration> for MappingOwner<'a> {
    fn from(integration: &'a McpIntegration) -> Self {
        let McpIntegration { slug, organisation_id, secret_mappings, .. } = integration;
        Self { slug, organisation_id: *organisation_id, secret_mappings }
    }
}

/// What an account takes from secret managers, for a caller of this workspace.
pub fn mapped<'a>(
    owner: impl Into<MappingOwner<'a>>,
    workspace: &Workspace,
    snapshot: &Snapshot,
) -> Result<Vec<Mapped>, Refusal> {
    let owner = owner.into();
    if owner.secret_mappings.as_array().is_none_or(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let mappings = Vec::<Mapping>::deserialize(owner.secret_mappings).map_err(|error| {
        static UNREAD: LogLimit = LogLimit::new();
        if let Some(skipped) = UNREAD.pass() {
            tracing::error!(integration = owner.slug, error = %Brief(error), skipped, "secret mappings cannot be read");
        }
        Refusal::internal()
    })?;
    mappings.into_iter().map(|mapping| one(mapping, owner, workspace, snapshot)).collect()
}

/// Refuses to send what a reference holds to a host that it does not name. The provider's own address needs no name.
pub fn check_hosts(
    mapped: &[Mapped],
    integration: &Integration,
    origin: &Origin,
    provider: &Provider,
) -> Result<(), Refusal> {
    let is_own = provider.origin.as_deref() == Some(origin);
    match mapped.iter().find(|one| !is_own && !one.reference.may_go_to(origin)) {
        None => Ok(()),
        Some(one) => {
            let why =
                format!("the secret reference `{}` may not be sent to {}", one.reference.slug, origin.authority());
            Err(Refusal::secret_not_allowed(&integration.slug, &why))
        }
    }
}

fn one(
    mapping: Mapping,
    owner: MappingOwner<'_>,
    workspace: &Workspace,
    snapshot: &Snapshot,
) -> Result<Mapped, Refusal> {
    // Where a credential belongs must be known before anything is fetched.
    if mapping.target_field == "configurations.custom_host" {
        return Err(Refusal::not_implemented("a custom host from a secret reference"));
    }
    let found = snapshot.secret_reference(&mapping.secret_reference_id);
    let Some(reference) = found.filter(|found| found.organisation_id == owner.organisation_id) else {
        return Err(Refusal::secret_unavailable(owner.slug, "its secret reference does not exist"));
    };
    if !reference.serves(workspace.id) {
        let why = format!("the secret reference `{}` may not be used in this workspace", reference.slug);
        return Err(Refusal::secret_not_allowed(owner.slug, &why));
    }
    let Mapping { target_field: target, secret_key: entry, value_format: format, .. } = mapping;
    Ok(Mapped { reference, entry, target, format, value: OnceLock::new() })
}

impl Mapped {
    /// Puts the value where it belongs; false when it has none, or none of the form it should have.
    pub fn put(&self, into: &mut Credentials) -> bool {
        let Some(text) = self.value.get().and_then(Secret::expose_text) else { return false };
        let value = match self.format {
            // Managers keep the line end that a file brought along; no header can carry one.
            Format::String => Value::String(text.trim_end_matches(['\r', '\n']).to_owned()),
            Format::Json => match serde_json::from_str(text) {
                Ok(value) => value,
                Err(_) => return false,
            },
        };
        match self.target.strip_prefix("configurations.") {
            Some(field) => {
                into.configurations.insert(field.to_owned(), value);
            }
            None => {
                into.key = Some(match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                });
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::secrets::seal::Sealed;

    fn mapped(target: &str, format: Format, value: Option<&str>) -> Mapped {
        let reference = SecretReference {
            id: Uuid::nil(),
            organisation_id: Uuid::nil().into(),
            slug: "r".into(),
            manager_type: "hashicorp_vault".into(),
            auth_config: json!({}),
            sealed_auth_config: Sealed::from(Vec::new()),
            secret_path: "p".into(),
            secret_key: None,
            allow_all_workspaces: true,
            allowed_workspaces: Vec::new(),
            allowed_hosts: Vec::new(),
        };
        let held = OnceLock::new();
        if let Some(value) = value {
            held.set(Secret::from(value.to_owned())).unwrap();
        }
        Mapped { reference: Arc::new(reference), entry: None, target: target.into(), format, value: held }
    }

    #[test]
    fn a_value_goes_to_the_field_it_is_mapped_to_in_the_form_it_should_have() {
        let text = |target: &str, format, value: Option<&str>| {
            let mut into = Credentials { key: Some("old".into()), ..Credentials::default() };
            mapped(target, format, value).put(&mut into).then(|| (into.key, Value::Object(into.configurations)))
        };
        let key = |key: &str| Some(key.to_owned());
        for (target, format, value, expected) in [
            ("key", Format::String, Some("new"), Some((key("new"), json!({})))),
            ("key", Format::String, Some("new\r\n"), Some((key("new"), json!({})))),
            ("key", Format::Json, Some("\"new\""), Some((key("new"), json!({})))),
            ("key", Format::Json, Some("{\"a\":1}"), Some((key("{\"a\":1}"), json!({})))),
            ("configurations.region", Format::String, Some("eu"), Some((key("old"), json!({ "region": "eu" })))),
            (
                "configurations.account",
                Format::Json,
                Some("{\"a\":1}"),
                Some((key("old"), json!({ "account": { "a": 1 } }))),
            ),
            ("configurations.account", Format::Json, Some("{"), None),
            ("key", Format::String, None, None),
        ] {
            assert_eq!(text(target, format, value), expected, "{target} {format:?} {value:?}");
        }
    }
}
