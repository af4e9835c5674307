//! Which secret, in which manager, and how we prove who we are to it. The fields of each manager and mode are a table,
//! by which the control plane checks, masks and seals and the proxy reads.

use super::seal::Secret;
use crate::nearest::nearest;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManagerKind {
    Aws,
    Azure,
    Vault,
}

/// A field of `auth_config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub is_required: bool,
    pub is_secret: bool,
}

/// A reference together with what opens its manager; from a row and its opened credentials.
#[derive(Debug, Clone)]
pub struct Reference {
    pub id: Uuid,
    pub access: ManagerAccess,
    pub secret_path: String,
    /// The entry of a secret that holds several.
    pub secret_key: Option<String>,
    /// Changes with anything above but the entry.
    pub(super) fingerprint: [u8; 32],
    /// Changes with what is shown to the manager.
    pub(super) login: [u8; 32],
}

impl Reference {
    /// `config` is the whole `auth_config`, its secret fields opened.
    pub fn new(
        id: Uuid,
        kind: ManagerKind,
        config: &Map<String, Value>,
        secret_path: String,
        secret_key: Option<String>,
    ) -> Result<Self, BadAccess> {
        let access = ManagerAccess::parse(kind, config)?;
        let sorted: BTreeMap<&String, &Value> = config.iter().collect();
        let config = serde_json::to_vec(&sorted).unwrap_or_default();
        let hash = |path: &str| {
            let parts = [id.as_bytes().as_slice(), kind.as_str().as_bytes(), b"\0", path.as_bytes(), b"\0", &config];
            Sha256::digest(parts.concat()).into()
        };
        let (fingerprint, login) = (hash(&secret_path), hash(""));
        Ok(Self { id, access, secret_path, secret_key, fingerprint, login })
    }
}

#[derive(Debug, Clone)]
pub enum ManagerAccess {
    AwsKey {
        id: Secret,
        secret: Secret,
        region: String,
    },
    /// Our own identity takes on this role.
    AwsRole {
        role_arn: Secret,
        external_id: Option<Secret>,
        region: String,
    },
    AwsOwn {
        region: Option<String>,
    },
    AzureEntra {
        tenant: String,
        client: String,
        secret: Secret,
        vault_url: String,
    },
    AzureManaged {
        client: Option<String>,
        vault_url: String,
    },
    /// Whatever identity Azure gave this process.
    AzureOwn {
        vault_url: String,
    },
    VaultToken {
        address: String,
        token: Secret,
        namespace: Option<String>,
    },
    VaultAppRole {
        address: String,
        role_id: String,
        secret_id: Secret,
        namespace: Option<String>,
    },
    VaultKubernetes {
        address: String,
        role: String,
        namespace: Option<String>,
    },
}

/// What is wrong with an `auth_config`; names the field and never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct BadAccess {
    pub field: String,
    pub message: String,
}

fn bad(field: &str, message: impl Into<String>) -> BadAccess {
    BadAccess { field: field.to_owned(), message: message.into() }
}

const fn plain(name: &'static str, is_required: bool) -> Field {
    Field { name, is_required, is_secret: false }
}

const fn secret(name: &'static str, is_required: bool) -> Field {
    Field { name, is_required, is_secret: true }
}

/// The modes of a manager and the fields that each needs.
type Modes = &'static [(&'static str, &'static [Field])];

static AWS: Modes = &[
    (
        "accessKey",
        &[secret("aws_access_key_id", true), secret("aws_secret_access_key", true), plain("aws_region", true)],
    ),
    ("assumedRole", &[secret("aws_role_arn", true), secret("aws_external_id", false), plain("aws_region", true)]),
    ("serviceRole", &[plain("aws_region", false)]),
];

static AZURE: Modes = &[
    (
        "entra",
        &[
            plain("azure_entra_tenant_id", true),
            plain("azure_entra_client_id", true),
            secret("azure_entra_client_secret", true),
            plain("azure_vault_url", true),
        ],
    ),
    ("managed", &[plain("azure_managed_client_id", false), plain("azure_vault_url", true)]),
    ("default", &[plain("azure_vault_url", true)]),
];

static VAULT: Modes = &[
    ("token", &[plain("vault_addr", true), secret("vault_token", true), plain("vault_namespace", false)]),
    (
        "approle",
        &[
            plain("vault_addr", true),
            plain("vault_role_id", true),
            secret("vault_secret_id", true),
            plain("vault_namespace", false),
        ],
    ),
    ("kubernetes", &[plain("vault_addr", true), plain("vault_role", true), plain("vault_namespace", false)]),
];

impl ManagerKind {
    pub const ALL: [Self; 3] = [Self::Aws, Self::Azure, Self::Vault];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws_sm",
            Self::Azure => "azure_kv",
            Self::Vault => "hashicorp_vault",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The field that names the mode.
    pub const fn mode_field(self) -> &'static str {
        match self {
            Self::Aws => "aws_auth_type",
            Self::Azure => "azure_auth_mode",
            Self::Vault => "vault_auth_type",
        }
    }

    fn modes(self) -> Modes {
        match self {
            Self::Aws => AWS,
            Self::Azure => AZURE,
            Self::Vault => VAULT,
        }
    }

    pub fn mode_names(self) -> Vec<&'static str> {
        self.modes().iter().map(|(name, _)| *name).collect()
    }
}

/// The fields of the mode that a config names, beside the one that names it.
pub fn fields(kind: ManagerKind, config: &Map<String, Value>) -> Result<&'static [Field], BadAccess> {
    let mode = config.get(kind.mode_field()).and_then(Value::as_str).unwrap_or_default();
    let found = kind.modes().iter().find(|(name, _)| *name == mode);
    let wrong = || {
        let names = kind.mode_names();
        let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let meant = hint(mode, names);
        bad(kind.mode_field(), format!("must be one of {}{meant}", listed.join(", ")))
    };
    found.map(|(_, fields)| *fields).ok_or_else(wrong)
}

/// `token` is what others call `vault_token`.
fn hint<'a>(sent: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(sent, known).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

const MAX_REFERENCE: usize = 4096;

impl ManagerAccess {
    /// Reads a whole config, secret fields included. What does not belong to the mode is refused, so that a mistyped
    /// name is not silently missing.
    pub fn parse(kind: ManagerKind, config: &Map<String, Value>) -> Result<Self, BadAccess> {
        let fields = fields(kind, config)?;
        let is_known = |name: &str| name == kind.mode_field() || fields.iter().any(|field| field.name == name);
        if let Some(unknown) = config.keys().find(|name| !is_known(name)) {
            let meant = hint(unknown, fields.iter().map(|field| field.name));
            return Err(bad(unknown, format!("is not a field of this way to authenticate{meant}")));
        }
        for field in fields {
            match config.get(field.name) {
                None | Some(Value::Null) if field.is_required => return Err(bad(field.name, "is required")),
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if is_sent_as_header(text) => {}
                Some(_) => {
                    return Err(bad(field.name, format!("must be text of 1 to {MAX_REFERENCE} visible characters")));
                }
            }
        }
        let text = |name: &str| config.get(name).and_then(Value::as_str).map(str::to_owned);
        let need = |name: &str| text(name).ok_or_else(|| bad(name, "is required"));
        let hidden = |name: &str| need(name).map(Secret::from);
        let mode = config.get(kind.mode_field()).and_then(Value::as_str).unwrap_or_default();
        Ok(match (kind, mode) {
            (ManagerKind::Aws, "accessKey") => Self::AwsKey {
                id: hidden("aws_access_key_id")?,
                secret: hidden("aws_secret_access_key")?,
                region: region(need("aws_region")?)?,
            },
            (ManagerKind::Aws, "assumedRole") => Self::AwsRole {
                role_arn: hidden("aws_role_arn")?,
                external_id: text("aws_external_id").map(Secret::from),
                region: region(need("aws_region")?)?,
            },
            (ManagerKind::Aws, _) => Self::AwsOwn { region: text("aws_region").map(region).transpose()? },
            (ManagerKind::Azure, "entra") => Self::AzureEntra {
                tenant: segment("azure_entra_tenant_id", need("azure_entra_tenant_id")?)?,
                client: need("azure_entra_client_id")?,
                secret: hidden("azure_entra_client_secret")?,
                vault_url: vault_url(need("azure_vault_url")?)?,
            },
            (ManagerKind::Azure, "managed") => Self::AzureManaged {
                client: text("azure_managed_client_id"),
                vault_url: vault_url(need("azure_vault_url")?)?,
            },
            (ManagerKind::Azure, _) => Self::AzureOwn { vault_url: vault_url(need("azure_vault_url")?)? },
            (ManagerKind::Vault, "token") => Self::VaultToken {
                address: address(need("vault_addr")?)?,
                token: hidden("vault_token")?,
                namespace: text("vault_namespace"),
            },
            (ManagerKind::Vault, "approle") => Self::VaultAppRole {
                address: address(need("vault_addr")?)?,
                role_id: need("vault_role_id")?,
                secret_id: hidden("vault_secret_id")?,
                namespace: text("vault_namespace"),
            },
            (ManagerKind::Vault, _) => Self::VaultKubernetes {
                address: address(need("vault_addr")?)?,
                role: need("vault_role")?,
                namespace: text("vault_namespace"),
            },
        })
    }

    /// Whether the gateway shows who it is itself, instead of a credential that the reference brings.
    pub fn uses_own_identity(&self) -> bool {
        match self {
            Self::AwsRole { .. }
            | Self::AwsOwn { .. }
            | Self::AzureManaged { .. }
            | Self::AzureOwn { .. }
            | Self::VaultKubernetes { .. } => true,
            Self::AwsKey { .. } | Self::AzureEntra { .. } | Self::VaultToken { .. } | Self::VaultAppRole { .. } => {
                false
            }
        }
    }
}

/// Each of them ends in a header, a form or JSON; what no header can carry is a slip.
fn is_sent_as_header(text: &str) -> bool {
    (1..=MAX_REFERENCE).contains(&text.len()) && text.chars().all(|c| !c.is_control())
}

/// Becomes part of a host name.
fn region(text: String) -> Result<String, BadAccess> {
    let fits = text.len() <= 32 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if fits { Ok(text) } else { Err(bad("aws_region", "must be a region as us-east-1")) }
}

/// Becomes part of a path.
fn segment(field: &str, text: String) -> Result<String, BadAccess> {
    let fits = text.len() <= 255 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if fits && text != "." && text != ".." { Ok(text) } else { Err(bad(field, "must be an id or a domain name")) }
}

/// A token of ours goes there, so it must be Azure's.
fn vault_url(text: String) -> Result<String, BadAccess> {
    match super::is_vault_url(&text) {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => {
            Err(bad("azure_vault_url", "must be the https address of a key vault, as https://name.vault.azure.net"))
        }
    }
}

fn address(text: String) -> Result<String, BadAccess> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits = rest.is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with(['/', ':'])
            && rest.bytes().all(|b| b.is_ascii_graphic() && !b"@?#\\%\"<>".contains(&b))
            && !rest.split('/').any(|part| part == "." || part == "..")
    });
    match fits {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err(bad("vault_addr", "must be an http or https URL without user, query and fragment")),
    }
}

#[cfg(test)]
mod tests;
