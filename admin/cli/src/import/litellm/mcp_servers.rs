//! `mcp_servers`: each becomes an integration and a server of the workspace.

use super::advice;
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::Source;
use crate::tree::template::escaped;
use serde_json::{Map, json};

const MAX_DESCRIPTION: usize = 1024;

pub fn read(servers: Source, import: &mut Import) {
    for (name, server) in servers.into_fields() {
        read_server(&name, server, import);
    }
}

fn read_server(name: &str, mut server: Source, import: &mut Import) {
    let transport = server.take_text("transport");
    let is_local = transport.as_ref().is_some_and(|transport| transport.value == "stdio");
    let url = server.take_text("url");
    let Some(url) = url.filter(|_| !is_local) else {
        let locations = [transport.map(|transport| transport.location), Some(server.location.clone())];
        for location in locations.into_iter().flatten() {
            import.unmapped(
                location,
                "a server that is a program of the machine: run it behind HTTP, then name its address",
            );
        }
        return;
    };
    let mut integration = Map::new();
    let title = escaped(&slug::title(name));
    integration.insert("name".to_owned(), title.clone().into());
    let own_name = slug::variable(&format!("{name} url"));
    integration.insert("url".to_owned(), import.address(&url, "", &own_name).into());
    import.mapped(url.location, "url of the MCP integration");
    let word = transport.map_or("http", |transport| {
        let word = if transport.value == "sse" { "sse" } else { "http" };
        import.mapped(transport.location, "transport of the MCP integration");
        word
    });
    integration.insert("transport".to_owned(), word.into());
    let headers = headers(name, &mut server, import);
    integration.insert("auth_type".to_owned(), if headers.is_empty() { "none" } else { "headers" }.into());
    if !headers.is_empty() {
        integration.insert("configurations".to_owned(), json!({ "custom_headers": headers }));
    }
    if let Some(text) = server.take_short_text("description", MAX_DESCRIPTION) {
        integration.insert("description".to_owned(), escaped(&text.value).into());
        import.mapped(text.location, "description of the MCP integration");
    }
    let slug = import.free_slug("mcp-integration", name);
    import.add("mcp-integration", &slug, integration);
    let mut spec = Map::new();
    spec.insert("name".to_owned(), title.into());
    spec.insert("mcp_integration_id".to_owned(), slug.into());
    let server_slug = import.free_slug("mcp-server", name);
    import.add("mcp-server", &server_slug, spec);
    import.unmapped_rest(server, |field| advice::sentence("mcp_servers", field));
}

/// The credential as a header, and other headers.
fn headers(name: &str, server: &mut Source, import: &mut Import) -> Map<String, serde_json::Value> {
    let mut headers = Map::new();
    let kind = server.take_text("auth_type");
    let token = ["auth_value", "authentication_token"].iter().find_map(|field| server.take_text(field));
    if let Some(token) = token {
        let own_name = format!("{}_TOKEN", slug::variable(name));
        let variable = import.credential(&token.location, &token.value, &own_name);
        let kind = kind.as_ref().map_or("bearer_token", |kind| kind.value.as_str());
        let (header, value) = match kind {
            "api_key" => ("X-API-Key", variable),
            "basic" => ("Authorization", format!("Basic {variable}")),
            "authorization" => ("Authorization", variable),
            _ => ("Authorization", format!("Bearer {variable}")),
        };
        headers.insert(header.to_owned(), value.into());
        import.mapped(token.location, format!("the header {header} of the MCP integration"));
    }
    if let Some(kind) = kind {
        match kind.value.as_str() {
            "none" | "api_key" | "bearer_token" | "basic" | "authorization" => {
                import.mapped(kind.location, "how the header is written")
            }
            _ => {
                import.unmapped(kind.location, "sign-in by OAuth: set `auth_type` of the MCP integration to oauth_auto")
            }
        }
    }
    for (header, value) in server.take_section("static_headers").map(Source::into_fields).unwrap_or_default() {
        match value.value().as_str() {
            Some(text) => {
                let own_name = slug::variable(&format!("{name} {header}"));
                headers.insert(header, import.credential(&value.location, text, &own_name).into());
                import.mapped(value.location, "custom_headers of the MCP integration");
            }
            None => import.unmapped(value.location, "no text"),
        }
    }
    headers
}
