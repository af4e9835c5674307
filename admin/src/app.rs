//! The state that every handler may use: database, settings, services, metrics. Cheap to clone, because axum clones it
//! for each request. It knows no handler: what is made of handlers (routes, the OpenAPI document) is made above it.

pub mod metrics;
pub mod settings;

use crate::http::backpressure::db_queue::DbQueue;
use crate::http::backpressure::judges::Judges;
use crate::http::backpressure::log_queries::LogQueries;
use crate::http::backpressure::request_limit::RequestLimit;
use crate::identity::cookies::CookieNames;
use crate::identity::oidc::OidcClient;
use crate::identity::tokens::Tokens;
use crate::log_data::tail::LogTail;
use crate::mail::webhook::AlertWebhook;
use crate::mail::{self, Mail};
use crate::outbound::Outbound;
use crate::outbound::model_configs::ModelConfigFetcher;
use crate::saml::providers::Providers as SamlProviders;
use ipnet::IpNet;
use metrics::Metrics;
use settings::Settings;
use shared::cost::prices::Sources;
use shared::db::Pool;
use shared::headers::header_prefix::Aliases;
use shared::log_store::LogStore;
use shared::providers::Providers;
use shared::secrets::seal::{MasterKeys, Sealer};
use shared::settings::config_limits::ConfigLimits;
use shared::settings::{DeploymentLimits, Features, Retention};
use shared::supervisor::Supervisor;
use std::sync::Arc;

/// Of one network (an IPv4 address, a /64 of IPv6): enough for an office behind one, too few to try out addresses of people.
const SIGN_INS_PER_MINUTE: u32 = 60;
/// Of a /48 of IPv6, which one client may have alone.
const WIDE_SIGN_INS_PER_MINUTE: u32 = 600;

#[derive(Clone)]
pub struct App {
    pub db: DbQueue,
    /// How often one credential may call.
    pub request_limit: Arc<RequestLimit>,
    /// How many searches of logs run at once.
    pub log_queries: LogQueries,
    /// Who follows logs here.
    pub log_tail: Arc<LogTail>,
    pub features: Arc<Features>,
    pub metrics: Arc<Metrics>,
    /// Of the background tasks of this process.
    pub supervisor: Arc<Supervisor>,
    /// Names under which the `x-gateway-` headers are accepted.
    pub aliases: Arc<Aliases>,
    /// Peers whose headers about the client's address and the request's id are trusted.
    pub trusted_proxies: Arc<[IpNet]>,
    /// What new keys start with.
    pub api_key_prefix: Arc<str>,
    /// How large a config may be.
    pub config_limits: Arc<ConfigLimits>,
    pub mail: Mail,
    /// Where alerts are posted beside mail.
    pub alert_webhook: Option<Arc<AlertWebhook>>,
    /// Seals what must not be read from the database.
    pub sealer: Arc<Sealer>,
    /// Whether secret references may use the gateway's own identity.
    pub lends_identity: bool,
    /// Connects to addresses that customers name.
    pub outbound: Arc<Outbound>,
    pub tokens: Arc<Tokens>,
    /// Identity providers that are described at an address of theirs.
    pub saml_providers: Arc<SamlProviders>,
    /// Where answers by SAML are judged.
    pub saml_judges: Judges,
    /// Talks to identity providers.
    pub oidc: Arc<OidcClient>,
    /// How often one network may try to sign in.
    pub sign_in_limit: Arc<RequestLimit>,
    /// The same of the network around it.
    pub wide_sign_in_limit: Arc<RequestLimit>,
    /// Opinions that a workspace may send in a day; 0 is no limit.
    pub feedback_per_day: u32,
    /// What links in mail start with; no slash at its end.
    pub public_url: Arc<str>,
    /// The cookies of people who sign in.
    pub cookies: CookieNames,
    /// Where MCP clients reach the proxy; no slash at its end.
    pub mcp_base_url: Arc<str>,
    /// Most connections held open at once.
    pub max_connections: usize,
    /// How many deployments an organisation may have.
    pub deployment_limits: Arc<DeploymentLimits>,
    /// How long logs and metrics are kept.
    pub retention: Arc<Retention>,
    /// Every provider that there is.
    pub providers: Arc<Providers>,
    /// Prices and capabilities of models.
    pub model_configs: Arc<Sources>,
    /// Bodies of logged calls, and exports.
    pub log_store: LogStore,
    /// Whether bodies of logged calls are kept, and how much of each.
    pub keeps_bodies: bool,
    pub longest_body: usize,
}

impl App {
    pub fn new(db: Pool, settings: &Settings) -> anyhow::Result<Self> {
        let providers = Providers::load(settings.prices.providers_file.as_deref())?;
        let slugs = providers.iter().map(|provider| &*provider.slug);
        let model_configs =
            Sources::new(&settings.prices, &settings.log_store, slugs, Arc::new(ModelConfigFetcher::new()?))?;
        let outbound = Arc::new(Outbound::new(&settings.outbound)?);
        let public_url: Arc<str> = mail::public_url(&settings.mail, settings.listen.proxy_port)?.into();
        let metrics = Metrics::new()?;
        Ok(Self {
            db: DbQueue::new(db, settings.database.database_pool_size),
            request_limit: Arc::new(RequestLimit::new(settings.listen.admin_requests_per_minute)),
            log_queries: LogQueries::new(settings.database.database_pool_size),
            log_tail: LogTail::new(metrics.log_tail.clone()),
            features: Arc::new(settings.features.clone()),
            metrics: Arc::new(metrics),
            supervisor: Supervisor::new(),
            aliases: Arc::new(Aliases::new(&settings.identity.header_prefix_aliases)?),
            trusted_proxies: settings.identity.trusted_proxies.clone().into(),
            api_key_prefix: settings.identity.api_key_prefix.as_str().into(),
            config_limits: Arc::new(config_limits(settings)?),
            mail: Mail::new(&settings.mail)?,
            alert_webhook: AlertWebhook::new(&settings.alerts)?.map(Arc::new),
            sealer: Arc::new(Sealer::new(MasterKeys::load(&settings.sealing)?)),
            lends_identity: settings.secrets.secrets_own_identity,
            tokens: Arc::new(Tokens::new(&settings.jwt, outbound.clone())),
            saml_judges: Judges::new(),
            saml_providers: Arc::new(SamlProviders::new(outbound.clone())),
            oidc: Arc::new(OidcClient::new(outbound.clone(), &settings.sign_in.oidc_custom_scopes)),
            sign_in_limit: Arc::new(RequestLimit::new(SIGN_INS_PER_MINUTE)),
            wide_sign_in_limit: Arc::new(RequestLimit::new(WIDE_SIGN_INS_PER_MINUTE)),
            feedback_per_day: settings.listen.feedback_per_day,
            outbound,
            cookies: CookieNames::new(&public_url),
            mcp_base_url: settings.mcp.mcp_base_url.as_deref().map_or_else(|| public_url.clone(), without_slash),
            public_url,
            max_connections: settings.listen.admin_max_connections as usize,
            deployment_limits: Arc::new(settings.deployment_limits.clone()),
            retention: Arc::new(settings.retention.clone()),
            model_configs: Arc::new(model_configs),
            providers: Arc::new(providers),
            log_store: LogStore::open(&settings.log_store)?,
            keeps_bodies: settings.log_store.log_bodies,
            longest_body: settings.log_store.log_body_bytes as usize,
        })
    }
}

fn without_slash(url: &str) -> Arc<str> {
    url.trim_end_matches('/').into()
}

/// Configs may name the operator's own providers too.
fn config_limits(settings: &Settings) -> anyhow::Result<ConfigLimits> {
    let mut limits = settings.configs.limits();
    let providers = Providers::load(settings.prices.providers_file.as_deref())?;
    limits.further_providers = providers.iter().map(|provider| provider.slug.to_string()).collect();
    Ok(limits)
}
