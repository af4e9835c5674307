//! How large config objects may be.

use crate::settings::config_limits::ConfigLimits;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Configs")]
pub struct Configs {
    /// Targets that the root of a config may have.
    #[arg(long, env = "MAX_ROOT_CONFIG_TARGETS", default_value_t = 100)]
    pub max_root_config_targets: usize,
    /// Targets that the root may have when conditions choose among them.
    #[arg(long, env = "MAX_CONDITIONAL_ROOT_CONFIG_TARGETS", default_value_t = 1000)]
    pub max_conditional_root_config_targets: usize,
    /// Targets, at all levels, below one target of the root.
    #[arg(long, env = "MAX_NESTED_CONFIG_TARGETS", default_value_t = 50)]
    pub max_nested_config_targets: usize,
}

impl Configs {
    pub fn limits(&self) -> ConfigLimits {
        ConfigLimits {
            root_targets: self.max_root_config_targets,
            conditional_root_targets: self.max_conditional_root_config_targets,
            nested_targets: self.max_nested_config_targets,
            ..ConfigLimits::default()
        }
    }
}
