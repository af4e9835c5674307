//! LiteLLM's `config.yaml`: accounts become integrations and providers, names of models become targets of one config, which is
//! the workspace's default, so that applications go on with the names that they use.

mod accounts;
mod advice;
mod deployments;
mod mcp_servers;
mod reading;
mod router;
mod settings;
mod vendors;

use super::result::Import;
use super::source::Source;
use accounts::Accounts;
use deployments::Groups;
use settings::Settings;

pub fn read(mut root: Source, import: &mut Import) {
    vendors::own_variables().for_each(|name| import.reserve_variable(&name));
    let mut settings = Settings::default();
    for section in ["router_settings", "litellm_settings"] {
        if let Some(source) = root.take_section(section) {
            settings.read(source, section, import);
        }
    }
    let (mut accounts, mut groups) = (Accounts::default(), Groups::default());
    for model in root.take_items("model_list") {
        groups.read(model, &mut accounts, import);
    }
    accounts.write(import);
    router::write(groups, settings, import);
    if let Some(servers) = root.take_section("mcp_servers") {
        mcp_servers::read(servers, import);
    }
    for section in ["general_settings", "environment_variables"] {
        if let Some(source) = root.take_section(section) {
            import.unmapped_rest(source, |name| advice::sentence(section, name));
        }
    }
    import.unmapped_rest(root, |name| advice::sentence("", name));
}
