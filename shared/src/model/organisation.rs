//! An organisation as the data plane needs it: whose tokens it accepts, what it keeps of its calls, and what it lets
//! requests choose.

use super::guardrail::GuardrailDefaults;
use super::id::OrganisationId;
use crate::identity::jwt::{KeySource, TokenRules};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Organisation {
    pub id: OrganisationId,
    /// Who signs its tokens; none when it accepts none.
    pub token_keys: Option<KeySource>,
    /// Its calls are counted and priced; what they say is not kept.
    #[serde(default)]
    pub is_metrics_only: bool,
    /// What its tokens must say beside being signed.
    #[serde(default)]
    pub token_rules: TokenRules,
    /// Requests name saved configs and providers; they carry no config of their own.
    #[serde(default)]
    pub blocks_inline_config: bool,
    /// Paths of providers that pass where guardrails cannot judge what is sent or answered.
    #[serde(default)]
    pub relay_with_guardrails: Vec<String>,
    /// Answers do not tell what they cost.
    #[serde(default)]
    pub hides_costs: bool,
    /// Seconds that answers are kept if a request says nothing, and at most.
    #[serde(default)]
    pub cache_max_age: Option<u64>,
    /// What checks every request and answer of its workspaces, but of those that are excluded.
    #[serde(default)]
    pub guardrails: GuardrailDefaults,
}

impl Organisation {
    /// Whether a path of a provider passes where guardrails cannot judge. The path has no `/v1` and no query.
    pub fn relays_unjudged(&self, path: &str) -> bool {
        self.relay_with_guardrails.iter().any(|pattern| path_fits(pattern, path))
    }

    pub const COLUMNS: &str = "id, auth_settings ->> 'jwks_url' AS jwks_url, auth_settings -> 'jwks_json' AS jwks_json, \
         coalesce(settings ->> 'debug_log' = '0', false) AS is_metrics_only, \
         coalesce(settings ->> 'cost_in_answers' = '0', false) AS hides_costs, \
         coalesce(settings ->> 'block_inline_config' = 'true', false) AS blocks_inline_config, \
         settings -> 'cache_max_age' AS cache_max_age, settings -> 'relay_with_guardrails' AS relay_with_guardrails, \
         auth_settings ->> 'jwt_issuer' AS jwt_issuer, auth_settings -> 'jwt_audiences' AS jwt_audiences, \
         defaults -> 'input_guardrails' AS input_guardrails, defaults -> 'output_guardrails' AS output_guardrails";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (url, inline): (Option<&str>, _) = (row.try_get("jwks_url")?, row.try_get("jwks_json")?);
        let audiences: Option<Value> = row.try_get("jwt_audiences")?;
        let cache_max_age: Option<Value> = row.try_get("cache_max_age")?;
        let relayed: Option<Value> = row.try_get("relay_with_guardrails")?;
        Ok(Self {
            id: row.try_get("id")?,
            token_keys: KeySource::from_settings(url, inline),
            is_metrics_only: row.try_get("is_metrics_only")?,
            token_rules: TokenRules::from_settings(row.try_get("jwt_issuer")?, audiences.as_ref()),
            blocks_inline_config: row.try_get("blocks_inline_config")?,
            relay_with_guardrails: relayed.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default(),
            hides_costs: row.try_get("hides_costs")?,
            cache_max_age: cache_max_age.and_then(|age| age.as_u64()),
            guardrails: GuardrailDefaults::from_row(row)?,
        })
    }
}

/// `*` stands for anything within one part of a path, `**` at the end for the rest of it. `/v1` may be left out.
fn path_fits(pattern: &str, path: &str) -> bool {
    // What a provider might take for another path fits nothing.
    let is_plain =
        |path: &str| !path.contains("..") && !path.contains("//") && !path.contains(['%', '\\', ';', '?', '#']);
    let parts = |path: &str| -> Vec<String> {
        let path = path.strip_prefix("/v1/").map_or(path, |rest| rest);
        path.trim_matches('/').split('/').map(str::to_owned).collect()
    };
    let (pattern, path) = (parts(pattern), if is_plain(path) { parts(path) } else { return false });
    for (at, wanted) in pattern.iter().enumerate() {
        match (wanted.as_str(), path.get(at)) {
            ("**", rest) => return at + 1 == pattern.len() && rest.is_some(),
            ("*", Some(_)) => {}
            (wanted, Some(part)) if wanted == part => {}
            _ => return false,
        }
    }
    pattern.len() == path.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_passes_unjudged_where_a_pattern_names_it_and_in_no_other_spelling() {
        for (pattern, path, expected) in [
            ("/v1/files", "/files", true),
            ("/files", "/files", true),
            ("/files", "/files/", true),
            ("/files", "/files/f-1", false),
            ("/files/*", "/files/f-1", true),
            ("/files/*", "/files/f-1/content", false),
            ("/files/**", "/files/f-1/content", true),
            ("/files/**", "/files", false),
            ("/v1/deployments/*/chat/completions", "/deployments/gpt/chat/completions", true),
            ("/audio/**", "/audio/../chat/completions", false),
            ("/audio/**", "/audio/%2e%2e/chat", false),
            ("/audio/**", "/audio//chat", false),
            ("/**", "/anything/at/all", true),
            ("/realtime", "/Realtime", false),
        ] {
            let allowed = Organisation { relay_with_guardrails: vec![pattern.into()], ..Organisation::default() };
            assert_eq!(allowed.relays_unjudged(path), expected, "{pattern} {path}");
        }
        assert!(!Organisation::default().relays_unjudged("/files"));
    }
}
