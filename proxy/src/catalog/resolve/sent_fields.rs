//! Fields of a config, an account or a request's headers that a provider is sent as headers of its own.

use crate::routing::plan::{Leaf, SENT};
use http::{HeaderName, HeaderValue};
use std::borrow::Cow;

/// Providers that a request's headers may have such fields for, and how these begin. What everybody may be sent is read
/// elsewhere (`ProviderHeaders`).
const OF_PROVIDERS: [(&str, &str); 4] =
    [("azure-ai", "azure"), ("stability-ai", "stability"), ("sagemaker", "amzn"), ("claude-platform-aws", "anthropic")];

/// Whether a field that stands in a request's headers is for this provider. Most providers have none.
pub(super) fn is_meant_for(provider: &str, field: &str) -> bool {
    let begins = OF_PROVIDERS.iter().find(|(name, _)| *name == provider);
    begins.is_some_and(|(_, begins)| field.split('_').next() == Some(*begins))
}

/// What the target says comes first, then what `stored` knows.
pub(crate) fn extras<'v>(
    leaf: &'v Leaf,
    stored: impl Fn(&str) -> Option<Cow<'v, str>>,
) -> Vec<(HeaderName, HeaderValue)> {
    let value = |field: &str| leaf.placement.text(field).map(Cow::Borrowed).or_else(|| stored(field));
    let found = SENT.iter().filter_map(|(field, header)| {
        let value = HeaderValue::try_from(value(field)?.as_ref()).ok()?;
        Some((HeaderName::from_static(header), value))
    });
    found.collect()
}
