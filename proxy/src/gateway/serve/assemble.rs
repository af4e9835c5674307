//! Makes what the process serves requests with: the services, from settings, and the capabilities, of services.

use crate::gateway::capabilities::Capabilities;
use proxy::batches::day::DayBatches;
use proxy::batches::files::ManagedFiles;
use proxy::batches::records::BatchRecords;
use proxy::batches::{BatchEndpoints, FileEndpoints, ProviderJobs, ProviderObjects, RowGuards};
use proxy::cache::{Cache, Purges, RemoteStore, Semantic};
use proxy::catalog::inference_profiles::InferenceProfiles;
use proxy::catalog::providers::Providers;
use proxy::catalog::secrets::Secrets;
use proxy::catalog::signing::Signing;
use proxy::context::metrics::Metrics;
use proxy::engine::guards::RemoteCalls;
use proxy::engine::{Admitter, Authenticator, BodyLimits, Engine, Guards, Planner, ProviderCalls, Recorder, Router};
use proxy::engine::{Intake, Services};
use proxy::explain::Explainer;
use proxy::identity::deployment::DeploymentIdentity;
use proxy::identity::headers_to_metadata::HeadersToMetadata;
use proxy::identity::metadata::MetadataHeaders;
use proxy::identity::tokens::Tokens;
use proxy::identity::tokens::trail::Trail;
use proxy::journal::Journal;
use proxy::limits::admission::{Switches, Tariff};
use proxy::limits::fairness::Fairness;
use proxy::mcp::McpGateway;
use proxy::net::custom_hosts::Hosts;
use proxy::net::dial::Dialer;
use proxy::relay::{ModelLists, RelayLane};
use proxy::request::headers::Aliases;
use proxy::request::receive::{BodyPace, body_memory};
use proxy::routing::inline_configs::InlineConfigs;
use proxy::runtime::settings::Settings;
use proxy::snapshot::Snapshot;
use shared::cost::prices::{FetchedPrices, PriceFetch, Sources};
use shared::log_store::LogStore;
use shared::secrets::seal::{MasterKeys, Sealer};
use shared::settings::Process;
use std::sync::Arc;
use std::time::Duration;

/// Price lists from the operator's service, fetched through the dialer and so under its rules.
struct Files(Arc<Dialer>);

impl PriceFetch for Files {
    fn get<'a>(&'a self, url: &'a str) -> FetchedPrices<'a> {
        Box::pin(async move {
            let text = proxy::identity::tokens::fetch::fetch(&self.0, url).await.map_err(anyhow::Error::msg)?;
            Ok(Some(String::from_utf8(text)?))
        })
    }
}

pub fn services(
    settings: &Settings,
    snapshot: Arc<Snapshot>,
    metrics: Arc<Metrics>,
    trail: Trail,
    (journal, limits): (Option<Arc<Journal>>, Arc<proxy::limits::Limits>),
    (dialer, providers): (Arc<Dialer>, Providers),
) -> anyhow::Result<Services> {
    let sealer = Arc::new(Sealer::new(MasterKeys::load(&settings.sealing)?));
    let aliases = Arc::new(Aliases::new(&settings.identity.header_prefix_aliases)?);
    let sources =
        Sources::new(&settings.prices, &settings.log_store, providers.names(), Arc::new(Files(dialer.clone())))?;
    let tariff = Arc::new(Tariff { sources: Arc::new(sources), snapshot: snapshot.clone() });
    let secrets = Secrets::new(&settings.secrets, dialer.clone(), snapshot.clone(), sealer.clone());
    let signing = Signing::new(&settings.provider_login, dialer.clone());
    let memory = body_memory(settings.process.body_memory_bytes);
    let asker = RemoteCalls::new(dialer.clone(), snapshot.clone(), sealer.clone(), memory.clone());
    Ok(Services {
        authenticator: Arc::new(Authenticator {
            snapshot: snapshot.clone(),
            tokens: Tokens::new(&settings.jwt, dialer.clone(), trail),
            deployment: DeploymentIdentity::from_settings(&settings.deployment),
            trusted_proxies: settings.identity.trusted_proxies.clone(),
        }),
        recorder: Arc::new(Recorder {
            snapshot: snapshot.clone(),
            journal,
            unlogged: Arc::default(),
            log_body: settings.log_store.log_bodies.then_some(settings.log_store.log_body_bytes as usize),
            tariff: tariff.clone(),
            tells_costs: settings.prices.cost_headers,
        }),
        planner: Arc::new(Planner {
            snapshot: snapshot.clone(),
            inline: InlineConfigs::new(settings.configs.limits()),
            metadata_headers: MetadataHeaders {
                named: HeadersToMetadata::parse(&settings.identity.headers_to_metadata)?,
                agents: settings.identity.agent_metadata,
            },
        }),
        admitter: Arc::new(Admitter {
            snapshot: snapshot.clone(),
            limits,
            switches: Switches {
                things: settings.features.usage_limits_enabled,
                policies: settings.features.policy_enabled,
                unknown_price: settings.limits.unknown_price,
            },
            tariff,
        }),
        router: Arc::new(Router {
            snapshot: snapshot.clone(),
            providers,
            hosts: Hosts::default(),
            dialer: dialer.clone(),
            sealer: sealer.clone(),
            aliases: aliases.clone(),
            profiles: InferenceProfiles::default(),
            first_byte: Duration::from_millis(settings.upstream.upstream_first_byte_timeout_ms),
            stream_idle: Duration::from_millis(settings.upstream.upstream_stream_idle_timeout_ms),
            has_policies: settings.features.policy_enabled,
            guards: Guards::new(snapshot.clone(), metrics.guardrails.clone(), settings.features.guardrails_enabled)
                .with_asker(Arc::new(asker)),
        }),
        calls: Arc::new(ProviderCalls {
            dialer,
            secrets: Arc::new(secrets),
            signing: Arc::new(signing),
            fairness: Fairness::new(metrics.fairness.clone()),
            metrics: metrics.clone(),
            aliases: aliases.clone(),
        }),
        body_limits: Arc::new(BodyLimits {
            max_bytes: settings.process.max_body_bytes,
            timeout: Duration::from_millis(settings.process.body_timeout_ms),
            pace: body_pace(settings),
            memory,
        }),
        snapshot,
        metrics,
        aliases,
    })
}

/// Who serves requests with these services, and who runs batches.
pub struct Assembled {
    pub capabilities: Capabilities,
    /// None where no store for files can be opened.
    pub batch_parts: Option<(DayBatches, Arc<ManagedFiles>)>,
}

pub fn capabilities(settings: &Settings, services: &Services) -> anyhow::Result<Assembled> {
    let Services { router, calls, .. } = services;
    let semantic = Semantic::open(&settings.semantic_cache, &settings.database, &calls.dialer)?;
    let cache = Arc::new(cache(settings, services).with_semantic(semantic));
    let files = managed_files(settings);
    let records = Arc::new(BatchRecords::new(settings.database.clone()));
    let relay = Arc::new(RelayLane::new(services));
    let batches = Arc::new(BatchEndpoints::new(services, files.clone(), records.clone()));
    let provider_objects = Arc::new(ProviderObjects::new(services, relay.clone(), batches.clone()));
    let batch_parts = files.clone().map(|store| {
        let jobs = ProviderJobs::new(services, provider_objects.clone());
        (DayBatches::new(services, records, files.clone(), jobs, RowGuards::new(services)), store)
    });
    let capabilities = Capabilities {
        intake: Intake::new(services),
        engine: Arc::new(Engine::new(services, cache)),
        relay,
        provider_objects,
        files: FileEndpoints::new(services, files),
        batches,
        mcp: McpGateway::new(&settings.mcp, services, router.sealer.clone())?,
        explainer: Explainer::new(services),
        models: ModelLists::new(services),
    };
    Ok(Assembled { capabilities, batch_parts })
}

/// A store that cannot be opened costs files, not the process: without a journal nothing else needs it.
fn managed_files(settings: &Settings) -> Option<Arc<ManagedFiles>> {
    match LogStore::open(&settings.log_store) {
        Ok(store) => Some(Arc::new(ManagedFiles::new(settings.database.clone(), store, settings.files.clone()))),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the gateway keeps no files: their store cannot be opened");
            None
        }
    }
}

fn cache(settings: &Settings, services: &Services) -> Cache {
    let Services { snapshot, metrics, router, admitter, .. } = services;
    let (url, meters) = (settings.limits.redis_url.as_deref(), metrics.cache_store.clone());
    let remote =
        RemoteStore::from_settings(&settings.cache_store, url, snapshot.clone(), router.sealer.clone(), meters);
    let max_bytes = usize::try_from(settings.cache.cache_max_bytes).unwrap_or(usize::MAX);
    let limits = admitter.limits.clone();
    let database_clock = Arc::new(move || limits.now() / 1000);
    Cache::new(max_bytes).backed_by(remote, Purges { snapshot: snapshot.clone(), database_clock })
}

fn body_pace(settings: &Settings) -> BodyPace {
    let Process { body_min_bytes_per_s, body_rate_period_ms, .. } = settings.process;
    let bytes = body_min_bytes_per_s.saturating_mul(body_rate_period_ms) / 1000;
    BodyPace { period: Duration::from_millis(body_rate_period_ms), bytes: usize::try_from(bytes).unwrap_or(usize::MAX) }
}
