//! A provider that is asked elsewhere, or in another way, where something of the account or the request is so: Azure's
//! `v1` has other paths than its dated versions, and Claude on Azure has a wire of its own. A variant is a row that takes
//! the place of the one it belongs to; what it does not say it has from there.

use super::betas::BetasRow;
use super::model_list::ModelListRow;
use super::row::Row;
use super::{Family, ProviderEntry};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub struct Variant {
    /// All of them must hold.
    conditions: Vec<(Box<str>, Pattern)>,
    pub row: Arc<ProviderEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Is(Box<str>),
    Begins(Box<str>),
    Contains(Box<str>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantRow {
    /// By the name of a place, or `model`: a text, `text*` or `*text*`.
    when: BTreeMap<String, String>,
    base_url: Option<String>,
    auth: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    endpoints: Vec<Family>,
    #[serde(default)]
    paths: BTreeMap<Family, String>,
    /// Addresses of its own for some of its endpoints.
    #[serde(default)]
    bases: BTreeMap<Family, String>,
    models: Option<ModelListRow>,
    betas: Option<BetasRow>,
    #[serde(default)]
    sends_deployment: bool,
}

impl VariantRow {
    /// Whether a place decides about it.
    pub fn asks_for(&self, place: &str) -> bool {
        self.when.contains_key(place)
    }

    /// Whether a place is a part of its address.
    pub fn is_at(&self, place: &str) -> bool {
        self.base_url.as_ref().is_some_and(|url| url.contains(&format!("{{{place}}}")))
    }

    pub fn variant(&self, of: &Row, slug: &str) -> Result<Variant, String> {
        let conditions = self.when.iter().map(|(place, pattern)| (place.as_str().into(), Pattern::parse(pattern)));
        let conditions: Vec<(Box<str>, Pattern)> = conditions.collect();
        if conditions.is_empty() {
            return Err("variants: `when` says nothing".into());
        }
        let mut row = of.clone();
        row.variants.clear();
        row.is_variant = true;
        row.base_url = self.base_url.clone().or(row.base_url);
        row.auth = self.auth.clone().or(row.auth);
        row.headers = self.headers.clone().unwrap_or(row.headers);
        row.endpoints.clone_from(&self.endpoints);
        row.paths.clone_from(&self.paths);
        row.untranslated.retain(|family| !self.endpoints.contains(family));
        row.bases.retain(|family, _| !self.endpoints.contains(family));
        row.bases.extend(self.bases.clone());
        row.models = self.models.clone().or(row.models);
        row.betas = self.betas.clone().or(row.betas);
        row.sends_deployment = self.sends_deployment;
        Ok(Variant { conditions, row: Arc::new(row.provider(slug)?) })
    }
}

impl Variant {
    pub(super) fn holds<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.conditions.iter().all(|(place, pattern)| value(place).is_some_and(|value| pattern.matches(value.trim())))
    }
}

impl Pattern {
    fn parse(text: &str) -> Self {
        match (text.strip_prefix('*').and_then(|rest| rest.strip_suffix('*')), text.strip_suffix('*')) {
            (Some(inner), _) => Self::Contains(inner.into()),
            (None, Some(start)) => Self::Begins(start.into()),
            (None, None) => Self::Is(text.into()),
        }
    }

    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Is(text) => value.eq_ignore_ascii_case(text),
            Self::Begins(start) => value.starts_with(&**start),
            Self::Contains(part) => value.contains(&**part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_text_a_beginning_or_a_part() {
        for (pattern, value, matches) in [
            ("v1", "v1", true),
            ("v1", "V1", true),
            ("v1", "v10", false),
            ("claude*", "claude-x", true),
            ("claude*", "my-claude", false),
            ("*anthropic*", "https://x.test/anthropic/", true),
            ("*anthropic*", "https://x.test", false),
        ] {
            assert_eq!(Pattern::parse(pattern).matches(value), matches, "{pattern} {value}");
        }
    }
}
