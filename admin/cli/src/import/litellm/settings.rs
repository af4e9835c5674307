//! What `router_settings` and `litellm_settings` say of all models. Most of it may stand in either.

use super::advice;
use super::deployments::{attempts, milliseconds};
use crate::import::result::Import;
use crate::import::source::{Located, Source};
use serde_json::{Map, Value, json};

/// The shortest time for which a circuit stays open here.
const MIN_COOLDOWN_MS: u64 = 30_000;
const NO_GROUP: &str = "not the name of a group";

#[derive(Debug, Default)]
pub struct Settings {
    /// Fields of the config's root.
    pub root: Map<String, Value>,
    /// The other groups of each group, in their order.
    pub fallbacks: Vec<(String, Vec<Located<String>>)>,
    pub default_fallbacks: Vec<Located<String>>,
    /// Other names of groups.
    pub aliases: Vec<(String, Located<String>)>,
    failures: Option<u64>,
    cooldown_ms: Option<u64>,
    budget: Option<f64>,
    budget_period: Option<String>,
}

impl Settings {
    pub fn read(&mut self, mut source: Source, section: &str, import: &mut Import) {
        if let Some(retries) = source.take_count("num_retries") {
            self.put("retry", json!({ "attempts": attempts(retries.value) }), retries, import);
        }
        for name in ["timeout", "request_timeout"] {
            if let Some(timeout) = source.take_number(name) {
                self.put("request_timeout", milliseconds(timeout.value).into(), timeout, import);
            }
        }
        if let Some(failures) = source.take_count("allowed_fails") {
            import.mapped(failures.location, "cb_config.failure_threshold");
            self.failures = Some(failures.value.max(1));
        }
        if let Some(cooldown) = source.take_number("cooldown_time") {
            import.mapped(cooldown.location, "cb_config.cooldown_interval, of at least 30 seconds");
            self.cooldown_ms = Some(milliseconds(cooldown.value).max(MIN_COOLDOWN_MS));
        }
        if let Some(strategy) = source.take_text("routing_strategy") {
            match strategy.value.as_str() {
                "simple-shuffle" => import.mapped(strategy.location, "strategy.mode loadbalance"),
                _ => import
                    .unmapped(strategy.location, "targets are chosen by weight; circuits and fallbacks do the rest"),
            }
        }
        self.read_cache(&mut source, import);
        self.read_budget(&mut source, import);
        for entry in source.take_items("fallbacks") {
            if !entry.is_fields() {
                import.unmapped(entry.location, NO_GROUP);
                continue;
            }
            for (group, others) in entry.into_fields() {
                match others.is_list() {
                    true => self.fallbacks.push((group, texts(others.into_items(), import))),
                    false => import.unmapped(others.location, NO_GROUP),
                }
            }
        }
        let others = source.take_items("default_fallbacks");
        self.default_fallbacks.extend(texts(others, import));
        for (alias, group) in source.take_section("model_group_alias").map(Source::into_fields).unwrap_or_default() {
            match group.value().as_str() {
                Some(name) => self.aliases.push((alias, Located { value: name.to_owned(), location: group.location })),
                None => {
                    import.unmapped(group.location, "an alias with settings of its own: make it an entry of its own")
                }
            }
        }
        import.unmapped_rest(source, |name| advice::sentence(section, name));
    }

    /// Sets a field of the config's root; the first section that has it wins.
    fn put<T>(&mut self, field: &str, value: Value, found: Located<T>, import: &mut Import) {
        if self.root.contains_key(field) {
            import.unmapped(found.location, format!("`{field}` stands in an earlier section, which holds"));
        } else {
            import.mapped(found.location, format!("{field} of the config"));
            self.root.insert(field.to_owned(), value);
        }
    }

    fn read_cache(&mut self, source: &mut Source, import: &mut Import) {
        let Some(cache) = source.take_flag("cache") else { return };
        let mut params = source.take_section("cache_params");
        if cache.value {
            let mode = params.as_mut().and_then(|params| params.take_text("type"));
            let is_semantic = mode.as_ref().is_some_and(|mode| mode.value.ends_with("semantic"));
            let mut config = json!({ "mode": if is_semantic { "semantic" } else { "simple" } });
            if let Some(mode) = mode {
                import.mapped(
                    mode.location,
                    "cache.mode of the config; where answers are kept is a setting of the installation",
                );
            }
            for (name, field) in [("ttl", "max_age"), ("similarity_threshold", "similarity")] {
                if let Some(number) = params.as_mut().and_then(|params| params.take_number(name)) {
                    let is_whole = field == "max_age";
                    let value = if is_whole { Value::from(number.value as u64) } else { Value::from(number.value) };
                    config[field] = value;
                    import.mapped(number.location, format!("cache.{field} of the config"));
                }
            }
            self.put("cache", config, cache, import);
        } else {
            import.mapped(cache.location, "no cache in the config");
        }
        if let Some(params) = params {
            import.unmapped_rest(params, |name| advice::sentence("cache_params", name));
        }
    }

    fn read_budget(&mut self, source: &mut Source, import: &mut Import) {
        if let Some(budget) = source.take_number("max_budget") {
            import.mapped(budget.location, "credit_limit of a policy, in dollars");
            self.budget = Some(budget.value);
        }
        if let Some(period) = source.take_text("budget_duration") {
            match reset(&period.value).filter(|_| self.budget.is_some()) {
                Some(_) => {
                    import.mapped(period.location, "the policy's reset");
                    self.budget_period = Some(period.value);
                }
                None => import.unmapped(
                    period.location,
                    "budgets are reset after days or months: there is none, or it is not reset",
                ),
            }
        }
    }

    /// The circuit breaker, which belongs to the targets.
    pub fn breaker(&self) -> Option<Value> {
        let mut breaker = Map::new();
        if let Some(failures) = self.failures {
            breaker.insert("failure_threshold".to_owned(), failures.into());
        }
        if let Some(cooldown) = self.cooldown_ms {
            breaker.insert("cooldown_interval".to_owned(), cooldown.into());
        }
        (!breaker.is_empty()).then(|| breaker.into())
    }

    /// The budget of the whole installation, for the whole workspace.
    pub fn write_budget(&self, import: &mut Import) {
        let Some(budget) = self.budget else { return };
        let mut spec = Map::new();
        spec.insert("type".to_owned(), "cost".into());
        spec.insert("credit_limit".to_owned(), budget.into());
        spec.extend(self.budget_period.as_deref().and_then(reset));
        import.add("policy-usage-limits", "litellm-budget", spec);
    }
}

/// `30d` and its like, as fields of a policy.
fn reset(period: &str) -> Option<(String, Value)> {
    let count = |unit| period.strip_suffix(unit).and_then(|count: &str| count.parse::<u64>().ok());
    let days = count("mo").map(|months| months * 30).or_else(|| count("d"))?;
    Some(match (period, days) {
        ("1mo", _) => ("periodic_reset".to_owned(), "monthly".into()),
        (_, 7) => ("periodic_reset".to_owned(), "weekly".into()),
        (_, 1..=365) => ("periodic_reset_days".to_owned(), days.into()),
        _ => return None,
    })
}

fn texts(items: Vec<Source>, import: &mut Import) -> Vec<Located<String>> {
    let mut texts = Vec::new();
    for item in items {
        match item.value().as_str() {
            Some(text) => texts.push(Located { location: item.location, value: text.to_owned() }),
            None => import.unmapped(item.location, NO_GROUP),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_days_weeks_and_months() {
        let field = |period| reset(period).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(field("30d").as_deref(), Some("periodic_reset_days 30"));
        assert_eq!(field("7d").as_deref(), Some("periodic_reset \"weekly\""));
        assert_eq!(field("1mo").as_deref(), Some("periodic_reset \"monthly\""));
        for period in ["", "d", "30s", "0d", "366d", "1h", "99999999999999999999d"] {
            assert_eq!(field(period), None, "{period}");
        }
    }
}
