//! The engine lane for tests, without Postgres and without Pingora: one key, one workspace, providers on loopback.

use super::answer::Steps;
use super::guards::RemoteCalls;
use super::{
    Admitter, Authenticator, BodyLimits, Engine, Guards, Opened, Planner, ProviderCalls, Recorder, Router, Services,
};
use crate::cache::Cache;
use crate::catalog::inference_profiles::InferenceProfiles;
use crate::catalog::providers::Providers;
use crate::catalog::secrets::Secrets;
use crate::catalog::signing::Signing;
use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::context::settle::RecordCopies;
use crate::identity::identify::INFERENCE;
use crate::identity::metadata::{MetadataHeaders, trace_id};
use crate::identity::tokens::{Tokens, trail};
use crate::journal::Journal;
use crate::limits::admission::{Switches, Tariff};
use crate::limits::fairness::Fairness;
use crate::net::custom_hosts::Hosts;
use crate::net::dial::lab;
use crate::net::downstream::Downstream as _;
use crate::net::downstream::lab::LabClient;
use crate::request::classify::{Route, classify, dialect};
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::receive::{BodyPace, body_memory};
use crate::routing::inline_configs::InlineConfigs;
use crate::runtime::settings::Settings;
use crate::snapshot::Snapshot;
use clap::Parser as _;
use pingora_http::RequestHeader;
use serde_json::Value;
use shared::cost::prices::{FetchedPrices, PriceFetch, Sources};
use shared::identity::api_key::KeyHash;
use shared::model::{AccessStatus, ApiKey, KeyKind, Status, Workspace};
use shared::secrets::seal::{MasterKeys, Sealer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

const KEY: &str = "pk_lab";

/// Services whose answers go through these steps too. They log calls and their bodies into a folder, if there is one.
pub fn services(journal: Option<&Path>, more_steps: fn(&mut Steps)) -> Services {
    let mut settings = Settings::parse_from(["test", "--database-url", "postgres://nobody@127.0.0.1:1/none"]);
    let long = Duration::from_secs(20);
    let metrics = Arc::new(Metrics::new(&[]).unwrap());
    let journal = journal.map(|folder| {
        settings.journal.journal_dir = folder.to_owned();
        Journal::open(settings.journal.clone(), 1, metrics.journal.clone()).unwrap()
    });
    let dialer = Arc::new(lab::dialer());
    let snapshot = Arc::new(Snapshot::with_rows(vec![key()], vec![workspace()]));
    let sealer = Arc::new(Sealer::new(MasterKeys::load(&settings.sealing).unwrap()));
    let providers = Providers::load(None, &dialer).unwrap();
    let memory = body_memory(2 << 20);
    let asker = RemoteCalls::new(dialer.clone(), snapshot.clone(), sealer.clone(), memory.clone());
    let sources = Sources::new(&settings.prices, &settings.log_store, providers.names(), Arc::new(Nowhere));
    let tariff = Arc::new(Tariff { sources: Arc::new(sources.unwrap()), snapshot: snapshot.clone() });
    let (trail, _) = trail::trail(metrics.unrecorded_tokens.clone());
    let aliases = Arc::<Aliases>::default();
    Services {
        authenticator: Arc::new(Authenticator {
            snapshot: snapshot.clone(),
            tokens: Tokens::new(&settings.jwt, dialer.clone(), trail),
            deployment: None,
            trusted_proxies: Vec::new(),
        }),
        recorder: Arc::new(Recorder {
            snapshot: snapshot.clone(),
            journal,
            unlogged: Arc::default(),
            log_body: Some(1 << 20),
            tariff: tariff.clone(),
            tells_costs: false,
        }),
        planner: Arc::new(Planner {
            snapshot: snapshot.clone(),
            inline: InlineConfigs::new(settings.configs.limits()),
            metadata_headers: MetadataHeaders::default(),
        }),
        admitter: Arc::new(Admitter {
            snapshot: snapshot.clone(),
            limits: crate::limits::Limits::alone(settings.limits.clone(), metrics.limits.clone()),
            switches: Switches { things: true, policies: true, unknown_price: settings.limits.unknown_price },
            tariff,
        }),
        calls: Arc::new(ProviderCalls {
            dialer: dialer.clone(),
            signing: Arc::new(Signing::new(&settings.provider_login, dialer.clone())),
            secrets: Arc::new(Secrets::new(&settings.secrets, dialer.clone(), snapshot.clone(), sealer.clone())),
            fairness: Fairness::new(metrics.fairness.clone()),
            metrics: metrics.clone(),
            aliases: aliases.clone(),
            more_steps,
        }),
        router: Arc::new(Router {
            snapshot: snapshot.clone(),
            providers,
            hosts: Hosts::default(),
            dialer,
            sealer: sealer.clone(),
            aliases: aliases.clone(),
            profiles: InferenceProfiles::default(),
            guards: Guards::new(snapshot.clone(), metrics.guardrails.clone(), true).with_asker(Arc::new(asker)),
            first_byte: long,
            stream_idle: long,
            has_policies: true,
        }),
        body_limits: Arc::new(BodyLimits {
            max_bytes: 1 << 20,
            timeout: long,
            pace: BodyPace { period: long, bytes: 0 },
            memory,
        }),
        snapshot,
        metrics,
        aliases,
    }
}

fn engine(services: &Services) -> Engine {
    Engine::new(services, Arc::new(Cache::new(1 << 20)))
}

/// What the head of a request becomes.
pub async fn open(engine: &Engine, head: &RequestHeader, visit: &mut Visit) -> Opened {
    let route = classify(&head.method, head.uri.path());
    visit.request.dialect = dialect(&route);
    let headers = GatewayHeaders::from_headers(&head.headers, &engine.aliases).unwrap();
    visit.request.trace_id = trace_id(&headers).unwrap();
    let known = engine.intake.learn(head, None, &headers, visit).await.unwrap();
    match route {
        Route::Engine(endpoint) => engine.open(endpoint, head, &headers, known, visit).unwrap(),
        Route::Prompt(reference) => Opened::Call(engine.open_prompt(reference, &headers, known).unwrap()),
        other => panic!("{other:?}"),
    }
}

/// Asks for a chat, by this config.
pub async fn chat(services: &Services, config: &Value, is_stream: bool) -> LabClient {
    let body = serde_json::json!({ "model": "m", "messages": [], "stream": is_stream });
    ask(services, "/v1/chat/completions", &body, config).await
}

/// Asks for anything that the engine understands, by this config.
pub async fn ask(services: &Services, path: &str, body: &Value, config: &Value) -> LabClient {
    ask_text(services, path, &body.to_string(), &config.to_string()).await
}

/// The same with a body as it is written.
pub async fn ask_text(services: &Services, path: &str, body: &str, config: &str) -> LabClient {
    let headers = [("x-gateway-api-key", KEY), ("x-gateway-config", config)];
    let mut client = LabClient::post(path, body, &headers);
    let mut visit = Visit::begin();
    let engine = engine(services);
    let Opened::Call(mut request) = open(&engine, client.head(), &mut visit).await else { panic!("it is relayed") };
    lab::soon(engine.run(&mut client, &mut visit, &mut request)).await;
    client
}

/// Asks for a chat of these words, and answers what was noted of each call. Its client leaves when it is told to.
pub async fn noted(services: &Services, words: &str, config: &Value, leaving: Option<Arc<Notify>>) -> Vec<Vec<u8>> {
    let body = serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": words }] }).to_string();
    let headers = [("x-gateway-api-key", KEY), ("x-gateway-config", &*config.to_string())];
    let mut client = LabClient::post("/v1/chat/completions", &body, &headers);
    client.leaving = leaving;
    let mut visit = Visit::begin();
    let engine = engine(services);
    let Opened::Call(mut request) = open(&engine, client.head(), &mut visit).await else { panic!("it is relayed") };
    let copies = Arc::<RecordCopies>::default();
    visit.observer.log.as_mut().expect("it is logged").copy_to(&copies);
    lab::soon(engine.run(&mut client, &mut visit, &mut request)).await;
    visit.settle(&engine.metrics);
    copies.take()
}

fn workspace() -> Workspace {
    Workspace {
        id: Uuid::from_u128(1).into(),
        organisation_id: Uuid::from_u128(9).into(),
        slug: "home".into(),
        status: Status::Active,
        metadata: None,
        is_metrics_only: false,
        hides_costs: false,
        finds_plain_models: false,
        allows_own_credentials: false,
        limits: None,
        priority: 10,
        guardrails: Default::default(),
    }
}

fn key() -> ApiKey {
    ApiKey {
        id: Uuid::from_u128(2).into(),
        organisation_id: Uuid::from_u128(9).into(),
        workspace_id: Some(Uuid::from_u128(1).into()),
        user_id: None,
        kind: KeyKind::WorkspaceService,
        hash: KeyHash::from_key(KEY.as_bytes()),
        scopes: [INFERENCE.to_owned()].into(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    }
}

/// No service has price lists here.
struct Nowhere;

impl PriceFetch for Nowhere {
    fn get<'a>(&'a self, _url: &'a str) -> FetchedPrices<'a> {
        Box::pin(async { Ok(None) })
    }
}
