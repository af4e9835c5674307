//! The nearest known name to one that is not known, for messages that teach: `opnai` is `openai`, and `base_url` is what
//! others call our `custom_host`. A guess that is not close is worse than none, so there may be none.

/// What other products, and common sense, call things. A row counts where its second name is known.
static OTHER_WORDS: &[(&str, &str)] = &[
    // Providers.
    ("gemini", "google"),
    ("googleai", "google"),
    ("googleaistudio", "google"),
    ("claude", "anthropic"),
    ("chatgpt", "openai"),
    ("gpt", "openai"),
    ("aws", "bedrock"),
    ("amazon", "bedrock"),
    ("awsbedrock", "bedrock"),
    ("azure", "azure-openai"),
    ("vertex", "vertex-ai"),
    ("mistral", "mistral-ai"),
    ("together", "together-ai"),
    ("fireworks", "fireworks-ai"),
    ("perplexity", "perplexity-ai"),
    ("grok", "x-ai"),
    ("xai", "x-ai"),
    ("cloudflare", "workers-ai"),
    ("snowflake", "cortex"),
    // Addresses and credentials.
    ("baseurl", "custom_host"),
    ("apibase", "custom_host"),
    ("endpoint", "custom_host"),
    ("host", "custom_host"),
    ("url", "custom_host"),
    ("headers", "custom_headers"),
    ("extraheaders", "custom_headers"),
    ("organization", "openai_organization"),
    ("project", "openai_project"),
    ("region", "aws_region"),
    ("apikey", "key"),
    ("apikey", "api_key_ids"),
    ("apikeyid", "api_key_ids"),
    ("secret", "key"),
    ("provider", "ai_provider_id"),
    ("integration", "integration_id"),
    // Keys of a config, and headers.
    ("timeout", "request_timeout"),
    ("timeout", "request-timeout"),
    ("retries", "retry"),
    ("numretries", "retry"),
    ("maxretries", "retry"),
    ("retries", "retry-count"),
    ("retry", "retry-count"),
    ("numretries", "retry-count"),
    ("fallbacks", "targets"),
    ("params", "override_params"),
    ("model", "override_params"),
    ("temperature", "override_params"),
    ("maxtokens", "override_params"),
    ("host", "custom-host"),
    ("baseurl", "custom-host"),
    ("key", "api-key"),
    ("token", "api-key"),
    ("authorization", "api-key"),
    ("trace", "trace-id"),
    ("user", "metadata"),
    ("tags", "metadata"),
    // Limits.
    ("budget", "usage_limits"),
    ("maxbudget", "usage_limits"),
    ("limits", "usage_limits"),
    ("rpm", "rate_limits"),
    ("tpm", "rate_limits"),
    ("ratelimit", "rate_limits"),
    ("limit", "credit_limit"),
    ("limit", "page_size"),
    ("perpage", "page_size"),
    ("page", "current_page"),
    ("expires", "expires_at"),
    ("ttl", "expires_at"),
    // Logs.
    ("model", "ai_model"),
    ("models", "ai_model"),
    ("status", "status_code"),
    ("since", "time_of_generation_min"),
    ("from", "time_of_generation_min"),
    ("start", "time_of_generation_min"),
    ("starttime", "time_of_generation_min"),
    ("until", "time_of_generation_max"),
    ("to", "time_of_generation_max"),
    ("end", "time_of_generation_max"),
    ("endtime", "time_of_generation_max"),
    ("workspace", "workspace_id"),
    ("workspaceid", "workspace_slug"),
    ("workspace", "workspace_slug"),
    ("q", "search"),
    ("query", "search"),
    ("trace", "trace_id"),
    ("fields", "requested_data"),
    ("permissions", "scopes"),
];

/// Longer names are nobody's slip of the finger.
const MAX_NAME: usize = 64;

/// The known name that was most likely meant. `known` is small: fields of an object, values of a field.
pub fn nearest<'a>(sent: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if sent.is_empty() || sent.len() > MAX_NAME {
        return None;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let plain = plain(sent);
    let is_same = |one: &&&str| self::plain(one) == plain;
    if let Some(same) = known.iter().find(is_same) {
        return Some(same);
    }
    let words = OTHER_WORDS.iter().filter(|(word, _)| *word == plain);
    if let Some(meant) = words.filter_map(|(_, meant)| known.iter().find(|one| *one == meant)).next() {
        return Some(meant);
    }
    if let Some(whole) = whole_of(&plain, &known) {
        return Some(whole);
    }
    let close = known.into_iter().map(|one| (distance(&plain, &self::plain(one)), one));
    let (distance, one) = close.min_by_key(|(distance, _)| *distance)?;
    // One slip in three characters, and never a name that shares nothing.
    let allowed = (plain.chars().count() / 3).clamp(1, 4);
    (distance <= allowed && distance < plain.chars().count()).then_some(one)
}

/// The only name that begins or ends with what was sent: `color` is `color_code`, `token` is `vault_token`.
fn whole_of<'a>(plain: &str, known: &[&'a str]) -> Option<&'a str> {
    const MIN_PART: usize = 4;
    let is_part = |one: &&&str| {
        let whole = self::plain(one);
        whole.starts_with(plain) || whole.ends_with(plain)
    };
    let mut found = known.iter().filter(is_part);
    match (found.next(), found.next()) {
        (Some(one), None) if plain.chars().count() >= MIN_PART => Some(one),
        _ => None,
    }
}

/// The known name that was surely meant: one slip of the finger, in long names two. For names that may as well be
/// somebody else's, where `nearest` would guess too much.
pub fn slip<'a>(sent: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if sent.is_empty() || sent.len() > MAX_NAME {
        return None;
    }
    let allowed = (sent.len() / 6).clamp(1, 2);
    // Names whose lengths differ by more are further apart than that.
    let alike = known.into_iter().filter(|one| one.chars().count().abs_diff(sent.chars().count()) <= allowed);
    let close = alike.map(|one| (distance(sent, one), one));
    let (distance, one) = close.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(one)
}

/// Lower case without separators: `usageLimits` and `usage_limits` are one name.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one to the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut next = vec![row + 1; other.len() + 1];
        for (column, b) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            next[column + 1] = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            let is_swap = row > 0 && column > 0 && *a == other[column - 1] && one[row - 1] == *b;
            if is_swap {
                next[column + 1] = next[column + 1].min(before[column - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, next);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_other_products_words_are_understood() {
        let providers = ["openai", "google", "anthropic", "azure-openai"];
        let fields = ["name", "usage_limits", "rate_limits", "custom_host", "key"];
        let scopes = ["completions.write", "logs.list", "logs.view"];
        for (sent, known, meant) in [
            ("opnai", &providers[..], Some("openai")),
            ("gemini", &providers, Some("google")),
            ("OpenAI", &providers, Some("openai")),
            ("azure", &providers, Some("azure-openai")),
            ("usageLimits", &fields, Some("usage_limits")),
            ("usage_limit", &fields, Some("usage_limits")),
            ("budget", &fields, Some("usage_limits")),
            ("base_url", &fields, Some("custom_host")),
            ("nmae", &fields, Some("name")),
            ("completion.write", &scopes, Some("completions.write")),
            ("custom", &fields, Some("custom_host")),
            ("host_name", &fields, None),
            ("limits", &["usage_limits", "rate_limits"][..], Some("usage_limits")),
            ("rate", &["rate_limits", "rate_unit"][..], None),
            ("entirely_different", &fields, None),
            ("x", &fields, None),
            ("", &fields, None),
        ] {
            assert_eq!(nearest(sent, known.iter().copied()), meant, "{sent}");
        }
        assert_eq!(nearest(&"n".repeat(1 << 20), fields), None, "no work for what nobody mistyped");
        assert_eq!(nearest("name", []), None);
    }

    #[test]
    fn a_distance_counts_the_slips() {
        for (one, other, slips) in [
            ("", "", 0),
            ("a", "", 1),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "axc", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), slips, "{one} {other}");
            assert_eq!(distance(other, one), slips, "{other} {one}");
        }
    }
}
