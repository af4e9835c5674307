//! Calls of checks to services outside, through the dialer and so under its rules: judged names and addresses, verified TLS, no
//! redirects, pooled connections. Time, length and number are bounded, and the places of all calls are shared out between
//! tenants, so that a service that hangs or floods costs its own workspace a place and nobody else anything.

use super::address_probe::is_there;
use super::image_fetch::images;
use super::introspection_cache::IntrospectionCache;
use crate::guardrails::{CallPlaces, RemoteAsker, TenantPlaces};
use crate::identity::tokens::fetch;
use crate::net::dial::{Class, Dialer, Upstream, UpstreamError, UpstreamRequest, internal_call};
use crate::request::receive::{BodyMemory, OwnedShare};
use crate::runtime::tenant_share::Tenant;
use crate::snapshot::Snapshot;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use http::{HeaderValue, Method, header};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared::guardrails::remote::{Answers, MAX_ANSWER, MAX_WAIT, Question, RemoteAnswer, RemoteCall, RemoteFailure};
use shared::identity::jwt::{KeyRing, KeySource, Rejection};
use shared::model::Plugin;
use shared::model::id::{OrganisationId, WorkspaceId};
use shared::secrets::seal::Sealer;
use shared::telemetry::LogLimit;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Addresses of key sets that are kept of an organisation, and of how many. Configs that come with requests may name any.
const MAX_KEY_SETS: usize = 64;
const MAX_WITH_KEYS: usize = 1024;

pub struct RemoteCalls {
    dialer: Arc<Dialer>,
    snapshot: Arc<Snapshot>,
    sealer: Arc<Sealer>,
    /// What images that are fetched count towards.
    memory: Arc<BodyMemory>,
    places: CallPlaces,
    keys: Mutex<HashMap<OrganisationId, CachedKeySets>>,
    answers: Arc<IntrospectionCache>,
}

struct CachedKeySets {
    ring: Arc<KeyRing>,
    known: HashSet<Uuid>,
    used: Instant,
}

impl RemoteCalls {
    pub fn new(dialer: Arc<Dialer>, snapshot: Arc<Snapshot>, sealer: Arc<Sealer>, memory: Arc<BodyMemory>) -> Self {
        let (places, keys) = (CallPlaces::default(), Mutex::default());
        Self { dialer, snapshot, sealer, memory, places, keys, answers: Arc::default() }
    }

    /// Keys are an organisation's own: what one fetched another does not see.
    fn key_ring(&self, organisation: OrganisationId, url: &str) -> (Arc<KeyRing>, Uuid) {
        let mut hash = Sha256::new();
        hash.update(organisation.uuid().as_bytes());
        hash.update(url.as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finalize()[..16]);
        let id = Uuid::from_bytes(id);
        let mut keys = self.keys.lock();
        if keys.len() >= MAX_WITH_KEYS && !keys.contains_key(&organisation) {
            let oldest = keys.iter().min_by_key(|(_, cached)| cached.used).map(|(oldest, _)| *oldest);
            if let Some(oldest) = oldest {
                keys.remove(&oldest);
            }
        }
        let fresh = || CachedKeySets { ring: ring(&self.dialer), known: HashSet::new(), used: Instant::now() };
        let cached = keys.entry(organisation).or_insert_with(fresh);
        if cached.known.len() >= MAX_KEY_SETS && !cached.known.contains(&id) {
            *cached = fresh();
        }
        cached.known.insert(id);
        cached.used = Instant::now();
        (cached.ring.clone(), id)
    }
}

fn ring(dialer: &Arc<Dialer>) -> Arc<KeyRing> {
    Arc::new(KeyRing::new(fetch::through(dialer.clone())))
}

impl RemoteAsker for RemoteCalls {
    fn credentials(
        &self,
        organisation: OrganisationId,
        plugin: &str,
    ) -> Result<Option<Map<String, Value>>, RemoteFailure> {
        let Some(row) = self.snapshot.plugin(organisation, plugin) else { return Ok(None) };
        let Some(sealed) = &row.sealed else { return Ok(None) };
        let unopened = |error: &dyn std::fmt::Display| {
            static UNOPENED: LogLimit = LogLimit::new();
            if let Some(skipped) = UNOPENED.pass() {
                tracing::error!(plugin, %error, skipped, "the credentials of a vendor of checks cannot be opened");
            }
            RemoteFailure::Sealed
        };
        let id = sealed.data_key_id().map_err(|error| unopened(&error))?;
        let key = self.snapshot.data_key(&id).ok_or_else(|| unopened(&"its data key is not known"))?;
        let opened = self.sealer.open_with(&key, &row.place(), sealed).map_err(|error| unopened(&error))?;
        Plugin::credentials(&opened).map(Some).ok_or(RemoteFailure::Sealed)
    }

    fn ask(
        &self,
        organisation: OrganisationId,
        workspace: WorkspaceId,
        question: Question,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<Answers, RemoteFailure>> {
        let dialer = self.dialer.clone();
        let tenant = Tenant { organisation: organisation.uuid(), workspace: workspace.uuid() };
        let places = self.places.of(tenant);
        match question {
            Question::Calls(calls) => async move {
                let calls = calls.into_iter().map(|call| one(&dialer, &places, call, deadline));
                Ok(Answers::Calls(try_join_all(calls).await?))
            }
            .boxed(),
            Question::CachedCall { call, cached_for } => {
                let (answers, key) = (self.answers.clone(), IntrospectionCache::key(&call));
                async move {
                    let asked = Instant::now();
                    if let Some(known) = answers.find(organisation, &key, asked) {
                        return Ok(Answers::Calls(vec![known]));
                    }
                    let answer = one(&dialer, &places, call, deadline).await?;
                    answers.keep(organisation, key, &answer, asked + cached_for, Instant::now());
                    Ok(Answers::Calls(vec![answer]))
                }
                .boxed()
            }
            Question::KeySet { url, kid, cached_for } => {
                let (ring, id) = self.key_ring(organisation, &url);
                async move {
                    // A fetch is a call as any other.
                    let _place = match ring.known(id).is_some_and(|known| known.contains(&kid)) {
                        true => None,
                        false => Some(places.turn(deadline).await?),
                    };
                    let rejection =
                        match ring.keys_within(id, &KeySource::Url(url), &kid, Instant::now(), cached_for).await {
                            Ok(current) => return Ok(Answers::KeySet(current.keys)),
                            Err(rejection) => rejection,
                        };
                    // Those that were there before refuse a token whose key is unknown; no failure lets it pass.
                    if let Some(known) = ring.known(id) {
                        return Ok(Answers::KeySet(known));
                    }
                    Err(match rejection {
                        Rejection::KeySetUnreachable(why) => {
                            RemoteFailure::Unreachable(format!("the key set cannot be fetched: {why}"))
                        }
                        _ => RemoteFailure::Unreachable("the key set cannot be used".into()),
                    })
                }
                .boxed()
            }
            Question::Addresses { urls, only_names } => async move {
                let probes = urls.into_iter().map(|url| probe(&dialer, &places, url, only_names, deadline));
                Ok(Answers::Addresses(try_join_all(probes).await?))
            }
            .boxed(),
            Question::Images { urls, longest } => {
                let share = OwnedShare::none(self.memory.clone(), tenant);
                async move {
                    let _place = places.turn(deadline).await?;
                    Ok(Answers::Images(images(&dialer, urls, longest, share, deadline).await))
                }
                .boxed()
            }
            // Not this one's to ask.
            Question::Model(_) => {
                async { Err(RemoteFailure::Unreachable("no model can be asked here".into())) }.boxed()
            }
        }
    }
}

/// One address in its turn.
async fn probe(
    dialer: &Dialer,
    places: &TenantPlaces,
    url: String,
    only_name: bool,
    deadline: Instant,
) -> Result<bool, RemoteFailure> {
    let _place = places.turn(deadline).await?;
    Ok(is_there(dialer, &url, only_name, deadline).await)
}

/// One call in its turn.
async fn one(
    dialer: &Dialer,
    places: &TenantPlaces,
    call: RemoteCall,
    deadline: Instant,
) -> Result<RemoteAnswer, RemoteFailure> {
    let _place = places.turn(deadline).await?;
    match tokio::time::timeout_at(deadline.into(), exchange(dialer, call)).await {
        Ok(answer) => answer,
        Err(_) => Err(RemoteFailure::TimedOut),
    }
}

async fn exchange(dialer: &Dialer, call: RemoteCall) -> Result<RemoteAnswer, RemoteFailure> {
    let (origin, path) = dialer.custom_url(&call.url).map_err(|rule| RemoteFailure::Forbidden(rule.to_string()))?;
    let body = Bytes::from(call.body);
    for fresh in [false, true] {
        let connected = dialer.connect(&origin, fresh).await;
        let mut upstream = connected.map_err(|error| match error.class() {
            Class::Blocked => RemoteFailure::Forbidden("it resolves to an address that is not public".into()),
            class => RemoteFailure::Unreachable(internal_call::spoken(class)),
        })?;
        // The deadline of the check comes first.
        upstream.set_timeouts(MAX_WAIT, MAX_WAIT);
        let Some(mut request) = UpstreamRequest::new(Method::POST, path.as_str().to_owned()) else {
            return Err(RemoteFailure::Forbidden("its path is not valid".into()));
        };
        for (name, value) in &call.headers {
            request.put(name.clone(), value.clone());
        }
        request.put(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match answered(&mut upstream, request, body.clone()).await {
            Ok(answer) => {
                upstream.release();
                return Ok(answer);
            }
            // A held connection had died; a check may be asked twice.
            Err(NotAnswered::Broken(error)) if !fresh && error.is_unread() => {}
            Err(NotAnswered::Broken(error)) => {
                return Err(RemoteFailure::Unreachable(internal_call::spoken(error.class())));
            }
            Err(NotAnswered::Failed(failure)) => return Err(failure),
        }
    }
    Err(RemoteFailure::Unreachable("the connection failed (reset)".into()))
}

enum NotAnswered {
    Broken(UpstreamError),
    Failed(RemoteFailure),
}

impl From<UpstreamError> for NotAnswered {
    fn from(error: UpstreamError) -> Self {
        Self::Broken(error)
    }
}

async fn answered(upstream: &mut Upstream, request: UpstreamRequest, body: Bytes) -> Result<RemoteAnswer, NotAnswered> {
    upstream.send(request, body).await?;
    upstream.read_head().await?;
    // What it keeps for that is no longer than the longest answer, for which room was found.
    if upstream.inflate(None).is_err() {
        let why = "the answer is compressed although it was asked not to be";
        return Err(NotAnswered::Failed(RemoteFailure::Unreachable(why.into())));
    }
    let status = upstream.head().status.as_u16();
    let mut body = Vec::new();
    while let Some(piece) = upstream.read_body().await? {
        if body.len() + piece.len() > MAX_ANSWER {
            return Err(NotAnswered::Failed(RemoteFailure::TooLong));
        }
        body.extend_from_slice(&piece);
    }
    Ok(RemoteAnswer::new(status, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::dial::lab::{self, End, Server};
    use crate::request::receive::body_memory;
    use crate::runtime::settings::Settings;
    use clap::Parser as _;
    use serde_json::json;
    use shared::secrets::seal::MasterKeys;
    use std::time::Duration;

    fn calls(all: usize) -> RemoteCalls {
        let settings = Settings::parse_from(["test", "--database-url", "postgres://nobody@127.0.0.1:1/none"]);
        let sealer = Arc::new(Sealer::new(MasterKeys::load(&settings.sealing).unwrap()));
        let snapshot = Arc::new(Snapshot::with_rows(Vec::new(), Vec::new()));
        let calls = RemoteCalls::new(Arc::new(lab::dialer()), snapshot, sealer, body_memory(1 << 20));
        RemoteCalls { places: CallPlaces::new(all), ..calls }
    }

    /// Every question asks a service, and so needs a place.
    fn questions(server: &Server) -> [Question; 5] {
        let url = format!("http://{}/judge", server.address);
        let (call, cached_for) = (RemoteCall::post(url.clone(), &json!({})), Duration::from_secs(60));
        [
            simple(server),
            Question::CachedCall { call, cached_for },
            Question::Images { urls: vec![url.clone()], longest: 10 },
            Question::Addresses { urls: vec![url.clone()], only_names: false },
            Question::KeySet { url, kid: "a".into(), cached_for },
        ]
    }

    fn simple(server: &Server) -> Question {
        Question::Calls(vec![RemoteCall::post(format!("http://{}/judge", server.address), &json!({}))])
    }

    #[tokio::test]
    async fn a_silent_service_takes_no_places_of_another_organisation() {
        let silent = Server::start(|stream, _| async move { End::new(stream).gone().await }).await;
        let quick = Server::counting().await;
        let calls = calls(4);
        let ask = |organisation: u128, workspace: u128, question, wait: u64| {
            let (organisation, workspace) = (Uuid::from_u128(organisation), Uuid::from_u128(workspace));
            let deadline = Instant::now() + Duration::from_secs(wait);
            calls.ask(organisation.into(), workspace.into(), question, deadline)
        };
        let waiting: Vec<_> = (0..2).map(|number| tokio::spawn(ask(1, number, simple(&silent), 60))).collect();
        while silent.accepted() < 2 {
            tokio::task::yield_now().await;
        }
        for question in questions(&silent) {
            let refused = ask(1, 9, question, 0).await;
            assert_eq!(refused.err(), Some(RemoteFailure::Busy), "its organisation has half of them");
        }
        let answered = ask(2, 1, simple(&quick), 60).await;
        assert!(answered.is_ok(), "{:?}", answered.err());
        assert_eq!((silent.accepted(), quick.accepted()), (2, 1));
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
