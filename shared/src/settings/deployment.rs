//! Gateway deployments: which one a proxy is, and how many an organisation may have.

use std::fmt;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Deployment")]
pub struct DeploymentSettings {
    /// Slug of the deployment that this proxy belongs to.
    ///
    /// It then serves that deployment's workspaces only.
    #[arg(long, env = "GATEWAY_DEPLOYMENT_SLUG", requires = "gateway_deployment_token")]
    pub gateway_deployment_slug: Option<String>,
    /// The deployment's token, shown once when it was made.
    #[arg(long, env = "GATEWAY_DEPLOYMENT_TOKEN", hide_env_values = true, requires = "gateway_deployment_slug")]
    pub gateway_deployment_token: Option<String>,
}

/// Settings end up in debug output sooner or later; the token must not.
impl fmt::Debug for DeploymentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployment")
            .field("gateway_deployment_slug", &self.gateway_deployment_slug)
            .field("gateway_deployment_token", &self.gateway_deployment_token.as_ref().map(|_| "…"))
            .finish()
    }
}

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Deployment limits")]
pub struct DeploymentLimits {
    /// Most production deployments of an organisation; any number when negative.
    #[arg(long, env = "MAX_PRODUCTION_DEPLOYMENTS", default_value_t = -1, allow_negative_numbers = true)]
    pub max_production_deployments: i64,
    /// Most non-production deployments of an organisation; any number when negative.
    #[arg(long, env = "MAX_NON_PRODUCTION_DEPLOYMENTS", default_value_t = -1, allow_negative_numbers = true)]
    pub max_non_production_deployments: i64,
}
