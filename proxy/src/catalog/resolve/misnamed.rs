//! Providers that a request names wrongly, or not at all: what it says instead shows what was meant.

use super::TargetResolver;
use crate::catalog::choose_plan::blocks_inline;
use crate::catalog::plain_names;
use crate::identity::identify::Principal;
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::request::text_bounds::{self, cut};
use crate::routing::plan::{Leaf, ProviderSource};
use shared::model::Provider;
use shared::nearest::nearest;
use std::sync::Arc;

impl TargetResolver<'_> {
    /// Why a stored provider that the request itself names cannot be had. A slip is told what was meant; of a slug in a
    /// config, which is tried with every request, that would cost too much.
    pub(super) fn misnamed(&self, refusal: Refusal, slug: &str, param: &'static str, caller: &Principal) -> Refusal {
        let workspace = caller.workspace.id;
        if refusal.code != RefusalCode::InvalidProvider || self.snapshot.provider(workspace, slug).is_some() {
            return refusal;
        }
        let slug = cut(slug, text_bounds::NAME);
        let known = self.snapshot.providers_in_order(workspace);
        let known = known.as_deref().unwrap_or_default();
        Refusal::misnamed_slug(slug, nearest(slug, known.iter().map(|one| one.slug.as_str())), param)
    }

    /// Nobody says which provider: what the request says instead may show what was meant.
    pub(super) fn missing_provider(
        &self,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        model: Option<&str>,
    ) -> Refusal {
        if let Some((sent, meant)) = misspelt_provider(headers) {
            let why = format!("x-gateway-{sent} is no header of the gateway: did you mean x-gateway-{meant}?");
            return Refusal::missing_provider_because(&why);
        }
        let model = cut(model.unwrap_or_default(), text_bounds::NAME);
        let why = match model.split_once('/') {
            None if model.len() > 1 && model.starts_with('@') => {
                format!("the model `{model}` is a provider alone: write {model}/<model>")
            }
            Some((slug, _)) if self.snapshot.provider(caller.workspace.id, slug).is_some() => {
                format!("did you mean the model `@{model}`?")
            }
            _ => match self.nowhere_offered(caller, model) {
                Some(why) => why,
                None => return Refusal::missing_provider(),
            },
        };
        Refusal::missing_provider_because(&why)
    }
    /// The workspace's provider that offers a model which names none, where such names are looked up. Whoever misspelt a
    /// provider's header meant another, and a credential in a config is for nobody who was found by chance.
    pub(crate) fn plain_name(
        &self,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        model: Option<&str>,
    ) -> Option<Arc<Provider>> {
        let is_sought = caller.workspace.finds_plain_models
            && leaf.source == ProviderSource::Request
            && !leaf.placement.has_saved_credential()
            && !blocks_inline(self.snapshot, caller)
            && misspelt_provider(headers).is_none();
        plain_names::provider_of(self.snapshot, &caller.workspace, model.filter(|_| is_sought)?, self.now)
    }

    /// What to write in place of a model that names no provider, if the workspace has any.
    fn nowhere_offered(&self, caller: &Principal, model: &str) -> Option<String> {
        let workspace = &caller.workspace;
        if model.is_empty() || self.snapshot.providers_in_order(workspace.id).is_none() {
            return None;
        }
        if let Some(provider) = plain_names::provider_of(self.snapshot, workspace, model, self.now) {
            return Some(format!("did you mean the model `@{}/{model}`?", provider.slug));
        }
        let nowhere = format!("no provider of this workspace offers the model `{model}`");
        Some(match plain_names::nearest_offered(self.snapshot, workspace, model, self.now) {
            Some((provider, name)) => format!("{nowhere}: did you mean `@{}/{name}`?", provider.slug),
            None => format!("{nowhere}; GET /v1/models lists what there is"),
        })
    }
}

/// A header that nobody reads and that is nearly one which names a provider, with that one.
fn misspelt_provider<'h>(headers: &GatewayHeaders<'h>) -> Option<(&'h str, &'static str)> {
    const NAMING: [&str; 3] = ["provider", "config", "virtual-key"];
    headers.unknown.iter().find_map(|sent| Some((*sent, nearest(sent, NAMING)?)))
}
