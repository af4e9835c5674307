//! Kong's declarative configuration: AI proxies of routes become integrations, providers and a config for each route, consumers
//! with keys become service keys, limits and prompt guards of everything become a policy and a guardrail.

mod accounts;
mod ai_proxy;
mod others;

use super::result::Import;
use super::source::{Location, Source};

const NOT_AI: &str = "no plugin of calls to models";
const OFF: &str = "a plugin that is switched off";

pub fn read(mut root: Source, import: &mut Import) {
    for service in root.take_items("services") {
        read_holder(service, "service", import);
    }
    for route in root.take_items("routes") {
        read_holder(route, "route", import);
    }
    for mut plugin in root.take_items("plugins") {
        if is_off(&plugin) {
            import.unmapped(plugin.location, OFF);
            continue;
        }
        let holder = ["route", "service"].iter().find_map(|holder| plugin.take_text(holder));
        match holder {
            Some(holder) => {
                let before = import.documents.len();
                read_plugin(plugin, &holder.value, import);
                tell_name(holder.location, before, import);
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
    let before = import.documents.len();
    for plugin in holder.take_items("plugins") {
        read_plugin(plugin, &title, import);
    }
    if let Some(name) = name {
        tell_name(name.location, before, import);
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

/// A line for the name of what plugins became, if they became anything since there were so many documents.
fn tell_name(location: Location, before: usize, import: &mut Import) {
    match import.documents.len() > before {
        true => import.mapped(location, "the name of what its plugins become"),
        false => import.unmapped(location, "nothing is made of its own plugins"),
    }
}

fn is_off(plugin: &Source) -> bool {
    plugin.value()["enabled"] == false
}

fn read_plugin(plugin: Source, holder: &str, import: &mut Import) {
    if is_off(&plugin) {
        return import.unmapped(plugin.location, OFF);
    }
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
