//! The guardrails that a config names and its workspace does not have. Requests go on without one that is missing, so
//! whoever saves the config is told.

use super::references::{MAX_NAMES, MAX_SHOWN, MAX_WARNINGS, each_field};
use crate::crud::Action;
use crate::http::ApiError;
use serde_json::Value;
use shared::config::HOOK_FIELDS;
use shared::model::guardrail::canonical_name;
use shared::nearest::nearest;
use std::collections::BTreeMap;
use uuid::Uuid;

/// In both spellings of keys.
static LISTS: &[&str] = &[
    "input_guardrails",
    "output_guardrails",
    "input_mutators",
    "output_mutators",
    "inputGuardrails",
    "outputGuardrails",
    "inputMutators",
    "outputMutators",
];

/// Adds a warning for each name that nothing has.
pub async fn warn_of_missing(action: &Action<'_>, workspace: Uuid, config: &Value) -> Result<(), ApiError> {
    const KNOWN: &str = "SELECT slug, id::text AS id FROM guardrails WHERE organisation_id = $1
        AND (workspace_id IS NULL OR workspace_id = $2) AND status = 'active'
        ORDER BY (slug = ANY($3) OR id::text = ANY($3)) DESC, created_at DESC LIMIT $4";
    let named = named(config);
    if named.is_empty() {
        return Ok(());
    }
    let wanted: Vec<&str> = named.keys().map(String::as_str).collect();
    let rows = action.tx.query(KNOWN, &[&action.organisation_id(), &workspace, &wanted, &MAX_NAMES]).await?;
    let known = rows.iter().map(|row| Ok((row.try_get("slug")?, row.try_get("id")?)));
    let known = known.collect::<Result<Vec<(&str, &str)>, tokio_postgres::Error>>()?;
    let is_known = |name: &str| known.iter().any(|(slug, id)| *slug == name || *id == name);
    for (name, path) in named.iter().filter(|(name, _)| !is_known(name)).take(MAX_WARNINGS) {
        let meant = nearest(name, known.iter().map(|(slug, _)| *slug));
        let meant = meant.map(|one| format!("; did you mean {one}?")).unwrap_or_default();
        let name: String = name.chars().take(MAX_SHOWN).collect();
        action.call.origin.warn(format!("{path}: this workspace has no guardrail {name} yet{meant}"));
    }
    Ok(())
}

/// Each name, and where it stands first.
fn named(config: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    each_field(config, "config", &mut |path, name, field| {
        let list = field.as_array().filter(|_| LISTS.contains(&name));
        for (n, item) in list.into_iter().flatten().enumerate() {
            if let Some(name) = saved(item) {
                found.entry(canonical_name(name)).or_insert_with(|| format!("{path}[{n}]"));
            }
        }
        list.is_some()
    });
    found
}

/// A name, or an object that has one and no check of its own: every key beside these is a check.
fn saved(item: &Value) -> Option<&str> {
    match item {
        Value::String(name) => Some(name),
        Value::Object(fields) if fields.keys().all(|key| HOOK_FIELDS.contains(&key.as_str())) => {
            fields.get("id")?.as_str()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn saved_guardrails_are_found_at_any_depth_and_written_ones_are_not() {
        let config = json!({
            "input_guardrails": ["pg-a", { "default.contains": { "words": ["x"] }, "id": "mine" }],
            "targets": [
                { "provider": "@a", "outputGuardrails": [{ "id": "guard_b", "deny": true }, 7] },
                { "targets": [{ "input_mutators": ["pg-a", "pg-c"] }] },
            ],
            "before_request_hooks": [{ "id": "hook", "checks": [] }],
        });
        let found: Vec<_> = named(&config).into_iter().collect();
        let pair = |name: &str, path: &str| (name.to_owned(), path.to_owned());
        let expected = [
            pair("pg-a", "config.input_guardrails[0]"),
            pair("pg-b", "config.targets[0].outputGuardrails[0]"),
            pair("pg-c", "config.targets[1].targets[0].input_mutators[1]"),
        ];
        assert_eq!(found, expected);
    }
}
