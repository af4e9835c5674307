//! Where the files come from, in order: memory (one hour), the configured service, the log store, local files, what is
//! bundled. A source that fails is logged and passed over; what it gave before is used a while longer.

use super::folder::PriceFolder;
use super::{ModelCapabilities, ModelFacts, PriceList, bundled};
use crate::settings::{self, PriceSettings};
use parking_lot::RwLock;
use serde_json::Value;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};

/// How long an answer is kept.
pub const CACHE_LIFETIME: Duration = Duration::from_secs(3600);
/// How long what could not be renewed is used before the next attempt.
pub const RETRIED_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Pricing,
    General,
}

impl Kind {
    const fn folder(self) -> &'static str {
        match self {
            Self::Pricing => "pricing",
            Self::General => "general",
        }
    }
}

/// How a file is fetched by URL; `None` when the server says that there is none.
pub trait PriceFetch: Send + Sync {
    fn get<'a>(&'a self, url: &'a str) -> FetchedPrices<'a>;
}

pub type FetchedPrices<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Option<String>>> + Send + 'a>>;

/// One provider's file, read.
#[derive(Debug)]
pub enum Document {
    Prices(PriceList),
    Capabilities(Value),
}

pub struct Sources {
    service: Option<(String, Arc<dyn PriceFetch>)>,
    log_store: Folders,
    local: Folders,
    /// One place for each provider that exists, so that nobody can fill the memory by asking, and so that many who ask
    /// for one file cause one fetch.
    by_provider: HashMap<Box<str>, Places, foldhash::fast::RandomState>,
}

/// What is kept of one provider.
#[derive(Debug, Default)]
struct Places {
    pricing: Mutex<Option<CachedDocument>>,
    general: Mutex<Option<CachedDocument>>,
    /// What `pricing` holds, also while that is being renewed.
    prices: RwLock<Option<CachedDocument>>,
    /// The same of `general`.
    capabilities: RwLock<Option<CachedDocument>>,
    /// The fetch under way that nobody's patience can end.
    flight: parking_lot::Mutex<Option<PriceFlight>>,
}

/// A fetch that goes on when nobody waits for it any more.
#[derive(Debug, Clone)]
struct PriceFlight {
    began: Instant,
    /// Sees its sender go when there is an answer.
    landed: watch::Receiver<()>,
}

impl Places {
    fn slot(&self, kind: Kind) -> &Mutex<Option<CachedDocument>> {
        match kind {
            Kind::Pricing => &self.pricing,
            Kind::General => &self.general,
        }
    }

    /// Once prices and facts are both there, whichever came first.
    fn note_deprecation_dates(&self) {
        let known = |place: &RwLock<Option<CachedDocument>>| place.read().as_ref()?.document.clone();
        let (Some(prices), Some(general)) = (known(&self.prices), known(&self.capabilities)) else { return };
        if let Some(list) = prices.as_prices() {
            list.note_deprecation_dates(general.deprecation_dates());
        }
    }
}

/// The places of each kind.
#[derive(Debug, Default)]
struct Folders {
    pricing: Option<PriceFolder>,
    general: Option<PriceFolder>,
}

#[derive(Debug, Clone)]
struct CachedDocument {
    document: Option<Arc<Document>>,
    until: Instant,
}

impl Sources {
    /// `providers` are the names that may be asked for, beside those with bundled files.
    pub fn new<'p>(
        settings: &PriceSettings,
        log_store: &settings::LogStoreSettings,
        providers: impl Iterator<Item = &'p str>,
        fetch: Arc<dyn PriceFetch>,
    ) -> anyhow::Result<Self> {
        let service = match (settings.model_configs_proxy_fetch_enabled, &settings.model_configs_proxy_url) {
            (true, Some(url)) => Some((url.trim_end_matches('/').to_owned(), fetch)),
            (true, None) => anyhow::bail!("MODEL_CONFIGS_PROXY_FETCH_ENABLED is ON without MODEL_CONFIGS_PROXY_URL"),
            (false, _) => None,
        };
        let stored = |setting: &str, path: &Option<String>| {
            path.as_ref().map(|path| PriceFolder::in_log_store(setting, path, log_store)).transpose()
        };
        let names = providers.map(Box::<str>::from).chain(super::bundled_providers().map(Box::from));
        let by_provider = names.map(|name| (name, Places::default()));
        Ok(Self {
            service,
            log_store: Folders {
                pricing: stored(
                    "MODEL_CONFIGS_PRICING_LOG_STORE_PATH",
                    &settings.model_configs_pricing_log_store_path,
                )?,
                general: stored(
                    "MODEL_CONFIGS_CAPABILITIES_LOG_STORE_PATH",
                    &settings.model_configs_capabilities_log_store_path,
                )?,
            },
            local: Folders {
                pricing: settings.model_configs_pricing_local_path.clone().map(PriceFolder::Folder),
                general: settings.model_configs_capabilities_local_path.clone().map(PriceFolder::Folder),
            },
            by_provider: by_provider.collect(),
        })
    }

    /// The prices of a provider's models; `None` for a provider of which nothing is known.
    pub async fn prices(&self, provider: &str, now: Instant) -> Option<Arc<Document>> {
        if let Some(cached) = self.by_provider.get(provider)?.prices.read().as_ref().filter(|cached| now < cached.until)
        {
            return cached.document.clone();
        }
        let prices = self.document(Kind::Pricing, provider, now).await;
        self.document(Kind::General, provider, now).await;
        prices
    }

    /// The same as far as it is in memory, however old: for those who must not wait.
    pub fn known(&self, provider: &str) -> Option<Arc<Document>> {
        self.by_provider.get(provider)?.prices.read().as_ref()?.document.clone()
    }

    /// The same for those who can wait a little: what is not in memory is fetched once for everybody, and kept whenever it
    /// comes. Nobody waits longer than until `patience` after that fetch began. What is old is renewed meanwhile.
    pub async fn learn(self: &Arc<Self>, provider: &str, patience: Duration) -> Option<Arc<Document>> {
        let places = self.by_provider.get(provider)?;
        let (known, is_fresh) = match &*places.prices.read() {
            Some(cached) => (cached.document.clone(), Instant::now() < cached.until),
            None => (None, false),
        };
        if is_fresh {
            return known;
        }
        let mut flight = self.fly(places, provider);
        if known.is_some() {
            return known;
        }
        let left = patience.saturating_sub(flight.began.elapsed());
        let _ = Box::pin(tokio::time::timeout(left, flight.landed.changed())).await;
        self.known(provider)
    }

    /// The fetch under way, or one that begins now.
    fn fly(self: &Arc<Self>, places: &Places, provider: &str) -> PriceFlight {
        let mut flight = places.flight.lock();
        if let Some(under_way) = flight.as_ref().filter(|flight| flight.landed.has_changed().is_ok()) {
            return under_way.clone();
        }
        let (landing, landed) = watch::channel(());
        let (sources, provider) = (self.clone(), provider.to_owned());
        tokio::spawn(async move {
            sources.document(Kind::Pricing, &provider, Instant::now()).await;
            drop(landing);
            // Nobody waits for the facts of models.
            sources.document(Kind::General, &provider, Instant::now()).await;
        });
        flight.insert(PriceFlight { began: Instant::now(), landed }).clone()
    }

    /// What a model takes. Never waits.
    pub fn capabilities(self: &Arc<Self>, provider: &str, model: &str) -> ModelCapabilities {
        self.general(provider).map(|document| document.capabilities(model)).unwrap_or_default()
    }

    /// The facts of these models of a provider, in their order. Never waits.
    pub fn facts<'m>(
        self: &Arc<Self>,
        provider: &str,
        models: impl IntoIterator<Item = &'m str>,
    ) -> Vec<Option<ModelFacts>> {
        let document = self.general(provider);
        models.into_iter().map(|model| document.as_ref()?.facts(model)).collect()
    }

    /// What is known of a provider's models beside their prices. What is not in memory is fetched for the next who asks, and
    /// until then what is bundled holds, or what was known before.
    fn general(self: &Arc<Self>, provider: &str) -> Option<Arc<Document>> {
        let places = self.by_provider.get(provider)?;
        let (known, is_fresh) = match &*places.capabilities.read() {
            Some(cached) => (Some(cached.document.clone()), Instant::now() < cached.until),
            None => (None, false),
        };
        // Whoever holds it fetches already.
        if !is_fresh && places.general.try_lock().is_ok() {
            let (sources, provider) = (self.clone(), provider.to_owned());
            tokio::spawn(async move { sources.document(Kind::General, &provider, Instant::now()).await });
        }
        known.unwrap_or_else(|| {
            let text = bundled::text(Kind::General, provider)?;
            Document::parse(Kind::General, text).ok().map(Arc::new)
        })
    }

    pub async fn document(&self, kind: Kind, provider: &str, now: Instant) -> Option<Arc<Document>> {
        let places = self.by_provider.get(provider)?;
        let mut slot = places.slot(kind).lock().await;
        if let Some(cached) = slot.as_ref().filter(|cached| now < cached.until) {
            return cached.document.clone();
        }
        let found = self.look(kind, provider).await;
        let earlier = slot.as_ref().and_then(|cached| cached.document.clone());
        let cached = match found {
            PriceLookup { document, failed: false } => CachedDocument { document, until: now + CACHE_LIFETIME },
            PriceLookup { document, failed: true } => {
                CachedDocument { document: earlier.or(document), until: now + RETRIED_AFTER }
            }
        };
        let known = match kind {
            Kind::Pricing => &places.prices,
            Kind::General => &places.capabilities,
        };
        *known.write() = Some(cached.clone());
        places.note_deprecation_dates();
        slot.insert(cached).document.clone()
    }

    async fn look(&self, kind: Kind, provider: &str) -> PriceLookup {
        let mut failed = false;
        let mut read = |place: &str, text: anyhow::Result<Option<String>>| {
            let read = text.and_then(|text| text.map(|text| Document::parse(kind, &text)).transpose());
            read.unwrap_or_else(|error| {
                tracing::warn!(provider, place, error = format!("{error:#}"), "model configurations could not be read");
                failed = true;
                None
            })
        };
        let mut document = None;
        if let Some((url, fetch)) = &self.service {
            let url = format!("{url}/{}/{provider}", kind.folder());
            document = read(&url, fetch.get(&url).await);
        }
        for folder in [self.log_store.folder(kind), self.local.folder(kind)].into_iter().flatten() {
            if document.is_none() {
                document = read(&folder.to_string(), folder.text(&format!("{provider}.json")).await);
            }
        }
        if document.is_none() {
            document = read("bundled", Ok(bundled::text(kind, provider).map(str::to_owned)));
        }
        PriceLookup { document: document.map(Arc::new), failed }
    }
}

struct PriceLookup {
    document: Option<Arc<Document>>,
    /// Whether a source that should have been asked could not be.
    failed: bool,
}

impl Folders {
    fn folder(&self, kind: Kind) -> Option<&PriceFolder> {
        match kind {
            Kind::Pricing => self.pricing.as_ref(),
            Kind::General => self.general.as_ref(),
        }
    }
}

impl Document {
    pub(super) fn parse(kind: Kind, text: &str) -> anyhow::Result<Self> {
        Ok(match kind {
            Kind::Pricing => Self::Prices(PriceList::parse(text)?),
            Kind::General => {
                let value: Value = serde_json::from_str(text)?;
                anyhow::ensure!(value.is_object(), "it is not a JSON object");
                Self::Capabilities(value)
            }
        })
    }

    pub fn as_prices(&self) -> Option<&PriceList> {
        match self {
            Self::Prices(list) => Some(list),
            Self::Capabilities(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
