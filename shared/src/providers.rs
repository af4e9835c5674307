//! The table of providers: `conf/providers.toml`, bundled, with an operator's own rows over it. Both services read it,
//! so that admin accepts exactly the names that the proxy can serve.

mod account_fields;
mod auth;
mod family;
mod row;

pub use account_fields::{AccountFields, LayeredFields};
pub use auth::Auth;
pub use family::Family;

use http::{HeaderName, HeaderValue, Method};
use row::Row;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

const BUNDLED: &str = include_str!("../../conf/providers.toml");

/// Providers by name. Built once; a look-up allocates nothing.
#[derive(Debug)]
pub struct Providers(HashMap<Box<str>, Arc<ProviderEntry>>);

#[derive(Debug)]
pub struct ProviderEntry {
    /// The name requests use.
    pub slug: Box<str>,
    /// The name people use.
    pub name: Box<str>,
    /// Without one, a request must name its own.
    pub base_url: Option<Box<str>>,
    pub auth: Auth,
    /// Sent with every request unless the caller sends its own.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The code that translates the adapted families.
    pub adapter: Option<Box<str>>,
    /// Streams of chat and completions end with their usage when `stream_options` asks for it.
    pub has_stream_usage: bool,
    offers: [FamilyOffer; Family::ALL.len()],
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FamilyOffer {
    None,
    /// Bodies go as they are, to this path.
    Native(Box<str>),
    Adapted,
}

/// Why a path cannot be asked of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOffered {
    #[error("it does not offer the endpoint `{}`", .0.name())]
    Missing(Family),
    #[error("its endpoint `{}` needs a translation that is not built yet", .0.name())]
    NeedsAdapter(Family),
    #[error("it takes signed requests only, and signing is not built yet")]
    NeedsSignature,
}

#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct BadTable {
    place: String,
    problem: String,
}

impl Providers {
    pub fn bundled() -> Result<Self, BadTable> {
        let rows = rows("conf/providers.toml", BUNDLED)?;
        Ok(Self(providers("conf/providers.toml", rows)?))
    }

    /// The bundled table, with the rows of a file added or put in place of its own.
    pub fn load(file: Option<&Path>) -> Result<Self, BadTable> {
        let mut all = Self::bundled()?;
        if let Some(path) = file {
            let place = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| BadTable { place: place.clone(), problem: error.to_string() })?;
            all.0.extend(providers(&place, rows(&place, &text)?)?);
        }
        Ok(all)
    }

    pub fn get(&self, slug: &str) -> Option<&Arc<ProviderEntry>> {
        self.0.get(slug)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<ProviderEntry>> {
        self.0.values()
    }
}

fn rows(place: &str, text: &str) -> Result<BTreeMap<String, Row>, BadTable> {
    toml::from_str(text).map_err(|error| BadTable { place: place.to_owned(), problem: error.to_string() })
}

fn providers(place: &str, rows: BTreeMap<String, Row>) -> Result<HashMap<Box<str>, Arc<ProviderEntry>>, BadTable> {
    let providers = rows.into_iter().map(|(slug, row)| {
        let place = format!("{place} [{slug}]");
        let provider = row.provider(&slug).map_err(|problem| BadTable { place, problem })?;
        Ok((slug.into(), Arc::new(provider)))
    });
    providers.collect()
}

impl ProviderEntry {
    /// Where bodies of this family go as they are, relative to the base URL.
    pub fn native_path(&self, family: Family) -> Option<&str> {
        match &self.offers[family as usize] {
            FamilyOffer::Native(path) if !matches!(self.auth, Auth::Signed) => Some(path),
            _ => None,
        }
    }

    /// The families that need no code.
    pub fn native(&self) -> impl Iterator<Item = (Family, &str)> {
        Family::ALL.into_iter().filter_map(|family| Some((family, self.native_path(family)?)))
    }

    /// The families that wait for an adapter.
    pub fn adapted(&self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(|family| self.offers[*family as usize] == FamilyOffer::Adapted)
    }

    /// Where a request for `path` (relative to `/v1`) goes, relative to the base URL: the family's place at this
    /// provider, or the same path when it belongs to no family.
    pub fn upstream_path<'p>(&self, method: &Method, path: &'p str) -> Result<Cow<'p, str>, NotOffered> {
        if matches!(self.auth, Auth::Signed) {
            return Err(NotOffered::NeedsSignature);
        }
        let Some((family, rest)) = Family::from_path(method, path) else { return Ok(path.into()) };
        match &self.offers[family as usize] {
            FamilyOffer::Native(own) if **own == *family.path() => Ok(path.into()),
            FamilyOffer::Native(own) => Ok([own, rest].concat().into()),
            FamilyOffer::Adapted => Err(NotOffered::NeedsAdapter(family)),
            FamilyOffer::None if family.passes_unlisted() || self.passes_everything() => Ok(path.into()),
            FamilyOffer::None => Err(NotOffered::Missing(family)),
        }
    }

    /// A provider of which only its address is known takes every path as it comes.
    fn passes_everything(&self) -> bool {
        self.offers.iter().all(|offer| *offer == FamilyOffer::None)
    }
}

#[cfg(test)]
mod tests;
