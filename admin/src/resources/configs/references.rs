//! The providers that a config names and its workspace does not have. References are resolved when a request comes, so
//! that tools may create things in any order; but whoever saves a config is told what does not exist yet.

use crate::crud::Action;
use crate::http::ApiError;
use serde_json::Value;
use shared::nearest::nearest;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Names of a workspace's providers that are looked at for the nearest.
pub(super) const MAX_NAMES: i64 = 1000;
/// Names that are warned of: finding the nearest of each takes its time.
pub(super) const MAX_WARNINGS: usize = 50;
/// Characters of such a name that are shown.
pub(super) const MAX_SHOWN: usize = 100;

/// Adds a warning for each name that nothing has.
pub async fn warn_of_missing(action: &Action<'_>, workspace: Uuid, config: &Value) -> Result<(), ApiError> {
    const SLUGS: &str = "SELECT slug FROM providers WHERE organisation_id = $1 AND workspace_id = $2
                         AND status <> 'archived' ORDER BY slug = ANY($3) DESC, created_at DESC LIMIT $4";
    let named = named(config);
    if named.is_empty() {
        return Ok(());
    }
    let wanted: Vec<&str> = named.keys().map(String::as_str).collect();
    let rows = action.tx.query(SLUGS, &[&action.organisation_id(), &workspace, &wanted, &MAX_NAMES]).await?;
    let known = rows.iter().map(|row| row.try_get("slug")).collect::<Result<Vec<&str>, _>>()?;
    let missing = named.iter().filter(|(slug, _)| !known.contains(&slug.as_str()));
    for (slug, path) in missing.take(MAX_WARNINGS) {
        let meant = nearest(slug, known.iter().copied()).map(|one| format!("; did you mean @{one}?"));
        let meant = meant.unwrap_or_default();
        let slug: String = slug.chars().take(MAX_SHOWN).collect();
        action.call.origin.warn(format!("{path}: this workspace has no provider @{slug} yet{meant}"));
    }
    Ok(())
}

/// Slug of each provider that is named, and where first.
fn named(config: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    each_field(config, "config", &mut |path, name, field| {
        let slug = slug_in(name, field);
        if let Some(slug) = slug {
            found.entry(slug.to_owned()).or_insert_with(|| path.to_owned());
        }
        slug.is_some()
    });
    found
}

/// Shows each field of a config, at any depth, with its path and name; what is taken is looked no further into.
pub(super) fn each_field(value: &Value, path: &str, takes: &mut dyn FnMut(&str, &str, &Value) -> bool) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| each_field(item, &format!("{path}[{n}]"), takes));
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                if !takes(&path, name, field) {
                    each_field(field, &path, takes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn slug_in<'v>(name: &str, value: &'v Value) -> Option<&'v str> {
    let text = value.as_str()?;
    let slug = match name {
        "provider" => text.strip_prefix('@'),
        "virtual_key" | "virtualKey" => Some(text.strip_prefix('@').unwrap_or(text)),
        _ => None,
    };
    slug.filter(|slug| !slug.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn providers_are_found_at_any_depth_under_both_names() {
        let config = json!({ "targets": [
            { "provider": "@a", "override_params": { "model": "m" } },
            { "targets": [{ "virtual_key": "b" }, { "virtualKey": "@a" }, { "provider": "openai" }] },
        ] });
        let found: Vec<_> = named(&config).into_iter().collect();
        let pair = |slug: &str, path: &str| (slug.to_owned(), path.to_owned());
        let expected = [pair("a", "config.targets[0].provider"), pair("b", "config.targets[1].targets[0].virtual_key")];
        assert_eq!(found, expected);
    }
}
