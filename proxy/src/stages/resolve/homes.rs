//! A stored credential never reaches another origin: generated requests, configs and hosts against the real resolver and
//! the real heads of both lanes. Each case is judged by a table of homes that the test wrote itself.
//!
//! `CREDENTIAL_CASES` says how many; the seed is fixed, and a failure names its case.

use super::*;
use crate::dial::lab::{dialer_with_names, settings};
use crate::dial::{Request, Scheme};
use crate::headers::Aliases;
use crate::inline::InlineConfigs;
use crate::snapshot::Catalog;
use crate::stages::prepare::{Meant, upstream_head};
use crate::stages::relay::towards_provider;
use futures::FutureExt as _;
use http::HeaderMap;
use pingora_core::upstreams::peer::Peer as _;
use pingora_http::RequestHeader;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use shared::api_key::KeyHash;
use shared::model::{self, ApiKey, Credentials, Integration, KeyKind, Workspace};
use shared::seal::{Keyring, MasterKeys};
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
    let sealing = shared::conf::Sealing { gateway_master_key_file: None, gateway_master_key: Some(ring.trim().into()) };
    let sealer = Arc::new(Sealer::new(MasterKeys::load(&sealing).unwrap()));
    let data_key = sealer.new_data_key(ORGANISATION).unwrap();
    let mut catalog = Catalog::default();
    for (n, home) in HOMES.iter().enumerate() {
        let id = Uuid::from_u128(100 + n as u128);
        let secret = Credentials { key: Some(credential(home)), ..Credentials::default() };
        let place = Integration::place_of(ORGANISATION, id);
        catalog.integrations.push(Integration {
            id,
            organisation_id: ORGANISATION,
            workspace_id: Some(WORKSPACE),
            slug: home.slug.into(),
            ai_provider_id: home.ai_provider.into(),
            configurations: home.custom_host.map_or(json!({}), |host| json!({ "custom_host": host })),
            sealed: Some(sealer.seal_with(&data_key, &place, secret.to_secret().expose()).unwrap()),
            secret_mappings: json!([]),
            pricing_adjustments: None,
            allow_all_models: true,
            status: "active".into(),
        });
        if let Some(host) = home.model_host {
            catalog.models.push(IntegrationModel {
                id: Uuid::from_u128(200 + n as u128),
                organisation_id: ORGANISATION,
                integration_id: id,
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
            id: Uuid::from_u128(300 + n as u128),
            organisation_id: ORGANISATION,
            workspace_id: WORKSPACE,
            integration_id: id,
            slug: home.slug.into(),
            status: "active".into(),
            limits: None,
            expires_at: None,
            model_config: None,
            sealed: None,
            concurrency: None,
            created_at: DateTime::UNIX_EPOCH,
        });
    }
    catalog.data_keys.push(data_key);
    let workspace = Workspace {
        id: WORKSPACE,
        organisation_id: ORGANISATION,
        slug: "w".into(),
        status: "active".into(),
        metadata: None,
        is_metrics_only: false,
        limits: None,
        priority: 10,
    };
    let key = ApiKey {
        id: Uuid::from_u128(3),
        organisation_id: ORGANISATION,
        workspace_id: Some(WORKSPACE),
        user_id: None,
        kind: KeyKind::WorkspaceService,
        hash: KeyHash::of(b"service-key"),
        scopes: Arc::from(["completions.write".to_owned()]),
        status: "active".into(),
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    };
    let caller = Principal { key: Arc::new(key.clone()), workspace: Arc::new(workspace.clone()), token: None };
    let dialer = Dialer::new(&settings()).unwrap();
    World {
        snapshot: Snapshot::of(vec![key], vec![workspace]).with_catalog(catalog),
        providers: Providers::load(None, &dialer).unwrap(),
        dialer,
        sealer,
        inline: InlineConfigs::new(shared::config::Limits::default()),
        caller,
    }
}

/// One request as a caller might write it who is after a credential.
struct Case<'r>(&'r mut StdRng);

impl Case<'_> {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    fn home(&mut self) -> &'static Home {
        &HOMES[self.0.random_range(0..HOMES.len())]
    }

    /// Somebody's host, written as it is, otherwise, or almost.
    fn host(&mut self) -> String {
        if self.chance(15) {
            let odd = [
                "https://evil.example",
                "http://evil.example:8080",
                "https://evil.example/api.openai.com",
                "//api.openai.com",
                "https://api.openai.com@evil.example",
                "https://evil.example#api.openai.com",
                "https://evil.example?api.openai.com",
                "https://bücher.example/v1",
                "https://xn--bcher-kva.example.evil.example",
                "https://[::ffff:93.184.216.34]",
                "",
                "https://0x5db8d822",
                "https://api.openai.com%2eevil.example",
                "https://api.openai.com\\@evil.example",
                "javascript:1",
                "https://api.openai.com:443:80",
                "https://api.openai.com,evil.example",
                "https://ａｐｉ.openai.com",
                "https://api。openai。com",
            ];
            return self.one(&odd).to_owned();
        }
        let (scheme, name, port) = if self.chance(70) { self.home().origin } else { self.home().model_origin };
        let mut name = match name.contains(':') {
            true => format!("[{name}]"),
            false => name.to_owned(),
        };
        if self.chance(25) {
            name = name.to_ascii_uppercase();
        }
        if self.chance(20) {
            name = match self.0.random_range(0..6) {
                0 => format!("{name}."),
                1 => format!("{name}.."),
                2 => format!("{name}.evil.example"),
                3 => format!("evil-{name}"),
                4 => format!("{name}%00.evil.example"),
                _ => name.replace('.', "%2e"),
            };
        }
        let user = match self.chance(12) {
            true => self.one(&["user@", "user:pass@", "@", "api.openai.com@", ":@"]),
            false => "",
        };
        let scheme = match self.chance(20) {
            true => self.one(&["http", "https", "HTTPS", "ftp", "wss", "https:"]),
            false if scheme == HTTPS => "https",
            false => "http",
        };
        let port = match self.chance(45) {
            true => self.one(&[":443", ":80", ":8443", ":", ":0443", ":65535", ":65536", ":443 "]).to_owned(),
            false if [80, 443].contains(&port) => String::new(),
            false => format!(":{port}"),
        };
        let path = match self.chance(50) {
            true => self.one(&[
                "/v1",
                "/",
                "/base/../..",
                "//evil.example",
                "/v1?x=1",
                "/v1#x",
                "/\t",
                "/@evil.example",
                "/v1/",
            ]),
            false => "",
        };
        format!("{scheme}://{user}{name}{port}{path}")
    }

    /// A target, or a tree of them.
    fn config(&mut self, depth: usize) -> Value {
        let mut node = json!({});
        if self.chance(40) {
            node["custom_host"] = json!(self.host());
        }
        if depth > 0 && self.chance(60) {
            let mode = self.one(&["single", "fallback", "loadbalance"]);
            node["strategy"] = json!({ "mode": mode });
            let count = self.0.random_range(1..=2);
            node["targets"] = (0..count).map(|_| self.config(depth - 1)).collect();
            return node;
        }
        match self.0.random_range(0..6) {
            0 | 1 => node["provider"] = json!(format!("@{}", self.home().slug)),
            2 => node["virtual_key"] = json!(self.home().slug),
            3 => {
                node["provider"] = json!(self.one(&["openai", "anthropic", "groq"]));
                node["api_key"] = json!("sk-of-the-config");
            }
            4 => node["passthrough"] = json!(true),
            _ => {}
        }
        if self.chance(25) {
            node["override_params"] = json!({ "model": self.model() });
        }
        if self.chance(20) {
            node["forward_headers"] = json!([self.one(&["authorization", "x-api-key", "x-mine"])]);
        }
        node
    }

    fn model(&mut self) -> String {
        let name = self.one(&["gpt-4o", "tuned", "org/model"]);
        if self.chance(50) { format!("@{}/{name}", self.home().slug) } else { name.to_owned() }
    }

    fn headers(&mut self) -> HeaderMap {
        let mut head = HeaderMap::new();
        let mut put = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                head.insert(HeaderName::from_static(name), value);
            }
        };
        put("x-gateway-api-key", "service-key".into());
        if self.chance(60) {
            put("x-gateway-custom-host", self.host());
        }
        match self.0.random_range(0..5) {
            0 | 1 => put("x-gateway-provider", format!("@{}", self.home().slug)),
            2 => put("x-gateway-provider", self.one(&["openai", "anthropic", "groq"]).to_owned()),
            3 => put("x-gateway-virtual-key", self.home().slug.to_owned()),
            _ => {}
        }
        if self.chance(60) {
            put("x-gateway-config", self.config(3).to_string());
        }
        if self.chance(40) {
            put("authorization", "Bearer sk-of-the-caller".into());
        }
        if self.chance(20) {
            put("x-gateway-forward-headers", self.one(&["x-mine", "authorization", "x-mine, x-api-key"]).into());
        }
        head
    }
}

/// Whose credential a head carries.
fn carried(head: &Request) -> Vec<&'static Home> {
    let carries = |home: &&Home| {
        let secret = credential(home);
        head.headers().any(|(_, value)| String::from_utf8_lossy(value.as_bytes()).contains(&secret))
            || head.path_and_query().contains(&secret)
    };
    HOMES.iter().filter(carries).collect()
}

#[derive(Debug, Default)]
struct Tally {
    sent: usize,
    sent_by_custom_host: usize,
    refused: usize,
    dialled: usize,
    blocked: usize,
}

#[test]
fn a_stored_credential_never_reaches_another_origin() {
    let cases = std::env::var("CREDENTIAL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_CASES);
    let world = world();
    let hosts = Hosts::default();
    let aliases = Aliases::default();
    let mut tally = Tally::default();
    for case in 0..cases {
        let mut rng = StdRng::seed_from_u64(case as u64);
        let (head, model) = {
            let mut case = Case(&mut rng);
            (case.headers(), case.model())
        };
        let what = format!("case {case}: {head:?} {model}");
        let headers = GatewayHeaders::of(&head, &aliases).unwrap();
        let Ok(plan) = crate::stages::plan::plan(&headers, &world.caller, &world.snapshot, &world.inline) else {
            tally.refused += 1;
            continue;
        };
        let resolver = Resolver {
            snapshot: &world.snapshot,
            providers: &world.providers,
            hosts: &hosts,
            dialer: &world.dialer,
            sealer: &world.sealer,
            first_byte: Duration::from_secs(1),
            stream_idle: Duration::from_secs(1),
            now: DateTime::UNIX_EPOCH,
        };
        let mut sent = RequestHeader::build("POST", b"/v1/chat/completions?api-version=1", None).unwrap();
        for (name, value) in &head {
            sent.insert_header(name.clone(), value.clone()).unwrap();
        }
        let meant = Meant::of(&headers);
        for leaf in plan.leaves() {
            let asked = leaf.edits.model().and_then(|text| serde_json::from_str::<String>(text).ok());
            let asked = asked.as_deref().unwrap_or(&model);
            let Ok(resolved) = resolver.resolve(leaf, &headers, &world.caller, Some(asked)) else {
                tally.refused += 1;
                continue;
            };
            let target = resolved.target;
            let names = leaf.forward_headers.as_deref();
            let Ok(engine) = upstream_head(&target, "/chat/completions", &sent, &meant, names, &aliases) else {
                tally.refused += 1;
                continue;
            };
            let mut relayed = sent.clone();
            towards_provider(&mut relayed, &target, "/chat/completions", &aliases).unwrap();
            for lane in [engine, Request::from(relayed)] {
                let homes = carried(&lane);
                assert!(homes.len() <= 1, "{what}: two credentials in one head");
                let Some(home) = homes.first() else {
                    assert!(matches!(target.credential, Credential::Given(_)), "{what}: a credential was lost");
                    continue;
                };
                let bare = asked.rsplit_once(&format!("@{}/", home.slug)).map_or(asked, |(_, bare)| bare);
                let expected = if bare == "tuned" { home.model_origin } else { home.origin };
                let origin = &target.origin;
                let name = origin.host_name();
                assert_eq!((origin.scheme(), name, origin.port()), expected, "{what} at {}", home.slug);
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
    let peer = runtime.block_on(dialer.peer(origin, false, Duration::from_secs(1)));
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
