//! A row of the table as it is written, and what makes it a provider.

use super::{Auth, Family, FamilyOffer, ProviderEntry};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    name: String,
    base_url: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, String>,
    auth: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    endpoints: Vec<Family>,
    #[serde(default)]
    paths: BTreeMap<Family, String>,
    adapter: Option<String>,
    #[serde(default)]
    adapted: Vec<Family>,
    #[serde(default)]
    stream_usage: bool,
}

impl Row {
    pub(super) fn provider(self, slug: &str) -> Result<ProviderEntry, String> {
        let is_slug = slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !is_slug || slug.is_empty() {
            return Err("a provider's name is made of small letters, digits and hyphens".into());
        }
        if self.adapter.is_some() == self.adapted.is_empty() {
            return Err("`adapter` and `adapted` go together".into());
        }
        Ok(ProviderEntry {
            slug: slug.into(),
            base_url: self.base_url()?.map(Into::into),
            auth: Auth::parse(self.auth.as_deref().unwrap_or("bearer"))?,
            headers: self.headers()?,
            offers: self.offers()?,
            adapter: self.adapter.map(Into::into),
            has_stream_usage: self.stream_usage,
            name: self.name.into(),
        })
    }

    /// The address with its options filled in; none while an option has no default.
    fn base_url(&self) -> Result<Option<String>, String> {
        let Some(template) = &self.base_url else { return Ok(None) };
        if !template.starts_with("https://") && !template.starts_with("http://") || template.ends_with('/') {
            return Err("base_url: it starts with https:// and does not end in a slash".into());
        }
        let filled = self.options.iter().try_fold(template.clone(), |url, (name, value)| {
            let place = format!("{{{name}}}");
            if url.contains(&place) { Ok(url.replace(&place, value)) } else { Err(format!("base_url has no {place}")) }
        })?;
        Ok((!filled.contains('{')).then_some(filled))
    }

    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let headers = self.headers.iter().map(|(name, value)| {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            parsed.ok_or_else(|| format!("headers: `{name}` cannot be sent"))
        });
        headers.collect()
    }

    fn offers(&self) -> Result<[FamilyOffer; Family::ALL.len()], String> {
        let mut offers = [const { FamilyOffer::None }; Family::ALL.len()];
        for family in &self.endpoints {
            let path = self.paths.get(family).map_or(family.path(), String::as_str);
            if !path.starts_with('/') || path.contains(['?', '#', '{', ' ']) {
                return Err(format!("paths: {} is no plain path", family.name()));
            }
            take(&mut offers[*family as usize], FamilyOffer::Native(path.into()), *family)?;
        }
        for family in &self.adapted {
            take(&mut offers[*family as usize], FamilyOffer::Adapted, *family)?;
        }
        match self.paths.keys().find(|family| !self.endpoints.contains(family)) {
            Some(family) => Err(format!("paths: {} is not among the endpoints", family.name())),
            None => Ok(offers),
        }
    }
}

fn take(slot: &mut FamilyOffer, offer: FamilyOffer, family: Family) -> Result<(), String> {
    if *slot != FamilyOffer::None {
        return Err(format!("{} is listed twice", family.name()));
    }
    *slot = offer;
    Ok(())
}
