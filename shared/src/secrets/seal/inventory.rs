//! Where sealed values are stored. A rotation walks over this list, so a column that is not on it would lose its key.

use super::SealedPlace;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedColumn {
    pub table: &'static str,
    pub column: &'static str,
    /// The column that names the organisation.
    pub organisation: &'static str,
}

/// Each row has an `id`, and the column's name is the field of its place.
pub static SEALED: &[SealedColumn] = &[
    SealedColumn { table: "integrations", column: "sealed", organisation: "organisation_id" },
    SealedColumn { table: "integration_models", column: "sealed", organisation: "organisation_id" },
    SealedColumn { table: "providers", column: "sealed", organisation: "organisation_id" },
    SealedColumn { table: "secret_references", column: "sealed_auth_config", organisation: "organisation_id" },
    SealedColumn { table: "plugins", column: "sealed", organisation: "organisation_id" },
    SealedColumn { table: "mcp_integrations", column: "sealed", organisation: "organisation_id" },
    SealedColumn { table: "saml_keys", column: "sealed_key", organisation: "organisation_id" },
    SealedColumn { table: "saml_keys", column: "sealed_standby_key", organisation: "organisation_id" },
    SealedColumn { table: "mcp_clients", column: "access_token", organisation: "organisation_id" },
    SealedColumn { table: "mcp_clients", column: "client_secret", organisation: "organisation_id" },
    SealedColumn { table: "mcp_connections", column: "access_token", organisation: "organisation_id" },
    SealedColumn { table: "mcp_connections", column: "refresh_token", organisation: "organisation_id" },
    SealedColumn { table: "mcp_oauth_states", column: "verifier", organisation: "organisation_id" },
    SealedColumn { table: "organisations", column: "auth_secrets", organisation: "id" },
    SealedColumn { table: "batches", column: "sealed", organisation: "organisation_id" },
    SealedColumn { table: "sessions", column: "id_token", organisation: "organisation_id" },
];

/// A column of JSON in which single texts are sealed, see `config::credentials`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedDocument {
    pub table: &'static str,
    pub column: &'static str,
    /// The column that names the config whose secrets they are.
    pub config: &'static str,
}

/// Each has an `id` and an `organisation_id`.
pub static DOCUMENTS: &[SealedDocument] = &[
    SealedDocument { table: "configs", column: "config", config: "id" },
    SealedDocument { table: "config_versions", column: "content", config: "config_id" },
];

impl SealedColumn {
    pub fn place(&self, organisation: Uuid, row: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: self.table, row, field: self.column }
    }
}
