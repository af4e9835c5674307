//! Bifrost's virtual keys with their budgets and rates.

use crate::import::result::Import;
use crate::import::source::{Located, Source};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub fn read(mut governance: Source, import: &mut Import) {
    let mut budgets = by_id(&mut governance, "budgets", import);
    let mut rates = by_id(&mut governance, "rate_limits", import);
    for key in governance.take_items("virtual_keys") {
        read_key(key, &mut budgets, &mut rates, import);
    }
    for (_, unused) in budgets.into_iter().chain(rates) {
        import.unmapped(unused.location, "of a team, a customer or nobody: set it at the workspace, or as a policy");
    }
    import.unmapped_rest(governance, |_| "teams and customers are workspaces: make one and its members".to_owned());
}

fn by_id(governance: &mut Source, list: &str, import: &mut Import) -> BTreeMap<String, Source> {
    let mut by_id = BTreeMap::new();
    for item in governance.take_items(list) {
        let id = item.text("id").unwrap_or_default().to_owned();
        // One that repeats an id, or has none, is nobody's.
        if let Some(earlier) = by_id.insert(id, item) {
            import.unmapped(earlier.location, "its id is missing, or another's");
        }
    }
    by_id
}

fn read_key(
    mut key: Source,
    budgets: &mut BTreeMap<String, Source>,
    rates: &mut BTreeMap<String, Source>,
    import: &mut Import,
) {
    let Some(name) = key.take_text("name") else {
        return import.unmapped(key.location, "a key without a name");
    };
    let mut spec = Map::new();
    if let Some(text) = key.take_text("description") {
        spec.insert("description".to_owned(), escaped(&text.value).into());
        import.mapped(text.location, "description of the key");
    }
    spec.insert("scopes".to_owned(), json!(["completions.write", "models.list"]));
    if let Some(reference) = key.take_text("budget_id") {
        match budgets.remove(&reference.value) {
            Some(budget) => {
                spec.extend(credit(budget, import).map(|limit| ("usage_limits".to_owned(), limit)));
                import.mapped(reference.location, "usage_limits of the key");
            }
            None => import.unmapped(reference.location, "there is no such budget"),
        }
    }
    if let Some(reference) = key.take_text("rate_limit_id") {
        match rates.remove(&reference.value) {
            Some(limit) => {
                let limits = rate_limits(limit, import);
                import.mapped(reference.location, "rate_limits of the key");
                if !limits.is_empty() {
                    spec.insert("rate_limits".to_owned(), limits.into());
                }
            }
            None => import.unmapped(reference.location, "there is no such rate limit"),
        }
    }
    import.add("api-key", &escaped(&name.value), spec);
    import.mapped(name.location, format!("api-key/{}/{}", import.workspace, name.value));
    if let Some(secret) = key.take_text("value") {
        import
            .unmapped(secret.location, "a new secret is made at the first apply (--secrets-out): applications need it");
    }
    import.unmapped_rest(key, |field| {
        match field {
            "provider_configs" | "allowed_models" => "which models a key may use is set at the workspace's providers",
            _ => "no field of a key",
        }
        .to_owned()
    });
}

fn credit(mut budget: Source, import: &mut Import) -> Option<Value> {
    let limit = budget.take_number("max_limit");
    let period = budget.take_text("reset_duration");
    let mut usage = Map::new();
    if let Some(limit) = &limit {
        usage.insert("credit_limit".to_owned(), limit.value.into());
        import.mapped(limit.location.clone(), "usage_limits.credit_limit of the key, in dollars");
    }
    if let Some(period) = period {
        match reset(&period) {
            Some((field, value)) => {
                usage.insert(field.to_owned(), value);
                import.mapped(period.location, "the reset of the key's budget");
            }
            None => {
                import.unmapped(period.location, "budgets are reset after days, weeks or months: this one is not reset")
            }
        }
    }
    import.unmapped_rest(budget, |_| "what was used is counted anew".to_owned());
    limit.map(|_| usage.into())
}

/// `1d`, `1w`, `1M`.
fn reset(period: &Located<String>) -> Option<(&'static str, Value)> {
    match period.value.as_str() {
        "1w" | "7d" => Some(("periodic_reset", "weekly".into())),
        "1M" => Some(("periodic_reset", "monthly".into())),
        other => {
            let days = other.strip_suffix('d')?.parse::<u64>().ok().filter(|days| (1..=365).contains(days))?;
            Some(("periodic_reset_days", days.into()))
        }
    }
}

fn rate_limits(mut limit: Source, import: &mut Import) -> Vec<Value> {
    let mut limits = Vec::new();
    for (kind, theirs) in [("requests", "request"), ("tokens", "token")] {
        let Some(most) = limit.take_positive_count(&format!("{theirs}_max_limit")) else {
            continue;
        };
        let period = limit.take_text(&format!("{theirs}_reset_duration"));
        let unit = match period.as_ref().map_or("1m", |period| period.value.as_str()) {
            "1s" => "rps",
            "1m" => "rpm",
            "1h" => "rph",
            "1d" => "rpd",
            "1w" => "rpw",
            _ => {
                for location in period.map(|period| period.location).into_iter().chain([most.location]) {
                    import.unmapped(location, "limits hold for a second, minute, hour, day or week");
                }
                continue;
            }
        };
        limits.push(json!({ "type": kind, "unit": unit, "value": most.value }));
        import.mapped(most.location, "rate_limits of the key");
        if let Some(period) = period {
            import.mapped(period.location, "the unit of the key's rate limit");
        }
    }
    import.unmapped_rest(limit, |_| "what was used is counted anew".to_owned());
    limits
}
