//! A stored credential never reaches another origin, be it of an integration or of a saved config: generated requests,
//! configs and hosts against the real resolver and the real heads of both lanes. Each case is judged by tables of where
//! credentials belong that the test wrote itself.
//!
//! `CREDENTIAL_CASES` says how many; the seed is fixed, and a failure names its case.

mod case;
mod saved;

use super::*;
use crate::engine::prepare::{ProviderHeaders, upstream_head};
use crate::net::dial::lab::{dialer_with_names, settings};
use crate::net::dial::{Scheme, UpstreamRequest};
use crate::relay::head_edits::towards_provider;
use crate::request::headers::Aliases;
use crate::routing::inline_configs::InlineConfigs;
use crate::snapshot::Catalog;
use case::Case;
use futures::FutureExt as _;
use pingora_core::upstreams::peer::Peer as _;
use pingora_http::RequestHeader;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use saved::SAVED;
use serde_json::json;
use shared::identity::api_key::KeyHash;
use shared::model::{self, AccessStatus, ApiKey, Credentials, Integration, KeyKind, Status, Workspace};
use shared::secrets::seal::{Keyring, MasterKeys};
use std::net::IpAddr;
use uuid::Uuid;

const USUAL_CASES: usize = 10_000;
const ORGANISATION: Uuid = Uuid::from_u128(1);
const WORKSPACE: Uuid = Uuid::from_u128(2);

/// An account, and where its credential belongs.
struct Home {
    slug: &'static str,
    ai_provider: &'static str,
    custom_host: Option<&'static str>,
    /// A model with a host of its own.
    model_host: Option<&'static str>,
    origin: (Scheme, &'static str, u16),
    model_origin: (Scheme, &'static str, u16),
}

const HTTPS: Scheme = Scheme::Https;
const HTTP: Scheme = Scheme::Http;

#[rustfmt::skip]
static HOMES: &[Home] = &[
    Home { slug: "openai", ai_provider: "openai", custom_host: None, model_host: None,
        origin: (HTTPS, "api.openai.com", 443), model_origin: (HTTPS, "api.openai.com", 443) },
    Home { slug: "claude", ai_provider: "anthropic", custom_host: None, model_host: Some("https://claude.example.net/v1"),
        origin: (HTTPS, "api.anthropic.com", 443), model_origin: (HTTPS, "claude.example.net", 443) },
    Home { slug: "house", ai_provider: "openai", custom_host: Some("https://llm.example.com/v1"), model_host: Some("https://tuned.example.com:8443"),
        origin: (HTTPS, "llm.example.com", 443), model_origin: (HTTPS, "tuned.example.com", 8443) },
    Home { slug: "port", ai_provider: "groq", custom_host: Some("https://llm.example.com:8443/base"), model_host: None,
        origin: (HTTPS, "llm.example.com", 8443), model_origin: (HTTPS, "llm.example.com", 8443) },
    Home { slug: "plain", ai_provider: "openai", custom_host: Some("http://gpu.lab.example/v1"), model_host: None,
        origin: (HTTP, "gpu.lab.example", 80), model_origin: (HTTP, "gpu.lab.example", 80) },
    Home { slug: "idn", ai_provider: "openai", custom_host: Some("https://xn--bcher-kva.example/v1"), model_host: None,
        origin: (HTTPS, "xn--bcher-kva.example", 443), model_origin: (HTTPS, "xn--bcher-kva.example", 443) },
    Home { slug: "six", ai_provider: "openai", custom_host: Some("https://[2606:4700::1111]/v1"), model_host: None,
        origin: (HTTPS, "2606:4700::1111", 443), model_origin: (HTTPS, "2606:4700::1111", 443) },
];

fn credential(home: &Home) -> String {
    format!("sk-stored-of-{}-end", home.slug)
}

/// What a name may resolve to.
static ADDRESSES: &[&str] = &[
    "93.184.216.34",
    "2606:4700::1111",
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "::1",
    "::ffff:127.0.0.1",
    "fd00::1",
    "64:ff9b::a00:1",
    "192.168.1.1",
    "0.0.0.0",
    "100.64.0.1",
];

struct World {
    snapshot: Snapshot,
    providers: Providers,
    dialer: Dialer,
    sealer: Arc<Sealer>,
    inline: InlineConfigs,
    caller: Principal,
}

fn world() -> World {
    let ring = Keyring::generate("test").unwrap();
    let sealing =
        shared::settings::Sealing { gateway_master_key_file: None, gateway_master_key: Some(ring.trim().into()) };
    let sealer = Arc::new(Sealer::new(MasterKeys::load(&sealing).unwrap()));
    let data_key = sealer.new_data_key(ORGANISATION).unwrap();
    let mut catalog = Catalog::default();
    for (n, home) in HOMES.iter().enumerate() {
        let id = Uuid::from_u128(100 + n as u128);
        let secret = Credentials { key: Some(credential(home)), ..Credentials::default() };
        let place = Integration::place_of(ORGANISATION, id);
        catalog.integrations.push(Integration {
            id: id.into(),
            organisation_id: ORGANISATION.into(),
            workspace_id: Some(WORKSPACE.into()),
            slug: home.slug.into(),
            ai_provider_id: home.ai_provider.into(),
            configurations: home.custom_host.map_or(json!({}), |host| json!({ "custom_host": host })),
            sealed: Some(sealer.seal_with(&data_key, &place, secret.to_secret().expose()).unwrap()),
            secret_mappings: json!([]),
            pricing_adjustments: None,
            allow_all_models: true,
            status: Status::Active,
        });
        if let Some(host) = home.model_host {
            catalog.models.push(IntegrationModel {
                id: Uuid::from_u128(200 + n as u128),
                organisation_id: ORGANISATION.into(),
                integration_id: id.into(),
                slug: "tuned".into(),
                enabled: true,
                is_custom: true,
                is_finetune: false,
                base_model_slug: None,
                pricing_config: None,
                configurations: Some(json!({ "custom_host": host })),
                sealed: None,
            });
        }
        catalog.providers.push(model::Provider {
            id: Uuid::from_u128(300 + n as u128).into(),
            organisation_id: ORGANISATION.into(),
            workspace_id: WORKSPACE.into(),
            integration_id: id.into(),
            slug: home.slug.into(),
            status: AccessStatus::Active,
            limits: None,
            expires_at: None,
            // What a handle says of a place counts nowhere.
            model_config: Some(json!({
                "custom_host": "https://evil.example", "azure_resource_name": "evil", "azure_region": "evil",
                "aws_region": "evil", "azure_foundry_url": "https://evil.example", "openai_project": "theirs",
            })),
            sealed: None,
            concurrency: None,
            created_at: DateTime::UNIX_EPOCH,
        });
    }
    catalog.configs = saved::rows(&sealer, &data_key);
    catalog.data_keys.push(data_key);
    let workspace = Workspace {
        id: WORKSPACE.into(),
        organisation_id: ORGANISATION.into(),
        slug: "w".into(),
        status: Status::Active,
        metadata: None,
        is_metrics_only: false,
        hides_costs: false,
        finds_plain_models: false,
        allows_own_credentials: false,
        limits: None,
        priority: 10,
        guardrails: Default::default(),
    };
    let key = ApiKey {
        id: Uuid::from_u128(3).into(),
        organisation_id: ORGANISATION.into(),
        workspace_id: Some(WORKSPACE.into()),
        user_id: None,
        kind: KeyKind::WorkspaceService,
        hash: KeyHash::from_key(b"service-key"),
        scopes: Arc::from(["completions.write".to_owned()]),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    };
    let caller = Principal { key: Arc::new(key.clone()), workspace: Arc::new(workspace.clone()), token: None };
    let dialer = Dialer::new(&settings()).unwrap();
    World {
        snapshot: Snapshot::with_rows(vec![key], vec![workspace]).with_catalog(catalog),
        providers: Providers::load(None, &dialer).unwrap(),
        dialer,
        sealer,
        inline: InlineConfigs::new(shared::settings::config_limits::ConfigLimits::default()),
        caller,
    }
}

/// A credential that a head carries, and where it belongs; None for one that belongs nowhere.
struct Carried {
    of: &'static str,
    origin: Option<(Scheme, &'static str, u16)>,
}

/// The credentials that a head carries when `asked` is the model.
fn carried(head: &UpstreamRequest, asked: &str) -> Vec<Carried> {
    let carries = |secret: &str| {
        head.headers().any(|(_, value)| String::from_utf8_lossy(value.as_bytes()).contains(secret))
            || head.path_and_query().contains(secret)
    };
    let homes = HOMES.iter().filter(|home| carries(&credential(home))).map(|home| {
        let bare = asked.rsplit_once(&format!("@{}/", home.slug)).map_or(asked, |(_, bare)| bare);
        let origin = if bare == "tuned" { home.model_origin } else { home.origin };
        Carried { of: home.slug, origin: Some(origin) }
    });
    let saved = SAVED.iter().filter(|one| carries(one.credential));
    homes.chain(saved.map(|one| Carried { of: one.credential, origin: one.origin })).collect()
}

#[derive(Debug, Default)]
struct Tally {
    sent: usize,
    sent_by_custom_host: usize,
    sent_from_saved_configs: usize,
    refused_saved_configs: usize,
    refused: usize,
    dialled: usize,
    blocked: usize,
}

#[test]
fn a_stored_credential_never_reaches_another_origin() {
    let cases = std::env::var("CREDENTIAL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_CASES);
    let world = world();
    let hosts = Hosts::default();
    let profiles = InferenceProfiles::default();
    let aliases = Aliases::default();
    let mut tally = Tally::default();
    for case in 0..cases {
        let mut rng = StdRng::seed_from_u64(case as u64);
        let (head, model) = {
            let mut case = Case(&mut rng);
            (case.headers(), case.model())
        };
        let what = format!("case {case}: {head:?} {model}");
        let headers = GatewayHeaders::from_headers(&head, &aliases).unwrap();
        let Ok(plan) = crate::catalog::choose_plan::plan(&headers, &world.caller, &world.snapshot, &world.inline)
        else {
            tally.refused += 1;
            continue;
        };
        let resolver = TargetResolver {
            snapshot: &world.snapshot,
            providers: &world.providers,
            hosts: &hosts,
            dialer: &world.dialer,
            sealer: &world.sealer,
            profiles: &profiles,
            first_byte: Duration::from_secs(1),
            stream_idle: Duration::from_secs(1),
            now: DateTime::UNIX_EPOCH,
        };
        let mut sent = RequestHeader::build("POST", b"/v1/chat/completions?api-version=1", None).unwrap();
        for (name, value) in &head {
            sent.insert_header(name.clone(), value.clone()).unwrap();
        }
        let meant = ProviderHeaders::from_headers(&headers);
        for leaf in plan.leaves() {
            let asked = leaf.edits.model().and_then(|text| serde_json::from_str::<String>(text).ok());
            let asked = asked.as_deref().unwrap_or(&model);
            let Ok(resolved) = resolver.resolve(leaf, &headers, &world.caller, Some(asked)) else {
                tally.refused += 1;
                tally.refused_saved_configs += usize::from(leaf.placement.has_saved_credential());
                continue;
            };
            let target = resolved.target;
            let names = leaf.forward_headers.as_deref();
            let Ok((engine, _)) = upstream_head(&target, "/chat/completions", &sent, &meant, names, &aliases) else {
                tally.refused += 1;
                continue;
            };
            let mut relayed = sent.clone();
            towards_provider(&mut relayed, &target, "/chat/completions", &aliases).unwrap();
            for lane in [engine, UpstreamRequest::from(relayed)] {
                let found = carried(&lane, asked);
                assert!(found.len() <= 1, "{what}: two credentials in one head");
                let Some(one) = found.first() else {
                    assert!(matches!(target.credential, Credential::Given(_)), "{what}: a credential was lost");
                    continue;
                };
                let origin = &target.origin;
                let reached = (origin.scheme(), origin.host_name(), origin.port());
                assert_eq!(Some(reached), one.origin, "{what} of {}", one.of);
                tally.sent_from_saved_configs += usize::from(SAVED.iter().any(|saved| saved.credential == one.of));
                tally.sent += 1;
                tally.sent_by_custom_host += usize::from(headers.custom_host.is_some() || leaf.custom_host.is_some());
            }
            if case % 50 == 0 {
                dial(&target.origin, &mut rng, &mut tally, &what);
            }
        }
    }
    // The test would also hold if nothing were ever sent.
    let least = cases / 20;
    assert!(tally.sent > least && tally.sent_by_custom_host > least / 10 && tally.refused > least, "{tally:?}");
    let saved = (tally.sent_from_saved_configs, tally.refused_saved_configs);
    assert!(saved.0 > least && saved.1 > least, "{tally:?}");
    assert!(tally.dialled > 0 && tally.blocked > 0, "{tally:?}");
}

/// Whatever names resolve to, no socket is opened to what is not public unless the operator said so.
fn dial(origin: &Origin, rng: &mut StdRng, tally: &mut Tally, what: &str) {
    let count = rng.random_range(1..=3);
    let answer: Vec<IpAddr> =
        (0..count).map(|_| ADDRESSES[rng.random_range(0..ADDRESSES.len())].parse().unwrap()).collect();
    let answered = answer.clone();
    let dialer = dialer_with_names(Box::new(move |_| std::future::ready(Ok(answered.clone())).boxed()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let peer = runtime.block_on(dialer.peer(origin, &[], false, Duration::from_secs(1)));
    let public = [ADDRESSES[0], ADDRESSES[1]].map(|text| text.parse::<IpAddr>().unwrap());
    match peer {
        Ok(peer) => {
            tally.dialled += 1;
            let address = peer.address().as_inet().unwrap().ip();
            assert_eq!(peer.sni(), origin.host_name(), "{what}");
            assert!(origin.is_trusted() || public.contains(&address), "{what}: {answer:?}");
        }
        Err(_) => tally.blocked += 1,
    }
}
