//! Headers that a request sends in vain: nobody reads them, or a config decides what they say. Silence would be the worst
//! answer: metadata under a misspelt name is lost, and a provider that is not asked looks like one that was.

use crate::catalog::choose_plan::{ChosenPlan, ConfigSource};
use crate::context::Visit;
use crate::request::headers::GatewayHeaders;
use crate::routing::plan::ProviderSource;

/// Each as its name and why it is ignored.
pub fn ignored(headers: &GatewayHeaders<'_>, found: &ChosenPlan) -> Vec<(String, String)> {
    headers.slips().chain(unused_provider(headers, found)).collect()
}

/// Tells them with the answer.
pub fn tell_ignored(headers: &GatewayHeaders<'_>, found: &ChosenPlan, visit: &mut Visit) {
    for (name, why) in ignored(headers, found) {
        visit.routing.warn(&format!("{name}: {why}"));
    }
}

/// A provider beside a default config that does not ask for it. With a config of the request's own it is the caller's choice.
fn unused_provider(headers: &GatewayHeaders<'_>, found: &ChosenPlan) -> Option<(String, String)> {
    let whose = match found.source {
        ConfigSource::ApiKey => "API key",
        ConfigSource::Workspace => "workspace",
        ConfigSource::Inline | ConfigSource::Request | ConfigSource::Nobody => return None,
    };
    let (name, sent) = match (headers.virtual_key, headers.provider) {
        (Some(slug), _) => ("x-gateway-virtual-key", slug),
        (None, Some(provider)) => ("x-gateway-provider", provider),
        (None, None) => return None,
    };
    let sent = sent.to_str().ok()?.trim();
    let slug = sent.strip_prefix('@').unwrap_or(sent);
    let is_asked = found.plan.leaves().any(|leaf| match &leaf.source {
        ProviderSource::Request => true,
        ProviderSource::Stored(own) => own == slug,
        ProviderSource::Named(own) => own == sent,
    });
    let why = || format!("is not used: the default config of the {whose} says where requests go");
    (!is_asked).then(|| (name.to_owned(), why()))
}
