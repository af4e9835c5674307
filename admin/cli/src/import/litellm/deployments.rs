//! The entries of `model_list`: each is one deployment of a group, and the group's name is what applications ask for.

use super::accounts::{Accounts, Model};
use super::advice;
use super::reading::missing;
use super::vendors::{Access, vendor_of};
use crate::import::bounds;
use crate::import::report::code;
use crate::import::result::Import;
use crate::import::source::{Location, Source};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

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

/// By what LiteLLM shares calls out, the first that any deployment has.
pub const SHARES: usize = 3;

pub struct Deployment {
    /// Lower ones are asked first.
    pub order: u64,
    /// Its weight, requests and tokens a minute.
    pub shares: [Option<f64>; SHARES],
    /// A target of a config.
    pub target: Map<String, Value>,
    pub location: Location,
}

/// The deployments by the name that applications ask for, in the file's order.
#[derive(Default)]
pub struct Groups {
    pub groups: Vec<(String, Vec<Deployment>)>,
    places: HashMap<String, usize>,
}

impl Groups {
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Leaves the groups out that come after so many.
    pub fn truncate(&mut self, count: usize) {
        for (name, _) in self.groups.drain(count.min(self.groups.len())..) {
            self.places.remove(&name);
        }
    }

    pub fn read(&mut self, mut entry: Source, accounts: &mut Accounts, import: &mut Import) {
        let mut info = entry.take_section("model_info");
        let base_model = info.as_mut().and_then(|info| info.take_text("base_model"));
        let mut is_azure = false;
        if let Some(name) = entry.take_text("model_name") {
            let base = base_model.as_ref().map(|base| base.value.as_str());
            let params = entry.take_section("litellm_params");
            is_azure = params.as_ref().is_some_and(is_of_azure);
            match params.and_then(|params| deployment(&name.value, params, base, accounts, import)) {
                Some(deployment) => {
                    import.mapped(name.location, format!("the target {} of the config", code(&name.value)));
                    self.add(name.value, deployment);
                }
                None => {
                    is_azure = false;
                    import.unmapped(name.location, "the entry has no target: see the lines beside it");
                }
            }
        }
        if let Some(base) = base_model {
            match is_azure {
                true => import.mapped(base.location, "azure_model_slug of the deployment, by which it is priced"),
                false => import.unmapped(base.location, "prices follow the name by which a provider knows the model"),
            }
        }
        if let Some(info) = info {
            import.unmapped_rest(info, |name| advice::sentence("model_info", name));
        }
        import.unmapped_rest(entry, |name| advice::sentence("model_list", name));
    }

    fn add(&mut self, name: String, deployment: Deployment) {
        match self.places.get(&name) {
            Some(place) => self.groups[*place].1.push(deployment),
            None => {
                self.places.insert(name.clone(), self.groups.len());
                self.groups.push((name, vec![deployment]));
            }
        }
    }
}

fn is_of_azure(params: &Source) -> bool {
    let vendor = params.text("model").and_then(|model| vendor_of(model, params.text("custom_llm_provider")));
    vendor.is_some_and(|(vendor, _)| vendor.access == Access::Azure)
}

fn deployment(
    group: &str,
    mut params: Source,
    base_model: Option<&str>,
    accounts: &mut Accounts,
    import: &mut Import,
) -> Option<Deployment> {
    let read = read_params(group, &mut params, base_model, accounts, import);
    import.unmapped_rest(params, |name| match read {
        Some(_) => advice::sentence("litellm_params", name),
        None => "of an entry without a target".to_owned(),
    });
    read
}

fn read_params(
    group: &str,
    params: &mut Source,
    base: Option<&str>,
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
    let is_any = name == "*" && group == "*";
    let is_pattern = name.contains('*') || group.contains('*');
    let missing = match is_pattern && vendor.access == Access::Azure {
        true => Some("deployments of Azure are listed by name: write an entry for each".to_owned()),
        false => missing(vendor, params, import),
    };
    if let Some(why) = missing {
        import.unmapped(model.location, why);
        unmapped_if_some(given.map(|given| given.location), "see the line of the model", import);
        return None;
    }
    let mut shares = [None; SHARES];
    let limits = limits(params, &mut shares, import);
    let (provider, model_name) = accounts.provider(import, Model { vendor, name, base, limits }, params);
    if let Some(given) = given {
        import.mapped(given.location, "the integration's provider");
    }
    if is_pattern && !is_any {
        let why = format!("names are not taken apart: ask for `@{provider}/model`, for any model of the provider");
        import.unmapped(model.location, why);
        return None;
    }
    let mut target = Map::new();
    target.insert("provider".to_owned(), format!("@{provider}").into());
    if !is_any {
        target.insert("override_params".to_owned(), json!({ "model": escaped(&model_name) }));
    }
    import.mapped(model.location.clone(), format!("@{provider}"));
    let order = params.take_count("order").map(|order| {
        import.mapped(order.location, "the place in a fallback");
        order.value
    });
    shares[0] = params.take_weight("weight").map(|weight| {
        import.mapped(weight.location, "weight of the target, where its group has others");
        weight.value
    });
    if let Some(timeout) = params.take_number("timeout") {
        let timeout = bounds::timeout(bounds::from_seconds(timeout), "target", import);
        target.insert("request_timeout".to_owned(), timeout);
    }
    if let Some(retries) = params.take_count("max_retries") {
        target.insert("retry".to_owned(), bounds::retry(retries, "target", import));
    }
    let defaults = default_params(params, import);
    if !defaults.is_empty() {
        target.insert("default_params".to_owned(), defaults.into());
    }
    // Entries without an order come after those that have one.
    Some(Deployment { order: order.unwrap_or(u64::MAX), shares, target, location: model.location })
}

/// The rates of an entry, which are shares among its group, too.
fn limits(params: &mut Source, shares: &mut [Option<f64>; SHARES], import: &mut Import) -> Map<String, Value> {
    const PLACE: &str = "rate_limits of a provider of its own, which refuses more: LiteLLM shares calls out by it";
    let mut rates = Vec::new();
    for (at, (name, kind)) in [("rpm", "requests"), ("tpm", "tokens")].into_iter().enumerate() {
        let Some(rate) = params.take_count(name) else { continue };
        shares[at + 1] = Some(rate.value as f64);
        if bounds::is_rate(rate.value) {
            rates.push(json!({ "type": kind, "unit": "rpm", "value": rate.value }));
            import.mapped(rate.location, PLACE);
        } else {
            import.unmapped(rate.location, "a share among the group's targets; no rate that a provider can have");
        }
    }
    let mut limits = Map::new();
    if !rates.is_empty() {
        limits.insert("rate_limits".to_owned(), rates.into());
    }
    limits
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
