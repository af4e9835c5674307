//! What `router_settings` and `litellm_settings` say of all models. Most of it may stand in either.

use super::advice;
use crate::import::bounds;
use crate::import::result::Import;
use crate::import::source::{Located, Source};
use serde_json::{Map, Value, json};

/// The shortest time for which a circuit stays open here.
const MIN_COOLDOWN_MS: u64 = 30_000;
/// LiteLLM's own where the file says nothing.
const ALLOWED_FAILS: u64 = 3;
/// Fallbacks of this group are those of every group that has no others.
const EVERY_GROUP: &str = "*";
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
    allowed_fails: Option<u64>,
    cooldown_ms: Option<u64>,
    budget: Option<Located<f64>>,
    budget_period: Option<Located<String>>,
}

impl Settings {
    pub fn read(&mut self, mut source: Source, section: &str, import: &mut Import) {
        if let Some(retries) = source.take_count("num_retries")
            && self.is_first("retry", &retries, import)
        {
            self.root.insert("retry".to_owned(), bounds::retry(retries, "config", import));
        }
        for name in ["timeout", "request_timeout"] {
            if let Some(timeout) = source.take_number(name)
                && self.is_first("request_timeout", &timeout, import)
            {
                let timeout = bounds::timeout(bounds::from_seconds(timeout), "config", import);
                self.root.insert("request_timeout".to_owned(), timeout);
            }
        }
        if let Some(failures) = source.take_count("allowed_fails") {
            import.mapped(failures.location, "cb_config.failure_threshold, the first failure that is not allowed");
            self.allowed_fails = Some(failures.value);
        }
        if let Some(cooldown) = source.take_number("cooldown_time") {
            let milliseconds = (cooldown.value * 1000.0) as u64;
            import.mapped(cooldown.location, "cb_config.cooldown_interval, of at least 30 seconds");
            self.cooldown_ms = Some(milliseconds);
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
                    true if group == EVERY_GROUP => self.default_fallbacks.extend(texts(others.into_items(), import)),
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

    /// The first section that has a field of the config's root wins.
    fn is_first<T>(&self, field: &str, found: &Located<T>, import: &mut Import) -> bool {
        let is_first = !self.root.contains_key(field);
        if !is_first {
            let why = format!("`{field}` stands in an earlier place, which holds");
            import.unmapped(found.location.clone(), why);
        }
        is_first
    }

    fn read_cache(&mut self, source: &mut Source, import: &mut Import) {
        let Some(cache) = source.take_flag("cache") else { return };
        let mut params = source.take_section("cache_params");
        // Calls ask for it there one by one, which they cannot here.
        let mode = params.as_mut().and_then(|params| params.take_text("mode"));
        let is_off = !cache.value || mode.as_ref().is_some_and(|mode| mode.value == "default_off");
        if let Some(mode) = mode {
            match is_off {
                true => import
                    .unmapped(mode.location, "no cache in the config: name one with a cache in calls that want it"),
                false => import.mapped(mode.location, "cache of the config"),
            }
        }
        if is_off {
            import.mapped(cache.location, "no cache in the config");
        } else if self.is_first("cache", &cache, import) {
            let config = cache_config(params.as_mut(), import);
            import.mapped(cache.location, "cache of the config");
            self.root.insert("cache".to_owned(), config);
        }
        if let Some(params) = params {
            import.unmapped_rest(params, |name| advice::sentence("cache_params", name));
        }
    }

    fn read_budget(&mut self, source: &mut Source, import: &mut Import) {
        const EARLIER: &str = "it stands in an earlier section, which holds";
        if let Some(budget) = source.take_number("max_budget") {
            match self.budget {
                Some(_) => import.unmapped(budget.location, EARLIER),
                None => self.budget = Some(budget),
            }
        }
        if let Some(period) = source.take_text("budget_duration") {
            match self.budget_period {
                Some(_) => import.unmapped(period.location, EARLIER),
                None => self.budget_period = Some(period),
            }
        }
    }

    /// The circuit breaker, which belongs to the targets and needs both of its fields.
    pub fn breaker(&self) -> Option<Value> {
        if self.allowed_fails.is_none() && self.cooldown_ms.is_none() {
            return None;
        }
        let threshold = self.allowed_fails.unwrap_or(ALLOWED_FAILS).saturating_add(1);
        let cooldown = self.cooldown_ms.unwrap_or_default().max(MIN_COOLDOWN_MS);
        Some(json!({ "failure_threshold": threshold, "cooldown_interval": cooldown }))
    }

    /// The budget of the whole installation, for the whole workspace. One that cannot be written as it is meant is left out.
    pub fn write_budget(&self, import: &mut Import) {
        let Some(budget) = &self.budget else {
            if let Some(period) = &self.budget_period {
                import.unmapped(period.location.clone(), "there is no budget that it resets");
            }
            return;
        };
        let period = self.budget_period.as_ref();
        let reset = period.map(|period| reset(&period.value));
        let is_written = bounds::is_credit_limit(budget.value) && !matches!(reset, Some(None));
        let locations = [Some(&budget.location), period.map(|period| &period.location)];
        for location in locations.into_iter().flatten().cloned() {
            match is_written {
                true => import.mapped(location, "a usage policy of the workspace, in dollars"),
                false => import.unmapped(
                    location,
                    "a budget is of at least a dollar and is reset after days, weeks or months: it is left out",
                ),
            }
        }
        if is_written {
            let mut spec = Map::new();
            spec.insert("type".to_owned(), "cost".into());
            spec.insert("credit_limit".to_owned(), budget.value.into());
            spec.extend(reset.flatten());
            let name = import.free_name("policy-usage-limits", "litellm-budget");
            import.add("policy-usage-limits", &name, spec);
        }
    }
}

fn reset(period: &str) -> Option<(String, Value)> {
    let period = match period.trim().to_lowercase().as_str() {
        "daily" => "1d".to_owned(),
        "weekly" => "7d".to_owned(),
        "monthly" => "30d".to_owned(),
        other => other.to_owned(),
    };
    bounds::reset(&period, "mo")
}

fn cache_config(mut params: Option<&mut Source>, import: &mut Import) -> Value {
    let kind = params.as_mut().and_then(|params| params.take_text("type"));
    let is_semantic = kind.as_ref().is_some_and(|kind| kind.value.ends_with("semantic"));
    let mut config = json!({ "mode": if is_semantic { "semantic" } else { "simple" } });
    if let Some(kind) = kind {
        let place = "cache.mode of the config; where answers are kept is a setting of the installation";
        import.mapped(kind.location, place);
    }
    if let Some(age) = params.as_mut().and_then(|params| params.take_number("ttl")) {
        match age.value {
            seconds if seconds >= 1.0 => {
                config["max_age"] = Value::from(seconds as u64);
                import.mapped(age.location, "cache.max_age of the config");
            }
            _ => import.unmapped(age.location, "answers are kept for at least a second"),
        }
    }
    if let Some(similarity) = params.as_mut().and_then(|params| params.take_number("similarity_threshold")) {
        match similarity.value {
            value if value <= 1.0 => {
                config["similarity"] = value.into();
                import.mapped(similarity.location, "cache.similarity of the config");
            }
            _ => import.unmapped(similarity.location, "it is at most 1"),
        }
    }
    config
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
