//! Consumers, and plugins that hold for everything.

use crate::import::bounds;
use crate::import::report::code;
use crate::import::result::Import;
use crate::import::source::Source;
use serde_json::{Map, Value, json};

/// Of one guardrail.
const MAX_CHECKS: usize = 50;
const UNITS: &[(&str, &str)] = &[("second", "rps"), ("minute", "rpm"), ("hour", "rph"), ("day", "rpd")];

/// A plugin without a route or service.
pub fn read_global(mut plugin: Source, import: &mut Import) {
    let name = plugin.take_text("name");
    let config = plugin.take_section("config");
    match (name, config) {
        (Some(name), Some(config)) if name.value == "rate-limiting" => {
            import.mapped(name.location, "policies of the workspace");
            read_rates(config, import);
            import.unmapped_rest(plugin, |_| "no field of a policy".to_owned());
        }
        (Some(name), Some(config)) if name.value == "ai-prompt-guard" => {
            import.mapped(name.location, "a guardrail");
            read_guard(config, import);
            import.unmapped_rest(plugin, |_| "no field of a guardrail".to_owned());
        }
        _ => import.unmapped(plugin.location, super::NOT_AI),
    }
}

/// One policy for each unit, counted for everybody together or for each key.
fn read_rates(mut config: Source, import: &mut Import) {
    let by = config.take_text("limit_by");
    let is_by_key = by.as_ref().is_none_or(|by| matches!(by.value.as_str(), "consumer" | "credential"));
    if let Some(by) = by {
        match by.value.as_str() {
            "consumer" | "credential" => {
                import.mapped(by.location, "group_by of the policies: each key is counted apart")
            }
            _ => import.unmapped(
                by.location,
                "policies count by key, workspace or metadata: this one counts everybody together",
            ),
        }
    }
    for (theirs, unit) in UNITS {
        let Some(most) = config.take_positive_count(theirs) else { continue };
        if *unit == "rps" {
            import.unmapped(most.location, "policies count for a minute, an hour or a day; keys for a second, too");
            continue;
        }
        if !bounds::is_rate(most.value) {
            import.unmapped(most.location, "larger than any rate that a policy can have");
            continue;
        }
        let mut spec = Map::new();
        spec.insert("type".to_owned(), "requests".into());
        spec.insert("unit".to_owned(), (*unit).into());
        spec.insert("value".to_owned(), most.value.into());
        if is_by_key {
            spec.insert("group_by".to_owned(), json!([{ "key": "api_key" }]));
        }
        let name = import.free_name("policy-rate-limits", &format!("requests a {theirs}"));
        import.add("policy-rate-limits", &name, spec);
        import.mapped(most.location, "value of a policy");
    }
    import.unmapped_rest(config, |_| "where limits are counted is a setting of the installation".to_owned());
}

fn read_guard(mut config: Source, import: &mut Import) {
    let mut checks = Vec::new();
    for pattern in config.take_items("deny_patterns") {
        match pattern.value() {
            Value::String(_) if checks.len() < MAX_CHECKS => {
                checks.push(
                    json!({ "id": "default.regexMatch", "parameters": { "rule": pattern.literal(), "not": true } }),
                );
                import.mapped(pattern.location, "a check of the guardrail");
            }
            Value::String(_) => {
                import.unmapped(pattern.location, format!("a guardrail has at most {MAX_CHECKS} checks: left out"));
            }
            _ => import.unmapped(pattern.location, "no pattern"),
        }
    }
    if !checks.is_empty() {
        let spec = json!({ "actions": { "deny": true }, "checks": checks });
        let name = import.free_name("guardrail", "Prompt guard");
        import.add("guardrail", &name, spec.as_object().cloned().unwrap_or_default());
    }
    import.unmapped_rest(config, |field| {
        match field {
            "allow_patterns" => "checks name what is refused; make one with `regexMatch` for what must be there",
            _ => "all texts of a request are looked at (`scope` of a hook says otherwise)",
        }
        .to_owned()
    });
}

/// A key for each consumer that has one.
pub fn read_consumer(mut consumer: Source, import: &mut Import) {
    let named = ["username", "custom_id"].iter().find_map(|field| consumer.take_text(field));
    let credentials = consumer.take_items("keyauth_credentials");
    let Some(named) = named else {
        return import.unmapped(consumer.location, "a consumer without a name");
    };
    if credentials.is_empty() {
        import.unmapped(named.location, "a consumer without a key");
    } else {
        let spec = json!({ "scopes": ["completions.write", "models.list"] });
        let name = import.free_name("api-key", &named.value);
        import.add("api-key", &name, spec.as_object().cloned().unwrap_or_default());
        import.mapped(named.location, format!("api-key {}", code(&name)));
    }
    for credential in credentials {
        import.unmapped(
            credential.location,
            "a new secret is made at the first apply (--secrets-out): applications need it",
        );
    }
    import.unmapped_rest(consumer, |_| "limits and groups are the key's own fields, or policies".to_owned());
}
