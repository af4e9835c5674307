//! The table of providers, each with the origin that the dialer made of its address.

use crate::net::dial::{Dialer, Origin};
use anyhow::Context as _;
use bytes::Bytes;
use foldhash::fast::RandomState;
use http::HeaderValue;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Which number a provider has in the table of metrics; one beyond it is counted as `other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderNumber(pub usize);

impl ProviderNumber {
    /// Of a request that has turned to no provider yet.
    pub const NONE: Self = Self(usize::MAX);
}

#[derive(Debug)]
pub struct Provider {
    pub name: String,
    /// The same as answers tell it: a text that is never given back, so that telling it counts no references.
    pub label: HeaderValue,
    /// Its place in the table, by which metrics know it.
    pub number: ProviderNumber,
    /// Where it is when the request names no other place; some have no place of their own.
    pub origin: Option<Arc<Origin>>,
    pub row: Arc<shared::providers::ProviderEntry>,
    /// What takes its place where something of the account or the request is so, in the order of the row's.
    variants: Vec<Arc<Provider>>,
}

impl Provider {
    /// Itself, or the variant of it that `value` of its places and of the model asks for.
    pub fn varied<'v>(self: Arc<Self>, value: impl Fn(&str) -> Option<&'v str>) -> Arc<Self> {
        match self.row.variant(value).and_then(|number| self.variants.get(number)) {
            Some(variant) => variant.clone(),
            None => self,
        }
    }
}

pub struct Providers(HashMap<Box<str>, Arc<Provider>, RandomState>);

impl Providers {
    /// The bundled table with the rows of an operator's file over it.
    pub fn load(file: Option<&Path>, dialer: &Dialer) -> anyhow::Result<Self> {
        let rows = shared::providers::Providers::load(file)?;
        let mut rows: Vec<_> = rows.iter().collect();
        rows.sort_by(|one, other| one.slug.cmp(&other.slug));
        let providers = rows.iter().enumerate().map(|(number, row)| {
            let provider = provider(row, ProviderNumber(number), dialer)?;
            Ok((row.slug.clone(), Arc::new(provider)))
        });
        Ok(Self(providers.collect::<anyhow::Result<_>>()?))
    }

    /// Their names, in the order of their numbers.
    pub fn in_order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.names().collect();
        names.sort_unstable();
        names
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Provider>> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }
}

fn provider(
    row: &Arc<shared::providers::ProviderEntry>,
    number: ProviderNumber,
    dialer: &Dialer,
) -> anyhow::Result<Provider> {
    let origin = row.base_url.as_deref().map(|url| dialer.known_host(url)).transpose();
    let origin = origin.with_context(|| format!("the address of the provider {}", row.slug))?;
    let name = row.slug.to_string();
    let label = HeaderValue::from_maybe_shared(Bytes::from_static(name.clone().leak().as_bytes()))
        .with_context(|| format!("the name of the provider {name}"))?;
    let variants = row.variants.iter().map(|variant| provider(&variant.row, number, dialer).map(Arc::new));
    let variants = variants.collect::<anyhow::Result<_>>()?;
    Ok(Provider { name, label, number, origin, row: row.clone(), variants })
}
