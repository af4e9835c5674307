//! The table of providers, bundled from `conf/providers.toml`.

use crate::dial::{Dialer, Origin};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;

const TABLE: &str = include_str!("../../conf/providers.toml");

#[derive(Debug)]
pub struct Provider {
    pub name: String,
    pub origin: Arc<Origin>,
    pub auth: Auth,
    /// Sent with every request unless the caller sends its own.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// First-class endpoints whose bodies this provider takes unchanged; others go through the relay lane.
    pub endpoints: Vec<String>,
}

/// How a provider takes its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    Bearer,
    XApiKey,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    base_url: String,
    auth: Auth,
    #[serde(default)]
    headers: HashMap<String, String>,
    #[serde(default = "openai_endpoints")]
    endpoints: Vec<String>,
}

fn openai_endpoints() -> Vec<String> {
    vec!["chat_completions".into()]
}

pub struct Providers(HashMap<String, Arc<Provider>>);

impl Providers {
    pub fn bundled(dialer: &Dialer) -> anyhow::Result<Self> {
        let rows: HashMap<String, Row> = toml::from_str(TABLE)?;
        let providers = rows.into_iter().map(|(name, row)| Ok((name.clone(), Arc::new(provider(name, row, dialer)?))));
        Ok(Self(providers.collect::<anyhow::Result<_>>()?))
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Provider>> {
        self.0.get(name)
    }
}

fn provider(name: String, row: Row, dialer: &Dialer) -> anyhow::Result<Provider> {
    let headers =
        row.headers.iter().map(|(name, value)| Ok((HeaderName::try_from(name)?, HeaderValue::try_from(value)?)));
    Ok(Provider {
        origin: dialer.known_host(&row.base_url)?,
        auth: row.auth,
        headers: headers.collect::<anyhow::Result<_>>()?,
        endpoints: row.endpoints,
        name,
    })
}
