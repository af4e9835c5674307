//! Feature flags: on unless the value is `OFF`.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Features (ON or OFF)")]
pub struct Features {
    /// Guardrail routes and checks.
    #[arg(long, env = "GUARDRAILS_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub guardrails_enabled: bool,
    /// Control-plane routes for API keys.
    #[arg(long, env = "API_ACCESS_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub api_access_enabled: bool,
    /// Log exports.
    #[arg(long, env = "DATA_EXPORTS_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub data_exports_enabled: bool,
    /// Usage and rate limits on keys, providers and workspaces.
    #[arg(long, env = "USAGE_LIMITS_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub usage_limits_enabled: bool,
    /// Reading the audit log; writing it never stops.
    #[arg(long, env = "AUDIT_LOGS_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub audit_logs_enabled: bool,
    /// SCIM routes.
    #[arg(long, env = "SCIM_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub scim_enabled: bool,
    /// Whether the groups of a person come with the person, instead of the members with the group.
    #[arg(long, env = "SCIM_MEMBERSHIP_USER_MODE", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub scim_membership_user_mode: bool,
    /// Policy routes.
    #[arg(long, env = "POLICY_ENABLED", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub policy_enabled: bool,
}

pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" | "1" => Ok(true),
        "OFF" | "FALSE" | "0" => Ok(false),
        _ => Err("expected ON or OFF".into()),
    }
}
