//! Look up: whether an answer to what a target would be sent is kept, and what becomes of the target's own if none is. The
//! key is made of the body after hooks, edits and translation; what is kept is in the client's words.
//!
//! A hit asks no provider, takes none of its limits and says nothing of its health. Hooks of the request have run, and what
//! they said is told with it; those of the answer ran when it was kept, and answers that passed other hooks are kept apart.

mod asked;
mod paid_search;

use super::answer::{Ended, GuardedCall, with_heartbeats};
use super::call::{HeldAnswer, refused};
use super::translate::{TranslatedCall, client_codec, memory_to_translate};
use super::{Engine, EngineRequest};
use crate::cache::key::{BodyDigest, KeyInputs, KeyText, MAX_BODY, Partition};
use crate::cache::semantic::{AskedRoute, PaidCall, Question, Searched};
use crate::cache::store::now_ms;
use crate::cache::{
    Boarding, CacheFacts, CacheHeaders, CacheKey, Caching, Entry, Found, Keeper, Learnt, Semantic, StoreTerms, Tags,
    eligible,
};
use crate::catalog::target::{Credential, Target};
use crate::context::{CacheUse, Visit};
use crate::identity::agents::without_session;
use crate::journal::CacheStatus;
use crate::net::downstream::Downstream;
use crate::request::body::Fields;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use crate::runtime::heavy::{SMALL, heavy};
use crate::runtime::timeout::with_deadline;
use bytes::Bytes;
use http::HeaderValue;
use pingora_http::RequestHeader;
use serde_json::Value;
use shared::config::CacheMode;
use shared::model::id::OrganisationId;
use shared::providers::Family;
use std::sync::Arc;
use std::time::Instant;

/// What a target would be sent, and how the client wants its answer.
pub(super) struct LookUp<'l> {
    pub request: &'l EngineRequest,
    pub leaf: &'l Leaf,
    pub target: &'l Target,
    /// As the target is asked for it.
    pub model: Option<&'l str>,
    pub translated: Option<&'l TranslatedCall>,
    /// The client's own body, as hooks and the config leave it.
    pub edited: &'l Bytes,
    /// The same as the target is sent it.
    pub sent: &'l Bytes,
    pub fields: &'l Fields<'l>,
    pub guarded: Option<&'l Arc<GuardedCall>>,
    pub caching: Caching,
}

/// Longer requests are looked up exactly only: the words of one that is alike fill no more.
const MAX_QUESTION_LENGTH: usize = 1 << 20;

/// What a key is made of beside the words of the config.
#[derive(Clone, Copy)]
struct KeyedBodies {
    body: BodyDigest,
    /// The client's own, where its answer repeats it.
    asked: Option<BodyDigest>,
    /// It need not be remembered: it came before.
    is_known: bool,
}

impl KeyedBodies {
    /// None where one of them has no digest.
    fn of(body: &[u8], asked: Option<&Bytes>) -> Option<Self> {
        let body = BodyDigest::of(body)?;
        let asked = match asked {
            Some(asked) => Some(BodyDigest::of(asked)?),
            None => None,
        };
        Some(Self { body, asked, is_known: false })
    }
}

pub(super) enum LookedUp {
    Hit(Box<HeldAnswer>),
    /// With what keeps the target's answer, if it can be kept.
    Miss(Option<Box<Keeper>>),
}

/// What the headers say of the cache; none where they say nothing.
pub(super) fn cache_headers(headers: &GatewayHeaders<'_>) -> Result<Option<Box<CacheHeaders>>, Refusal> {
    if headers.cache.is_none() && headers.cache_force_refresh.is_none() && headers.cache_namespace.is_none() {
        return Ok(None);
    }
    let mut cache_headers = CacheHeaders::default();
    if let Some(value) = headers.cache {
        const NAME: &str = "x-gateway-cache";
        let cache = eligible::parse_cache(text(NAME, value)?);
        cache_headers.cache = Some(cache.map_err(|why| Refusal::invalid_header(NAME, why))?);
    }
    if let Some(value) = headers.cache_force_refresh {
        cache_headers.is_refresh = !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"false");
    }
    if let Some(value) = headers.cache_namespace {
        const NAME: &str = "x-gateway-cache-namespace";
        let namespace = eligible::parse_namespace(text(NAME, value)?);
        cache_headers.namespace = Some(namespace.map_err(|why| Refusal::invalid_header(NAME, why))?);
    }
    Ok(Some(Box::new(cache_headers)))
}

/// Calls of others that one waits for: the first, and one more if that fails. Then each asks for itself, or many would wait for
/// each other at a provider that always fails.
const MAX_FLIGHTS: usize = 2;

impl Engine {
    /// None for requests without a cache, which pay no more than this look.
    pub(super) fn caching(
        &self,
        visit: &Visit,
        request: &EngineRequest,
        leaf: &Leaf,
        fields: &Fields<'_>,
        guarded: Option<&Arc<GuardedCall>>,
    ) -> Option<Caching> {
        if request.is_own || (leaf.cache.is_none() && request.cache.is_none()) {
            return None;
        }
        let can_stream = || client_codec(request.endpoint).is_some();
        // Values that hooks took out of the request belong to this one alone, and its answer has them again.
        let has_placeholders = guarded.is_some_and(|guarded| !guarded.input.placeholders.is_empty());
        let facts = CacheFacts {
            is_untracked: request.is_untracked,
            is_clients_config: visit.routing.config.is_none(),
            organisation_age: self.snapshot.cache_max_age(&request.caller.workspace.organisation_id),
            is_metrics_only: self.recorder.is_metrics_only(&request.caller),
            is_repeatable: !request.endpoint.takes_forms()
                && !has_placeholders
                && (!fields.is_true("stream") || can_stream()),
        };
        eligible::caching(leaf.cache, request.cache.as_deref(), facts)
    }

    pub(super) async fn look_up(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: LookUp<'_>,
    ) -> Result<LookedUp, Ended> {
        let began = Instant::now();
        let Some(bodies) = self.digests(client, visit, &asked).await? else { return Ok(LookedUp::Miss(None)) };
        let Some(key) = self.cache_key(client.head(), &asked, bodies).map_err(refused)? else {
            return Ok(LookedUp::Miss(None));
        };
        let organisation = asked.request.caller.workspace.organisation_id;
        let (mut found, mut flight) = (None, None);
        if !asked.caching.is_refresh {
            found = self.find_stored(organisation, &key).await;
            if found.is_some() && !bodies.is_known {
                self.cache.known_bodies().remember(asked.keyed_body(), bodies.body);
            }
            if found.is_none() && asked.caching.coalesces && !asked.is_stream() {
                // No longer than for a provider: whoever is asking may have a client that takes its time.
                let patience = began + asked.target.timeout;
                let until = visit.routing.deadline.map_or(patience, |deadline| deadline.min(patience));
                for _ in 0..MAX_FLIGHTS {
                    match self.cache.board(key) {
                        Boarding::First(own) => {
                            // Somebody may have come back with it since it was looked for.
                            found = self.find_stored(organisation, &key).await;
                            flight = Some(own).filter(|_| found.is_none());
                            break;
                        }
                        Boarding::Waiting(follower) => {
                            let landing = Box::pin(with_deadline(until, Box::pin(follower.landing())));
                            match with_heartbeats(client, visit, landing).await? {
                                // A purge during the other's call is about its answer, and this request came later.
                                Ok(Some(entry)) => {
                                    let workspace = key.tenant.workspace;
                                    found = Some(entry).filter(|entry| self.cache.counts(workspace, entry));
                                    break;
                                }
                                // It came to nothing: one of those who waited asks, and the others wait for that one.
                                Ok(None) => {}
                                Err(_) => break,
                            }
                        }
                    }
                }
            }
        }
        let searched = match found {
            None => self.search(client, visit, &asked, bodies.asked).await?,
            Some(_) => None,
        };
        let mut is_similar = false;
        if let Some((semantic, searched)) = searched.as_ref().filter(|_| !asked.caching.is_refresh) {
            found = self.similar(organisation, semantic, searched).await;
            is_similar = found.is_some();
        }
        // One that was found by other words is this request's alone: those who wait for an equal one may be stricter. They are
        // freed when the flight is dropped.
        let hit = found.and_then(|entry| asked.replayed(visit, &entry));
        let status = match (&hit, asked.caching.is_refresh) {
            (Some(_), _) if is_similar => CacheStatus::SemanticHit,
            (Some(_), _) => CacheStatus::Hit,
            (None, true) => CacheStatus::Refresh,
            (None, false) if searched.is_some() => CacheStatus::SemanticMiss,
            (None, false) => CacheStatus::Miss,
        };
        let mode = Some(eligible::mode_name(asked.caching.mode));
        visit.routing.cache = CacheUse { status, mode, took: began.elapsed() };
        self.metrics.looked_up(status);
        if let Some(hit) = hit {
            return Ok(LookedUp::Hit(Box::new(hit)));
        }
        let namespace = asked.namespace();
        let config = visit.routing.config.as_ref().map(|config| config.row.id.uuid());
        let terms = StoreTerms {
            organisation,
            key,
            tags: Tags::new(namespace, config, &asked.request.metadata),
            max_age: asked.caching.max_age,
            form: asked.form(visit.id()),
            asked: asked.edited.clone(),
        };
        let is_refresh = asked.caching.is_refresh;
        let learnt = searched.map(|(semantic, searched)| Learnt { semantic, searched, is_refresh });
        let keeper = Keeper::new(self.cache.clone(), terms, flight).learning(learnt).counted_in(self.share(&asked));
        Ok(LookedUp::Miss(Some(Box::new(keeper))))
    }

    async fn find_stored(&self, organisation: OrganisationId, key: &CacheKey) -> Option<Arc<Entry>> {
        match self.cache.find(organisation, key).await {
            Found::Entry(entry) => Some(entry),
            Found::Absent | Found::Away => None,
        }
    }

    /// Looks for questions in other words. None where only an equal request may be answered.
    async fn search(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &LookUp<'_>,
        repeated: Option<BodyDigest>,
    ) -> Result<Option<(Arc<Semantic>, Searched)>, Ended> {
        let semantic = self.cache.semantic().filter(|_| asked.caching.mode == CacheMode::Semantic);
        let Some(semantic) = semantic else { return Ok(None) };
        let question = Box::pin(self.question(client, visit, asked, repeated)).await?;
        let Some(question) = question else { return Ok(None) };
        // Where a budget stands against it, only an equal request is answered.
        let admitting = Box::pin(self.admit_search(visit, asked.request, semantic, &question));
        let Some(promise) = admitting.await else { return Ok(None) };
        let paid = PaidCall::default();
        let searching = Box::pin(semantic.search(&question, now_ms(), asked.caching.is_refresh, &paid));
        let searched = with_heartbeats(client, visit, searching).await;
        // What was asked for is paid for, also when the client has left.
        self.settle_search(visit, semantic, &question, promise, paid.into_call());
        Ok(Some((semantic.clone(), searched?)))
    }

    /// None where only an equal request may have the same answer, or where there is no room to find out.
    async fn question(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &LookUp<'_>,
        repeated: Option<BodyDigest>,
    ) -> Result<Option<Question>, Ended> {
        let endpoint = asked.request.endpoint;
        let route = match (endpoint.native_route(), endpoint.family()) {
            (None, Family::Chat) => AskedRoute::Chat,
            (None, Family::Complete) => AskedRoute::Completions,
            _ => return Ok(None),
        };
        let Some(empty) = BodyDigest::of(b"{}").filter(|_| asked.edited.len() <= MAX_QUESTION_LENGTH) else {
            return Ok(None);
        };
        let bodies = KeyedBodies { body: empty, asked: repeated, is_known: true };
        let Some(around) = self.cache_key(client.head(), asked, bodies).map_err(refused)? else { return Ok(None) };
        let mut similarity = asked.caching.similarity.map(|similarity| similarity as f32);
        // Who may ask may not fish in what others asked.
        if let (true, Some(semantic)) = (asked.caching.is_clients_similarity, self.cache.semantic()) {
            similarity = similarity.map(|asked| asked.max(semantic.threshold()));
        }
        let body = asked.edited.clone();
        let read = move || {
            let body = serde_json::from_slice::<Value>(&body).ok()?;
            Question::read(route, &body, &around, similarity)
        };
        self.aside(client, visit, asked, &[asked.edited], read).await
    }

    /// Of what the key is made of; none where the body has no digest, is too long, or there is no room to make one.
    async fn digests(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &LookUp<'_>,
    ) -> Result<Option<KeyedBodies>, Ended> {
        let body = asked.keyed_body();
        let repeated = asked.repeats().then_some(asked.edited);
        if body.len() > MAX_BODY || repeated.is_some_and(|body| body.len() > MAX_BODY) {
            return Ok(None);
        }
        if body.len() + repeated.map_or(0, Bytes::len) <= SMALL {
            let known = self.cache.known_bodies().find(body).filter(|_| repeated.is_none());
            let known = known.map(|body| KeyedBodies { body, asked: None, is_known: true });
            return Ok(known.or_else(|| KeyedBodies::of(body, repeated)));
        }
        let (own, own_repeated) = (body.clone(), repeated.cloned());
        let mut bodies = vec![body];
        bodies.extend(repeated);
        let digest = move || KeyedBodies::of(&own, own_repeated.as_ref());
        Box::pin(self.aside(client, visit, asked, &bodies, digest)).await
    }

    /// Does this work on these bodies, beside the threads that carry requests if they are long. What it takes stays counted
    /// until it is done, also when the client has left. None where there is no room for it: that is a miss, no failure.
    async fn aside<T: Send + 'static>(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &LookUp<'_>,
        bodies: &[&Bytes],
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Result<Option<T>, Ended> {
        if bodies.iter().map(|body| body.len()).sum::<usize>() <= SMALL {
            return Ok(work());
        }
        let mut share = self.share(asked);
        if bodies.iter().any(|body| share.grow(memory_to_translate(body)).is_err()) {
            return Ok(None);
        }
        let working = Box::pin(heavy(asked.request.caller.tenant(), move || (work(), share)));
        Ok(with_heartbeats(client, visit, working).await?.and_then(|(done, _)| done))
    }

    /// Of the memory of bodies, nothing yet.
    fn share(&self, asked: &LookUp<'_>) -> OwnedShare {
        OwnedShare::none(self.body_limits.memory.clone(), asked.request.caller.tenant())
    }

    /// The nearest answer that is still kept.
    async fn similar(
        &self,
        organisation: OrganisationId,
        semantic: &Semantic,
        searched: &Searched,
    ) -> Option<Arc<Entry>> {
        let (mut nearest, mut gone) = (None, Vec::new());
        for key in &searched.near {
            match self.cache.find(organisation, key).await {
                Found::Entry(entry) => {
                    nearest = Some(entry);
                    break;
                }
                Found::Absent => gone.push(*key),
                Found::Away => {}
            }
        }
        semantic.forget(searched, &gone);
        nearest
    }

    /// Of the request with these bodies in place of its own.
    fn cache_key(
        &self,
        head: &RequestHeader,
        asked: &LookUp<'_>,
        bodies: KeyedBodies,
    ) -> Result<Option<CacheKey>, Refusal> {
        let LookUp { request, leaf, target, translated, .. } = asked;
        let headers = request.meant.known(target, head, leaf.forward_headers.as_deref(), &self.aliases)?;
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let metadata = without_session(&request.metadata, &head.headers);
        let partition = match asked.namespace() {
            Some(name) => Partition::Namespace(name),
            None => Partition::Metadata(&metadata),
        };
        let back = translated.and_then(|translated| translated.back.as_ref());
        let hooks: Vec<u8> =
            asked.guarded.iter().flat_map(|call| &call.output).flat_map(|hook| hook.fingerprint).collect();
        let text = KeyText::new(&KeyInputs {
            tenant: request.caller.tenant(),
            endpoint: endpoint(request),
            provider: &target.provider.name,
            address: [target.origin.pool_key(), target.origin.base_path()],
            model: asked.model,
            placed: &target.placed,
            query: if translated.is_none() { head.uri.query() } else { None },
            body: bodies.body,
            asked: bodies.asked,
            is_strict: back.is_some() && request.is_strict && leaf.is_strict,
            hooks: &hooks,
            target: stored_slug(target),
            headers: &headers,
            partition,
        });
        Ok(text.map(|text| self.cache.key(&text, bodies.is_known)))
    }
}

fn text<'v>(name: &'static str, value: &'v HeaderValue) -> Result<&'v str, Refusal> {
    value.to_str().map_err(|_| Refusal::invalid_header(name, "must be text"))
}

/// The route as both its forms are called: with a stream and without.
fn endpoint(request: &EngineRequest) -> &'static str {
    match request.endpoint.native_route() {
        Some(route) if route.is_google() => "generateContent",
        Some(_) => "converse",
        None => request.endpoint.path(),
    }
}

/// The workspace's handle on the provider.
fn stored_slug(target: &Target) -> Option<&str> {
    match &target.credential {
        Credential::Stored(stored) => Some(&stored.provider.slug),
        Credential::Given(_) => None,
    }
}
