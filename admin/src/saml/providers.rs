//! Identity providers that are described at an address of theirs: fetched when needed, kept for a while, and fetched again
//! when a signature is by a key that is not known, because that is what a change of keys looks like.

use super::SamlSettings;
use super::metadata::{IdentityProvider, MAX_SIZE};
use super::settings::Described;
use crate::http::ApiError;
use crate::outbound::Outbound;
use shared::telemetry::{Brief, LogLimit};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const CACHE_LIFETIME: Duration = Duration::from_secs(600);
/// Somebody who sends bad signatures makes us fetch no more often than this.
const SOONEST: Duration = Duration::from_secs(60);
const TIME: Duration = Duration::from_secs(10);
/// Descriptions kept at once; beyond that the oldest goes.
const MAX_PROVIDERS: usize = 1000;

pub struct Providers {
    outbound: Arc<Outbound>,
    cache: Mutex<HashMap<String, (Instant, Arc<IdentityProvider>)>>,
}

/// How fresh a description must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Cached,
    /// As new as it may be: a key was not known.
    Renewed,
}

impl Providers {
    pub fn new(outbound: Arc<Outbound>) -> Self {
        Self { outbound, cache: Mutex::default() }
    }

    pub async fn find(&self, settings: &SamlSettings, fresh: Freshness) -> Result<Arc<IdentityProvider>, ApiError> {
        match settings.described() {
            Ok(Described::Here(provider)) => Ok(Arc::new(provider)),
            Ok(Described::At(url)) => self.fetched(&url, fresh).await,
            Err((field, bad)) => {
                static UNUSABLE: LogLimit = LogLimit::new();
                if let Some(skipped) = UNUSABLE.pass() {
                    tracing::warn!(field, bad = %Brief(bad), skipped, "stored SAML settings are not usable");
                }
                Err(ApiError::Forbidden("The SAML settings of this organisation are not usable"))
            }
        }
    }

    async fn fetched(&self, url: &str, fresh: Freshness) -> Result<Arc<IdentityProvider>, ApiError> {
        const FAILED: ApiError = ApiError::Forbidden("The metadata of the identity provider cannot be read");
        let longest = if fresh == Freshness::Renewed { SOONEST } else { CACHE_LIFETIME };
        if let Some(provider) = self.recent(url, longest) {
            return Ok(provider);
        }
        let fetched = tokio::time::timeout(TIME, self.outbound.get(url, MAX_SIZE)).await;
        let fetched = fetched.unwrap_or_else(|_| Err("it took too long".into()));
        let parsed = fetched.and_then(|xml| IdentityProvider::parse(&xml).map_err(|bad| bad.to_string()));
        match parsed {
            Ok(provider) => Ok(self.keep(url, Arc::new(provider))),
            Err(why) => {
                static UNREAD: LogLimit = LogLimit::new();
                if let Some(skipped) = UNREAD.pass() {
                    tracing::warn!(why = %Brief(why), skipped, "metadata of an identity provider cannot be read");
                }
                // What was good a while ago is better than nobody signing in.
                self.recent(url, CACHE_LIFETIME * 144).ok_or(FAILED)
            }
        }
    }

    fn recent(&self, url: &str, longest: Duration) -> Option<Arc<IdentityProvider>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(url).filter(|(since, _)| since.elapsed() < longest).map(|(_, provider)| provider.clone())
    }

    fn keep(&self, url: &str, provider: Arc<IdentityProvider>) -> Arc<IdentityProvider> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_PROVIDERS && !cache.contains_key(url) {
            let oldest = cache.iter().min_by_key(|(_, (since, _))| *since).map(|(url, _)| url.clone());
            if let Some(oldest) = oldest {
                cache.remove(&oldest);
            }
        }
        cache.insert(url.to_owned(), (Instant::now(), provider.clone()));
        provider
    }
}
