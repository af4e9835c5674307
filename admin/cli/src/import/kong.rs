//! Kong's declarative configuration: AI proxies of routes become integrations, providers and a config for each route, consumers
//! with keys become service keys, limits and prompt guards of everything become a policy and a guardrail.

mod ai_proxy;
mod credentials;
mod others;

use super::result::Import;
use super::source::Source;

const NOT_AI: &str = "no plugin of calls to models";

pub fn read(mut root: Source, import: &mut Import) {
    for service in root.take_items("services") {
        read_holder(service, "service", import);
    }
    for route in root.take_items("routes") {
        read_holder(route, "route", import);
    }
    for mut plugin in root.take_items("plugins") {
        let holder = ["route", "service"].iter().find_map(|holder| plugin.take_text(holder));
        match holder {
            Some(holder) => {
                import.mapped(holder.location, "the name of what the plugin becomes");
                read_plugin(plugin, &holder.value, import);
            }
            None => others::read_global(plugin, import),
        }
    }
    for consumer in root.take_items("consumers") {
        others::read_consumer(consumer, import);
    }
    import.unmapped_rest(root, |name| {
        match name.strip_prefix('_') {
            Some(_) => "of the tool that writes the file",
            None => "no section about calls to models",
        }
        .to_owned()
    });
}

/// A service or a route: what matters of it are its plugins and its routes.
fn read_holder(mut holder: Source, kind: &str, import: &mut Import) {
    let name = holder.take_text("name");
    let title = name.as_ref().map_or(kind, |name| name.value.as_str()).to_owned();
    if let Some(name) = name {
        import.mapped(name.location, "the name of what its plugins become");
    }
    for plugin in holder.take_items("plugins") {
        read_plugin(plugin, &title, import);
    }
    for route in holder.take_items("routes") {
        read_holder(route, "route", import);
    }
    import.unmapped_rest(holder, |field| {
        match field {
            "paths" | "hosts" | "methods" => "requests are led by their model and config, not by their path",
            _ => "the gateway has addresses of its own",
        }
        .to_owned()
    });
}

fn read_plugin(plugin: Source, holder: &str, import: &mut Import) {
    match plugin.text("name") {
        Some("ai-proxy" | "ai-proxy-advanced") => ai_proxy::read(plugin, holder, import),
        Some("rate-limiting" | "ai-rate-limiting-advanced" | "ai-prompt-guard") => {
            import.unmapped(
                plugin.location,
                "of one route: set it at the config or at the key, as its limits and guardrails",
            );
        }
        _ => import.unmapped(plugin.location, NOT_AI),
    }
}
