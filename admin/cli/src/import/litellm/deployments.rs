//! The entries of `model_list`: each is one deployment of a group, and the group's name is what applications ask for.

use super::accounts::Accounts;
use super::advice;
use super::vendors::vendor_of;
use crate::import::result::Import;
use crate::import::source::{Location, Source};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

/// Parameters of requests that an entry sets where the request says nothing.
const DEFAULT_PARAMS: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "n",
    "reasoning_effort",
    "response_format",
    "dimensions",
    "encoding_format",
];

#[derive(Debug)]
pub struct Deployment {
    /// Lower ones are asked first.
    pub order: u64,
    pub weight: Option<f64>,
    /// A target of a config.
    pub target: Map<String, Value>,
}

/// The deployments by the name that applications ask for, in the file's order.
#[derive(Debug, Default)]
pub struct Groups {
    pub groups: Vec<(String, Vec<Deployment>)>,
}

impl Groups {
    pub fn has(&self, name: &str) -> bool {
        self.groups.iter().any(|(known, _)| known == name)
    }

    pub fn read(&mut self, mut entry: Source, accounts: &mut Accounts, import: &mut Import) {
        let mut info = entry.take_section("model_info");
        let base_model = info.as_mut().and_then(|info| info.take_text("base_model"));
        if let Some(name) = entry.take_text("model_name") {
            let base = base_model.as_ref().map(|base| base.value.clone());
            let params = entry.take_section("litellm_params");
            match params.and_then(|params| deployment(&name.value, params, base, accounts, import)) {
                Some(deployment) => {
                    import.mapped(name.location, format!("the target `{}` of the config", name.value));
                    self.add(name.value, deployment);
                }
                None => import.unmapped(name.location, "the entry has no target: see the lines beside it"),
            }
        }
        if let Some(base) = base_model {
            import.mapped(base.location, "the model's name, by which it is priced");
        }
        if let Some(info) = info {
            import.unmapped_rest(info, |name| advice::sentence("model_info", name));
        }
        import.unmapped_rest(entry, |name| advice::sentence("model_list", name));
    }

    fn add(&mut self, name: String, deployment: Deployment) {
        match self.groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, deployments)) => deployments.push(deployment),
            None => self.groups.push((name, vec![deployment])),
        }
    }
}

fn deployment(
    group: &str,
    mut params: Source,
    base_model: Option<String>,
    accounts: &mut Accounts,
    import: &mut Import,
) -> Option<Deployment> {
    let read = read_params(group, &mut params, base_model, accounts, import);
    import.unmapped_rest(params, |name| advice::sentence("litellm_params", name));
    read
}

fn read_params(
    group: &str,
    params: &mut Source,
    base_model: Option<String>,
    accounts: &mut Accounts,
    import: &mut Import,
) -> Option<Deployment> {
    let model = params.take_text("model")?;
    let given = params.take_text("custom_llm_provider");
    let Some((vendor, name)) = vendor_of(&model.value, given.as_ref().map(|given| given.value.as_str())) else {
        import.unmapped(model.location, "no provider of the gateway can be read from this name");
        unmapped_if_some(given.map(|given| given.location), "no provider of the gateway has this name", import);
        return None;
    };
    if let Some(given) = given {
        import.mapped(given.location, "the integration's provider");
    }
    let (provider, model_name) = accounts.provider(import, vendor, name, params, base_model)?;
    let is_any = name == "*" && group == "*";
    if !is_any && (name.contains('*') || group.contains('*')) {
        let why = format!("names are not field apart: ask for `@{provider}/model`, for any model of the provider");
        import.unmapped(model.location, why);
        return None;
    }
    let mut target = Map::new();
    target.insert("provider".to_owned(), format!("@{provider}").into());
    if !is_any {
        target.insert("override_params".to_owned(), json!({ "model": escaped(&model_name) }));
    }
    import.mapped(model.location, format!("@{provider}"));
    let order = params.take_count("order").map(|order| {
        import.mapped(order.location, "the place in a fallback");
        order.value
    });
    let weight = params.take_number("weight").map(|weight| {
        import.mapped(weight.location, "weight of the target");
        weight.value
    });
    if let Some(timeout) = params.take_number("timeout") {
        target.insert("request_timeout".to_owned(), milliseconds(timeout.value).into());
        import.mapped(timeout.location, "request_timeout of the target");
    }
    if let Some(retries) = params.take_count("max_retries") {
        target.insert("retry".to_owned(), json!({ "attempts": attempts(retries.value) }));
        import.mapped(retries.location, "retry.attempts of the target");
    }
    let defaults = default_params(params, import);
    if !defaults.is_empty() {
        target.insert("default_params".to_owned(), defaults.into());
    }
    Some(Deployment { order: order.unwrap_or_default(), weight, target })
}

fn unmapped_if_some(location: Option<Location>, why: &str, import: &mut Import) {
    if let Some(location) = location {
        import.unmapped(location, why);
    }
}

fn default_params(params: &mut Source, import: &mut Import) -> Map<String, Value> {
    let mut defaults = Map::new();
    for name in DEFAULT_PARAMS {
        if let Some(value) = params.take(name).filter(|value| !value.value().is_null()) {
            defaults.insert((*name).to_owned(), value.literal());
            import.mapped(value.location, "default_params of the target");
        }
    }
    defaults
}

pub fn milliseconds(seconds: f64) -> u64 {
    const MAX_MS: f64 = 86_400_000.0;
    (seconds * 1000.0).clamp(1.0, MAX_MS).round() as u64
}

/// How often a config may have something tried.
pub fn attempts(retries: u64) -> u64 {
    const MAX_ATTEMPTS: u64 = 5;
    retries.min(MAX_ATTEMPTS)
}
