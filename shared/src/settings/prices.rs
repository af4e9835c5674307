//! What is known of providers and their models beside what is bundled.

use super::features::on_or_off;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Catalogue")]
pub struct PriceSettings {
    /// File of further providers in the form of conf/providers.toml; its rows win over the bundled ones.
    #[arg(long, env = "PROVIDERS_FILE")]
    pub providers_file: Option<PathBuf>,
    /// Whether prices and capabilities of models are asked of MODEL_CONFIGS_PROXY_URL first (ON or OFF).
    #[arg(long, env = "MODEL_CONFIGS_PROXY_FETCH_ENABLED", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub model_configs_proxy_fetch_enabled: bool,
    /// Service that has /pricing/{provider} and /general/{provider}; answers are kept for an hour.
    #[arg(long, env = "MODEL_CONFIGS_PROXY_URL")]
    pub model_configs_proxy_url: Option<String>,
    /// Folder of prices in the log store, or a URL of the same kinds; asked second.
    ///
    /// One `{provider}.json` each.
    #[arg(long, env = "MODEL_CONFIGS_PRICING_LOG_STORE_PATH")]
    pub model_configs_pricing_log_store_path: Option<String>,
    /// The same for capabilities.
    #[arg(long, env = "MODEL_CONFIGS_CAPABILITIES_LOG_STORE_PATH")]
    pub model_configs_capabilities_log_store_path: Option<String>,
    /// Folder of prices on this machine, asked third, before what is bundled: one {provider}.json each.
    #[arg(long, env = "MODEL_CONFIGS_PRICING_LOCAL_PATH")]
    pub model_configs_pricing_local_path: Option<PathBuf>,
    /// The same for capabilities.
    #[arg(long, env = "MODEL_CONFIGS_CAPABILITIES_LOCAL_PATH")]
    pub model_configs_capabilities_local_path: Option<PathBuf>,
    /// Whether answers of the engine lane tell what they cost (ON or OFF).
    ///
    /// Organisations, workspaces and keys can switch it off (`cost_in_answers`).
    #[arg(long, env = "COST_HEADERS", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub cost_headers: bool,
}
