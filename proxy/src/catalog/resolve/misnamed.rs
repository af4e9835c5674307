//! Providers that a request names wrongly, or not at all: what it says instead shows what was meant.

use super::TargetResolver;
use crate::identity::identify::Principal;
use crate::refusal::{Refusal, RefusalCode};
use crate::request::headers::GatewayHeaders;
use crate::request::text_bounds::{self, cut};
use shared::nearest::nearest;

impl TargetResolver<'_> {
    /// Why a stored provider that the request itself names cannot be had. A slip is told what was meant; of a slug in a
    /// config, which is tried with every request, that would cost too much.
    pub(super) fn misnamed(&self, refusal: Refusal, slug: &str, param: &'static str, caller: &Principal) -> Refusal {
        let workspace = caller.workspace.id;
        if refusal.code != RefusalCode::InvalidProvider || self.snapshot.provider(workspace, slug).is_some() {
            return refusal;
        }
        let slug = cut(slug, text_bounds::NAME);
        let known = self.snapshot.providers_of(workspace);
        Refusal::misnamed_slug(slug, nearest(slug, known.iter().map(|one| one.slug.as_str())), param)
    }

    /// Nobody says which provider: what the request says instead may show what was meant.
    pub(super) fn missing_provider(
        &self,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        model: Option<&str>,
    ) -> Refusal {
        const NAMING: [&str; 3] = ["provider", "config", "virtual-key"];
        let slip = headers.unknown.iter().find_map(|sent| Some((sent, nearest(sent, NAMING)?)));
        if let Some((sent, meant)) = slip {
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
            _ => return Refusal::missing_provider(),
        };
        Refusal::missing_provider_because(&why)
    }
}
