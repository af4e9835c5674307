//! Tokens (JWT) as credentials. Which keys sign them is a setting of each organisation; this is what the installation
//! adds, mostly so that tokens made for another system can be used as they are.

use super::features::on_or_off;
use uuid::Uuid;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Tokens (JWT)")]
pub struct Jwt {
    /// Whether tokens are accepted in place of API keys, ON or OFF.
    #[arg(long, env = "JWT_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub jwt_enabled: bool,
    /// Organisations of this installation, comma separated.
    ///
    /// A single one is meant by tokens that name none.
    #[arg(long, env = "ORGANISATIONS_TO_SYNC", value_delimiter = ',')]
    pub organisations_to_sync: Vec<Uuid>,
    /// Scopes of tokens that carry no scope claim at all, comma separated.
    #[arg(long, env = "JWT_LOCAL_AUTH_DEFAULT_SCOPES", value_delimiter = ',')]
    pub jwt_local_auth_default_scopes: Vec<String>,
    /// Further claims that may name the organisation, comma separated.
    ///
    /// They come after gateway_oid and organisation_id.
    #[arg(long, env = "JWT_ORG_CLAIMS", value_delimiter = ',')]
    pub jwt_org_claims: Vec<String>,
    /// Further claims that may name the workspace, comma separated.
    ///
    /// They come after gateway_workspace and workspace_slug.
    #[arg(long, env = "JWT_WORKSPACE_CLAIMS", value_delimiter = ',')]
    pub jwt_workspace_claims: Vec<String>,
    /// Further prefixes that scopes may carry besides `gateway.`, comma separated.
    #[arg(long, env = "JWT_SCOPE_PREFIXES", value_delimiter = ',')]
    pub jwt_scope_prefixes: Vec<String>,
}
