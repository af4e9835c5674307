//! The order of the sources, how long an answer is kept, and what happens when a source fails.

use super::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const PRICE: &str = r#"{"m":{"pricing_config":{"pay_as_you_go":{"request_token":{"price":"PRICE"}}}}}"#;

/// Answers with a price of its own, none, or a failure, and counts how often it was asked for prices.
#[derive(Default)]
struct Service {
    asked: AtomicUsize,
    answer: parking::Answer,
}

mod parking {
    use std::sync::Mutex;

    /// What the service says next.
    #[derive(Default)]
    pub struct Answer(Mutex<Option<Result<String, String>>>);

    impl Answer {
        pub fn set(&self, answer: Option<Result<&str, &str>>) {
            *self.0.lock().unwrap() = answer.map(|said| said.map(str::to_owned).map_err(str::to_owned));
        }

        pub fn get(&self) -> Option<Result<String, String>> {
            self.0.lock().unwrap().clone()
        }
    }
}

impl PriceFetch for Service {
    fn get<'a>(&'a self, url: &'a str) -> FetchedPrices<'a> {
        assert!(url == "http://configs/pricing/openai" || url == "http://configs/general/openai", "{url}");
        self.asked.fetch_add(usize::from(url.contains("/pricing/")), Ordering::Relaxed);
        Box::pin(async move {
            tokio::task::yield_now().await;
            match self.answer.get() {
                Some(Ok(price)) => Ok(Some(PRICE.replace("PRICE", &price))),
                Some(Err(problem)) => anyhow::bail!(problem),
                None => Ok(None),
            }
        })
    }
}

fn settings(log_store: Option<&Path>, local: Option<&Path>) -> PriceSettings {
    PriceSettings {
        providers_file: None,
        model_configs_proxy_fetch_enabled: true,
        model_configs_proxy_url: Some("http://configs/".into()),
        model_configs_pricing_log_store_path: log_store.map(|path| format!("file://{}", path.display())),
        model_configs_capabilities_log_store_path: None,
        model_configs_pricing_local_path: local.map(Path::to_owned),
        model_configs_capabilities_local_path: None,
        cost_headers: true,
    }
}

/// A log store that nothing is in.
fn nowhere() -> settings::LogStoreSettings {
    log_store("file:///nowhere/at/all")
}

fn log_store(url: &str) -> settings::LogStoreSettings {
    settings::LogStoreSettings {
        log_store_url: url.to_owned(),
        log_bodies: true,
        log_body_bytes: 0,
        log_pack_seconds: 0,
        log_pack_bytes: 1 << 20,
    }
}

fn folder(price: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("openai.json"), PRICE.replace("PRICE", price)).unwrap();
    folder
}

async fn price(sources: &Sources, now: Instant) -> Option<String> {
    let document = sources.prices("openai", now).await?;
    let list = document.as_prices()?;
    let rates = list.find("openai", "m")?.entry.pricing_config.pay_as_you_go.clone()?;
    Some(rates.tokens["request_token"].price.0.to_string())
}

#[tokio::test]
async fn sources_are_asked_in_order_and_a_later_one_only_without_an_earlier() {
    let (log_store, local) = (folder("2"), folder("3"));
    for (service, log_store, local, expected) in [
        (Some(Ok("1")), Some(log_store.path()), Some(local.path()), Some("1")),
        (None, Some(log_store.path()), Some(local.path()), Some("2")),
        (Some(Err("away")), Some(log_store.path()), Some(local.path()), Some("2")),
        (None, None, Some(local.path()), Some("3")),
        (None, Some(Path::new("/nowhere")), Some(local.path()), Some("3")),
        // The bundled list has no model `m`.
        (None, None, None, None),
    ] {
        let asked = Arc::new(Service::default());
        asked.answer.set(service);
        let sources = Sources::new(&settings(log_store, local), &nowhere(), std::iter::empty(), asked).unwrap();
        assert_eq!(price(&sources, Instant::now()).await.as_deref(), expected, "{service:?} {log_store:?} {local:?}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_for_an_hour_and_then_asked_for_again() {
    let service = Arc::new(Service::default());
    service.answer.set(Some(Ok("1")));
    let sources = Sources::new(&settings(None, None), &nowhere(), std::iter::empty(), service.clone()).unwrap();
    let start = Instant::now();
    assert_eq!(price(&sources, start).await.as_deref(), Some("1"));
    service.answer.set(Some(Ok("2")));
    assert_eq!(price(&sources, start + CACHE_LIFETIME - Duration::from_secs(1)).await.as_deref(), Some("1"));
    assert_eq!(price(&sources, start + CACHE_LIFETIME).await.as_deref(), Some("2"));
    assert_eq!(service.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_cannot_be_renewed_is_used_on_and_tried_again_soon() {
    let service = Arc::new(Service::default());
    service.answer.set(Some(Ok("1")));
    let sources = Sources::new(&settings(None, None), &nowhere(), std::iter::empty(), service.clone()).unwrap();
    let start = Instant::now();
    assert_eq!(price(&sources, start).await.as_deref(), Some("1"));
    service.answer.set(Some(Err("away")));
    assert_eq!(price(&sources, start + CACHE_LIFETIME).await.as_deref(), Some("1"));
    service.answer.set(Some(Ok("2")));
    assert_eq!(
        price(&sources, start + CACHE_LIFETIME + RETRIED_AFTER - Duration::from_secs(1)).await.as_deref(),
        Some("1")
    );
    assert_eq!(price(&sources, start + CACHE_LIFETIME + RETRIED_AFTER).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn prices_are_known_also_while_they_are_renewed() {
    let service = Arc::new(Service::default());
    service.answer.set(Some(Ok("1")));
    let sources = Sources::new(&settings(None, None), &nowhere(), std::iter::empty(), service.clone()).unwrap();
    let start = Instant::now();
    assert!(sources.known("openai").is_none());
    assert!(sources.prices("openai", start).await.is_some());
    let mut renewing = std::pin::pin!(sources.prices("openai", start + CACHE_LIFETIME));
    assert!(futures::poll!(renewing.as_mut()).is_pending());
    assert!(sources.known("openai").is_some());
}

#[tokio::test]
async fn many_who_ask_for_one_file_cause_one_fetch() {
    let service = Arc::new(Service::default());
    service.answer.set(Some(Ok("1")));
    let sources = Sources::new(&settings(None, None), &nowhere(), std::iter::empty(), service.clone()).unwrap();
    let now = Instant::now();
    let asking = (0..100).map(|_| price(&sources, now));
    assert!(futures::future::join_all(asking).await.into_iter().all(|found| found.as_deref() == Some("1")));
    assert_eq!(service.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_name_that_is_no_provider_reaches_no_source() {
    let service = Arc::new(Service::default());
    let sources = Sources::new(&settings(None, None), &nowhere(), ["groq"].into_iter(), service.clone()).unwrap();
    for name in ["nobody", "../openai", "", "openai/../openai", "OPENAI"] {
        assert!(sources.prices(name, Instant::now()).await.is_none(), "{name}");
    }
    assert_eq!(service.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn settings_that_cannot_work_stop_the_start() {
    let fetch = || Arc::new(Service::default());
    let mut without_url = settings(None, None);
    without_url.model_configs_proxy_url = None;
    let mut on_no_store = settings(None, None);
    on_no_store.model_configs_pricing_log_store_path = Some("ftp://host/x".into());
    for (settings, name) in
        [(without_url, "MODEL_CONFIGS_PROXY_URL"), (on_no_store, "MODEL_CONFIGS_PRICING_LOG_STORE_PATH")]
    {
        let problem = Sources::new(&settings, &nowhere(), std::iter::empty(), fetch()).err().unwrap().to_string();
        assert!(problem.contains(name), "{problem}");
    }
}

/// A service that answers when it is told to, and never about facts: nobody waits for those with a call.
#[derive(Default)]
struct Slow {
    asked: AtomicUsize,
    gate: tokio::sync::Notify,
}

impl PriceFetch for Slow {
    fn get<'a>(&'a self, url: &'a str) -> FetchedPrices<'a> {
        Box::pin(async move {
            if !url.contains("/pricing/") {
                return std::future::pending().await;
            }
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.gate.notified().await;
            Ok(Some(PRICE.replace("PRICE", "7")))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn prices_that_come_later_than_anybody_waits_are_fetched_once_and_learnt() {
    const PATIENCE: Duration = Duration::from_millis(250);
    let service = Arc::new(Slow::default());
    let sources =
        Arc::new(Sources::new(&settings(None, None), &nowhere(), ["openai"].into_iter(), service.clone()).unwrap());
    for _ in 0..5 {
        assert!(sources.learn("openai", PATIENCE).await.is_none());
    }
    assert_eq!(service.asked.load(Ordering::Relaxed), 1, "one fetch for all of them");
    service.gate.notify_one();
    while sources.known("openai").is_none() {
        tokio::task::yield_now().await;
    }
    assert!(sources.learn("openai", PATIENCE).await.is_some());
    assert_eq!(service.asked.load(Ordering::Relaxed), 1);
    assert!(sources.learn("nobody", PATIENCE).await.is_none(), "a provider that does not exist");
}

#[tokio::test]
async fn a_path_is_a_folder_of_the_log_store() {
    let store = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(store.path().join("configs/prices")).unwrap();
    std::fs::write(store.path().join("configs/prices/openai.json"), PRICE.replace("PRICE", "7")).unwrap();
    let log_store = log_store(&format!("file://{}", store.path().display()));
    let mut settings = settings(None, None);
    for (path, expected) in [("configs/prices", Some("7")), ("/configs/prices/", None), ("configs", None)] {
        settings.model_configs_pricing_log_store_path = Some(path.into());
        let service = Arc::new(Service::default());
        let sources = Sources::new(&settings, &log_store, std::iter::empty(), service).unwrap();
        assert_eq!(price(&sources, Instant::now()).await.as_deref(), expected, "{path}");
    }
}

#[tokio::test]
async fn prices_know_the_deprecation_dates_of_their_models() {
    const FACTS: &str = r#"{"m":{"facts":{"context_tokens":9,"deprecation_date":"2026-01-31"}}}"#;
    let (prices, facts) = (folder("1"), tempfile::tempdir().unwrap());
    std::fs::write(facts.path().join("openai.json"), FACTS).unwrap();
    let mut settings = settings(None, Some(prices.path()));
    settings.model_configs_capabilities_local_path = Some(facts.path().to_owned());
    let now = Instant::now();
    for facts_come_first in [false, true] {
        let service = Arc::new(Service::default());
        let sources = Arc::new(Sources::new(&settings, &nowhere(), std::iter::empty(), service).unwrap());
        if facts_come_first {
            sources.document(Kind::General, "openai", now).await;
        }
        let document = sources.prices("openai", now).await.unwrap();
        let found = document.as_prices().unwrap().find("openai", "m").unwrap();
        assert_eq!(found.entry.deprecation_date().map(|date| date.to_string()).as_deref(), Some("2026-01-31"));
        let told = sources.facts("openai", ["m", "gpt-4o"]);
        assert_eq!(told[0].as_ref().and_then(|facts| facts.context_window), Some(9));
        assert_eq!(told[1], None, "an operator's file takes the place of the bundled one");
    }
}
