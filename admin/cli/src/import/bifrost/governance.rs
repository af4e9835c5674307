//! Bifrost's virtual keys with their budgets and rates.

use crate::import::bounds;
use crate::import::report::code;
use crate::import::result::Import;
use crate::import::source::{Location, Source};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const MAX_DESCRIPTION: usize = 200;

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
    if let Some(text) = key.take_short_text("description", MAX_DESCRIPTION) {
        spec.insert("description".to_owned(), escaped(&text.value).into());
        import.mapped(text.location, "description of the key");
    }
    spec.insert("scopes".to_owned(), json!(["completions.write", "models.list"]));
    if let Some(reference) = key.take_text("budget_id") {
        match budgets.remove(&reference.value) {
            Some(budget) => {
                let credit = credit(budget, import);
                refer(reference.location, "usage_limits", credit.is_some(), import);
                spec.extend(credit.map(|limit| ("usage_limits".to_owned(), limit)));
            }
            None => import.unmapped(reference.location, "there is no such budget"),
        }
    }
    if let Some(reference) = key.take_text("rate_limit_id") {
        match rates.remove(&reference.value) {
            Some(limit) => {
                let limits = rate_limits(limit, import);
                refer(reference.location, "rate_limits", !limits.is_empty(), import);
                if !limits.is_empty() {
                    spec.insert("rate_limits".to_owned(), limits.into());
                }
            }
            None => import.unmapped(reference.location, "there is no such rate limit"),
        }
    }
    let own_name = import.free_name("api-key", &name.value);
    import.add("api-key", &own_name, spec);
    import.mapped(name.location, format!("api-key {}", code(&own_name)));
    if let Some(secret) = key.take_text("value") {
        import
            .unmapped(secret.location, "a new secret is made at the first apply (--secrets-out): applications need it");
    }
    import.unmapped_rest(key, |field| {
        match field {
            "provider_configs" | "allowed_models" => "which models a key may use is set at the workspace's providers",
            "description" => "longer than the description of a key may be",
            "is_active" => "the key is made active: take it out of the files if it was not",
            _ => "no field of a key",
        }
        .to_owned()
    });
}

/// A line for the reference to a limit, which led somewhere or did not.
fn refer(location: Location, field: &str, is_written: bool, import: &mut Import) {
    match is_written {
        true => import.mapped(location, format!("{field} of the key")),
        false => import.unmapped(location, "the limit is left out: see its lines"),
    }
}

fn credit(mut budget: Source, import: &mut Import) -> Option<Value> {
    let limit = budget.take_number("max_limit");
    let period = budget.take_text("reset_duration");
    import.unmapped_rest(budget, |field| {
        match field {
            "max_limit" => "no limit in dollars",
            _ => "what was used is counted anew",
        }
        .to_owned()
    });
    let reset = period.as_ref().map(|period| bounds::reset(&period.value, "M"));
    let dollars = limit.as_ref().map(|limit| limit.value).filter(|dollars| bounds::is_credit_limit(*dollars));
    let dollars = dollars.filter(|_| !matches!(reset, Some(None)));
    let locations = [limit.map(|limit| limit.location), period.map(|period| period.location)];
    for location in locations.into_iter().flatten() {
        match dollars {
            Some(_) => import.mapped(location, "usage_limits of the key, in dollars"),
            None => import.unmapped(
                location,
                "a budget is of at least a dollar and is reset after days, weeks or months: it is left out",
            ),
        }
    }
    let mut usage = Map::new();
    usage.insert("credit_limit".to_owned(), dollars?.into());
    usage.extend(reset.flatten());
    Some(usage.into())
}

fn rate_limits(mut limit: Source, import: &mut Import) -> Vec<Value> {
    let mut limits = Vec::new();
    for (kind, theirs) in [("requests", "request"), ("tokens", "token")] {
        let Some(most) = limit.take_positive_count(&format!("{theirs}_max_limit")) else {
            continue;
        };
        let period = limit.take_text(&format!("{theirs}_reset_duration"));
        if !bounds::is_rate(most.value) {
            for location in period.map(|period| period.location).into_iter().chain([most.location]) {
                import.unmapped(location, "larger than any rate that a key can have");
            }
            continue;
        }
        let unit = match period.as_ref().map_or("1m", |period| period.value.as_str()) {
            "1s" => "rps",
            "1m" | "60s" => "rpm",
            "1h" | "60m" => "rph",
            "1d" | "24h" => "rpd",
            "1w" | "7d" => "rpw",
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
