//! The kinds of credentials that act for a caller. Scopes and routes go by them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyKind {
    OrganisationService,
    WorkspaceService,
    WorkspaceUser,
    /// Not a key but a token, which acts like one and is stored nowhere.
    Jwt,
}

impl KeyKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrganisationService => "organisation-service",
            Self::WorkspaceService => "workspace-service",
            Self::WorkspaceUser => "workspace-user",
            Self::Jwt => "jwt",
        }
    }
}
