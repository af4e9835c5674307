//! Bifrost's `config.json`: each key of a provider becomes an integration with a provider, several of them a config that chooses
//! by weight, virtual keys become service keys with their budgets and rates.

mod accounts;
mod governance;
mod providers;

use super::result::Import;
use super::slug;
use super::source::Source;
use crate::tree::template::escaped;
use serde_json::{Map, json};

pub fn read(mut root: Source, import: &mut Import) {
    for (name, provider) in root.take_section("providers").map(Source::into_fields).unwrap_or_default() {
        providers::read(&name, provider, import);
    }
    if let Some(governance) = root.take_section("governance") {
        governance::read(governance, import);
    }
    if let Some(mut mcp) = root.take_section("mcp") {
        for server in mcp.take_items("client_configs") {
            read_server(server, import);
        }
        import.unmapped_rest(mcp, |_| "no setting of MCP servers here".to_owned());
    }
    import.unmapped_rest(root, |name| {
        match name {
            "client" | "framework" | "$schema" | "encryption_key" => {
                "a setting of the installation: see conf/gateway.toml"
            }
            "config_store" | "logs_store" => "the gateway keeps its own database (DATABASE_URL)",
            "vector_store" => "the semantic cache keeps answers by itself, or in Postgres or Redis (docs/cache.md)",
            "plugins" => "caches, guardrails, prices and traces are there without plugins",
            _ => "no section that the gateway has",
        }
        .to_owned()
    });
}

fn read_server(mut server: Source, import: &mut Import) {
    if server.text("name").is_none() || server.text("connection_string").is_none() {
        return import.unmapped(server.location, "a server that is a program of the machine: run it behind HTTP");
    }
    let (Some(name), Some(address)) = (server.take_text("name"), server.take_text("connection_string")) else { return };
    let transport = match server.take_text("connection_type") {
        Some(kind) => {
            let word = if kind.value == "sse" { "sse" } else { "http" };
            import.mapped(kind.location, "transport of the MCP integration");
            word
        }
        None => "http",
    };
    let title = escaped(&slug::title(&name.value));
    let own_name = slug::variable(&format!("{} url", name.value));
    let mut integration = Map::new();
    integration.insert("name".to_owned(), title.clone().into());
    integration.insert("url".to_owned(), import.address(&address, "", &own_name).into());
    integration.insert("transport".to_owned(), transport.into());
    integration.insert("auth_type".to_owned(), "none".into());
    let slug = import.free_slug("mcp-integration", &name.value);
    import.add("mcp-integration", &slug, integration);
    let spec = json!({ "name": title, "mcp_integration_id": slug });
    let server_slug = import.free_slug("mcp-server", &name.value);
    import.add("mcp-server", &server_slug, spec.as_object().cloned().unwrap_or_default());
    import.mapped(name.location, "name of the MCP integration and its server");
    import.mapped(address.location, "url of the MCP integration");
    import.unmapped_rest(server, |_| {
        "no field of an MCP integration; which tools may be called is set at the server".to_owned()
    });
}
