//! Which plan a request follows: the config it names or carries, else its key's, else its workspace's, else none.

use crate::identity::identify::Principal;
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::{Inline, Refusal};
use crate::routing::inline_configs::InlineConfigs;
use crate::routing::plan::{Plan, ProviderSource};
use crate::snapshot::Snapshot;
use crate::snapshot::saved_config::SavedConfig;
use http::HeaderValue;
use serde_json::{Value, json};
use shared::config::{Retry, Strictness, parse_config};
use shared::model::KeyDefaults;
use shared::settings::config_limits::ConfigLimits;
use std::sync::Arc;

const LOCKED: &str = "this API key uses its own config and allows no other (allow_config_override)";

/// Why a request must keep to its config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Its key is bound to it.
    Locked,
    /// Its organisation accepts nothing else.
    SavedOnly,
}

impl Keeping {
    pub fn refusal(self, inline: Inline<'_>) -> Refusal {
        match self {
            Self::Locked => Refusal::invalid_config(LOCKED.into()),
            Self::SavedOnly => Refusal::inline_blocked(inline),
        }
    }
}

/// A request's plan, and how it came to it.
pub struct ChosenPlan {
    pub plan: Arc<Plan>,
    pub source: ConfigSource,
    pub saved: Option<Arc<SavedConfig>>,
}

/// Who says which config holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource {
    /// The request carries it.
    Inline,
    /// The request names it.
    Request,
    ApiKey,
    Workspace,
    Nobody,
}

impl ConfigSource {
    pub fn text(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Request => "request",
            Self::ApiKey => "api_key",
            Self::Workspace => "workspace",
            Self::Nobody => "none",
        }
    }
}

pub fn plan(
    headers: &GatewayHeaders<'_>,
    caller: &Principal,
    snapshot: &Snapshot,
    inline: &InlineConfigs,
) -> Result<Arc<Plan>, Refusal> {
    find(headers, caller, snapshot, inline).map(|found| found.plan)
}

pub fn find(
    headers: &GatewayHeaders<'_>,
    caller: &Principal,
    snapshot: &Snapshot,
    inline: &InlineConfigs,
) -> Result<ChosenPlan, Refusal> {
    let found = find_unchecked(headers, caller, snapshot, inline)?;
    if headers.forward_headers.is_some() && blocks_inline(snapshot, caller) {
        return Err(Refusal::inline_blocked(Inline::ForwardHeaders));
    }
    if found.saved.is_some() {
        check_provider(headers, caller, snapshot, &found.plan)?;
    }
    Ok(found)
}

fn find_unchecked(
    headers: &GatewayHeaders<'_>,
    caller: &Principal,
    snapshot: &Snapshot,
    inline: &InlineConfigs,
) -> Result<ChosenPlan, Refusal> {
    let workspace = &caller.workspace;
    let carried = |plan: Arc<Plan>, source: ConfigSource| ChosenPlan { plan, source, saved: None };
    if let Some(sent) = headers.config {
        let text = sent.to_str().map_err(|_| Refusal::invalid_config("it is not text".into()))?.trim();
        let is_inline = text.starts_with('{');
        if text.starts_with(['[', '"']) {
            return Err(Refusal::invalid_config("it must be a JSON object, or the slug of a saved config".into()));
        }
        if is_inline && blocks_inline(snapshot, caller) {
            return Err(Refusal::inline_blocked(Inline::Config));
        }
        let locked = caller.key.defaults.as_deref().filter(|defaults| defaults.locks_config());
        return match (is_inline, locked) {
            (true, None) => inline.plan((&**workspace).into(), text).map(|plan| carried(plan, ConfigSource::Inline)),
            (true, Some(_)) => Err(Refusal::invalid_config(LOCKED.into())),
            (false, _) => {
                let config = saved(snapshot, caller, text)?;
                match locked.is_none_or(|defaults| is_own(&config, defaults)) {
                    true => Ok(named(config, ConfigSource::Request)),
                    false => Err(Refusal::invalid_config(LOCKED.into())),
                }
            }
        };
    }
    if let Some(name) = caller.key.defaults.as_ref().and_then(|defaults| defaults.config.as_deref()) {
        match saved(snapshot, caller, name) {
            // An issuer of tokens cannot know which configs there are.
            Err(_) if caller.token.is_some() => {}
            found => return found.map(|config| named(config, ConfigSource::ApiKey)),
        }
    }
    if let Some(config) = snapshot.default_config(workspace.id) {
        return Ok(named(config, ConfigSource::Workspace));
    }
    match retry_count(headers)? {
        None => Ok(carried(Plan::of_nothing().clone(), ConfigSource::Nobody)),
        // With a budget of the workspace's own.
        Some(count) => {
            let plan = inline.plan((&**workspace).into(), &retrying(count).to_string())?;
            Ok(carried(plan, ConfigSource::Nobody))
        }
    }
}

/// The plan of a saved config that somebody else than the caller names: what the caller's key allows it to name does not
/// matter then.
pub fn find_named(snapshot: &Snapshot, caller: &Principal, name: &str) -> Result<ChosenPlan, Refusal> {
    saved(snapshot, caller, name).map(|config| named(config, ConfigSource::Request))
}

/// Whether the caller's organisation accepts nothing but saved configs and providers.
pub fn blocks_inline(snapshot: &Snapshot, caller: &Principal) -> bool {
    snapshot.organisation_is(&caller.workspace.organisation_id, |organisation| organisation.blocks_inline_config)
}

/// Why the headers of a request may not lead its calls elsewhere than its config does: its key keeps to its config, or its
/// organisation to saved ones.
pub fn keeps_to_config(snapshot: &Snapshot, caller: &Principal) -> Option<Keeping> {
    let is_locked = caller.key.defaults.as_deref().is_some_and(|own| own.locks_config() && own.config.is_some());
    match is_locked {
        true => Some(Keeping::Locked),
        false => blocks_inline(snapshot, caller).then_some(Keeping::SavedOnly),
    }
}

/// A provider that a request names beside a config that it must keep to is one of the config's.
fn check_provider(
    headers: &GatewayHeaders<'_>,
    caller: &Principal,
    snapshot: &Snapshot,
    plan: &Plan,
) -> Result<(), Refusal> {
    if headers.provider.is_none() && headers.virtual_key.is_none() && headers.mode.is_none() {
        return Ok(());
    }
    let Some(why) = keeps_to_config(snapshot, caller) else { return Ok(()) };
    let names = [text_of(headers.provider), text_of(headers.virtual_key), headers.named_by_mode()];
    for name in names.into_iter().flatten() {
        let slug = name.trim_start_matches('@');
        let is_named = plan.leaves().any(|leaf| match &leaf.source {
            ProviderSource::Named(own) => own == name,
            ProviderSource::Stored(own) => own == slug,
            // The config leaves it to the request.
            ProviderSource::Request => true,
        });
        if !is_named {
            return Err(why.refusal(Inline::Provider));
        }
    }
    Ok(())
}

fn text_of(value: Option<&HeaderValue>) -> Option<&str> {
    value.and_then(|value| value.to_str().ok()).map(str::trim)
}

/// Whether a config is the one that the key itself names.
fn is_own(config: &SavedConfig, defaults: &KeyDefaults) -> bool {
    let own = defaults.config.as_deref();
    own.is_some_and(|own| own == config.row.slug || own == config.row.id.to_string())
}

/// How often a request wishes to be tried again where its config says nothing of it.
pub fn wished_retry(headers: &GatewayHeaders<'_>) -> Result<Option<Retry>, Refusal> {
    let Some(count) = retry_count(headers)? else { return Ok(None) };
    let config = parse_config(&retrying(count), Strictness::Inline, &ConfigLimits::default());
    Ok(config.map_err(|faults| Refusal::faulty_config(&faults))?.retry)
}

fn retrying(count: u8) -> Value {
    json!({ "retry": { "attempts": count } })
}

fn retry_count(headers: &GatewayHeaders<'_>) -> Result<Option<u8>, Refusal> {
    let Some(sent) = headers.retry_count else { return Ok(None) };
    let count = sent.to_str().ok().and_then(|text| text.trim().parse::<u8>().ok()).filter(|count| *count <= 5);
    count.map(Some).ok_or_else(|| Refusal::invalid_header("x-gateway-retry-count", "a number from 0 to 5"))
}

fn named(config: Arc<SavedConfig>, source: ConfigSource) -> ChosenPlan {
    ChosenPlan { plan: config.plan.clone(), source, saved: Some(config) }
}

/// Another workspace's config does not exist here.
fn saved(snapshot: &Snapshot, caller: &Principal, name: &str) -> Result<Arc<SavedConfig>, Refusal> {
    let workspace = &caller.workspace;
    let found = snapshot.config(workspace.organisation_id, name);
    match found.filter(|config| config.row.workspace_id == workspace.id && config.row.is_active()) {
        Some(config) => Ok(config),
        None => Err(Refusal::invalid_config(format!("there is no config `{name}` in this workspace"))),
    }
}
