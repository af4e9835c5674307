//! Look up: whether an answer to what a target would be sent is kept, and what becomes of the target's own if none is. The
//! key is made of the body after hooks, edits and translation; what is kept is in the client's words.
//!
//! A hit asks no provider, takes none of its limits and says nothing of its health. Hooks of the request have run, and what
//! they said is told with it; those of the answer ran when it was kept, and answers that passed other hooks are kept apart.

use super::call::{HeldAnswer, refused};
use super::translate::{TranslatedCall, WayBack, answer_id, client_codec};
use super::{Engine, EngineRequest};
use crate::answer::{
    AnswerSource, Ended, GuardedCall, HeldStart, HeldStream, Steps, StoredAnswer, WireDialect, beside, results_event,
    with_results,
};
use crate::cache::key::{KeyInputs, Partition, key};
use crate::cache::semantic::{AskedRoute, Question, Searched};
use crate::cache::store::now_ms;
use crate::cache::{
    AnswerForm, Boarding, CacheFacts, CacheHeaders, CacheKey, Caching, Entry, Found, Keeper, KeptAs, Learnt, Semantic,
    Tags, eligible, replay,
};
use crate::catalog::target::{Credential, Target};
use crate::codecs::{AnswerOptions, Codec};
use crate::conversation::WireFormat;
use crate::journal::CacheStatus;
use crate::net::downstream::Downstream;
use crate::refusal::Refusal;
use crate::request::body::Fields;
use crate::request::headers::GatewayHeaders;
use crate::request::sse::Splitter;
use crate::routing::plan::Leaf;
use crate::runtime::timeout::with_deadline;
use crate::visit::settle::OwnCallRecord;
use crate::visit::{CacheUse, Visit};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, header};
use pingora_http::{RequestHeader, ResponseHeader};
use serde_json::Value;
use shared::config::CacheMode;
use shared::id::OrganisationId;
use shared::providers::Family;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a target would be sent, and how the client wants its answer.
pub(super) struct LookUp<'l> {
    pub errand: &'l EngineRequest,
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
    let text = |name: &'static str, value: &HeaderValue| match value.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Refusal::invalid_header(name, "must be text")),
    };
    let mut said = CacheHeaders::default();
    if let Some(value) = headers.cache {
        const NAME: &str = "x-gateway-cache";
        let cache = eligible::parse_cache(&text(NAME, value)?);
        said.cache = Some(cache.map_err(|why| Refusal::invalid_header(NAME, why))?);
    }
    if let Some(value) = headers.cache_force_refresh {
        said.is_refresh = !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"false");
    }
    if let Some(value) = headers.cache_namespace {
        const NAME: &str = "x-gateway-cache-namespace";
        let namespace = eligible::parse_namespace(&text(NAME, value)?);
        said.namespace = Some(namespace.map_err(|why| Refusal::invalid_header(NAME, why))?);
    }
    Ok(Some(Box::new(said)))
}

impl Engine {
    /// None for requests without a cache, which pay no more than this look.
    pub(super) fn caching(
        &self,
        errand: &EngineRequest,
        leaf: &Leaf,
        fields: &Fields<'_>,
        guarded: Option<&Arc<GuardedCall>>,
    ) -> Option<Caching> {
        if errand.is_own || (leaf.cache.is_none() && errand.cache.is_none()) {
            return None;
        }
        let can_stream = || client_codec(errand.endpoint).is_some();
        // Values that hooks took out of the request belong to this one alone, and its answer has them again.
        let has_placeholders = guarded.is_some_and(|guarded| !guarded.input.placeholders.is_empty());
        let facts = CacheFacts {
            is_untracked: errand.is_untracked,
            is_metrics_only: self.recorder.is_metrics_only(&errand.caller),
            is_repeatable: !errand.endpoint.takes_forms()
                && !has_placeholders
                && (!fields.is_true("stream") || can_stream()),
        };
        eligible::caching(leaf.cache, errand.cache.as_deref(), facts)
    }

    pub(super) async fn look_up(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: LookUp<'_>,
    ) -> Result<LookedUp, Ended> {
        let began = Instant::now();
        let Some(key) = self.cache_key(client.head(), &asked, asked.keyed_body()).map_err(refused)? else {
            return Ok(LookedUp::Miss(None));
        };
        let organisation = asked.errand.caller.workspace.organisation_id;
        let (mut found, mut flight) = (None, None);
        if !asked.caching.is_refresh {
            found = self.kept(organisation, &key).await;
            if found.is_none() && asked.caching.coalesces && !asked.is_stream() {
                match self.cache.board(key) {
                    Boarding::First(own) => {
                        // Somebody may have come back with it since it was looked for.
                        found = self.kept(organisation, &key).await;
                        flight = Some(own).filter(|_| found.is_none());
                    }
                    Boarding::Waiting(follower) => {
                        let landing = Box::pin(follower.landing());
                        found = match visit.routing.deadline {
                            None => beside(client, visit, landing).await?,
                            Some(deadline) => {
                                let landing = Box::pin(with_deadline(deadline, landing));
                                beside(client, visit, landing).await?.ok().flatten()
                            }
                        };
                    }
                }
            }
        }
        let searched = match found {
            None => self.search(client, visit, &asked).await?,
            Some(_) => None,
        };
        let mut is_similar = false;
        if let Some((semantic, searched)) = searched.as_ref().filter(|_| !asked.caching.is_refresh) {
            found = self.similar(organisation, semantic, searched).await;
            is_similar = found.is_some();
            if let (Some(entry), Some(flight)) = (&found, flight.take_if(|_| is_similar)) {
                flight.land(entry.clone());
            }
        }
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
        let kept = KeptAs {
            organisation,
            key,
            tags: Tags::new(namespace, config, &asked.errand.metadata),
            max_age: asked.caching.max_age,
            form: asked.form(visit.id()),
            asked: asked.edited.clone(),
        };
        let is_refresh = asked.caching.is_refresh;
        let learnt = searched.map(|(semantic, searched)| Learnt { semantic, searched, is_refresh });
        let keeper = Keeper::new(self.cache.clone(), kept, flight).learning(learnt);
        Ok(LookedUp::Miss(Some(Box::new(keeper))))
    }

    async fn kept(&self, organisation: OrganisationId, key: &CacheKey) -> Option<Arc<Entry>> {
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
    ) -> Result<Option<(Arc<Semantic>, Searched)>, Ended> {
        let semantic = self.cache.semantic().filter(|_| asked.caching.mode == CacheMode::Semantic);
        let Some(semantic) = semantic else { return Ok(None) };
        let Some(question) = self.question(client.head(), asked).map_err(refused)? else { return Ok(None) };
        let searching = Box::pin(semantic.search(&question, now_ms(), asked.caching.is_refresh));
        let searched = beside(client, visit, searching).await?;
        if let (Some(call), Some((provider, model))) = (&searched.call, semantic.billed_as()) {
            let usage = call.usage.as_deref();
            let (status, millis) = (call.status, call.millis);
            visit.notes_own_call(&OwnCallRecord { purpose: "semantic_cache", provider, model, status, usage, millis });
        }
        Ok(Some((semantic.clone(), searched)))
    }

    fn question(&self, head: &RequestHeader, asked: &LookUp<'_>) -> Result<Option<Question>, Refusal> {
        let endpoint = asked.errand.endpoint;
        let route = match (endpoint.native_route(), endpoint.family()) {
            (None, Family::Chat) => AskedRoute::Chat,
            (None, Family::Complete) => AskedRoute::Completions,
            _ => return Ok(None),
        };
        let Some(around) = self.cache_key(head, asked, b"{}")? else { return Ok(None) };
        let similarity = asked.caching.similarity.map(|similarity| similarity as f32);
        let body = serde_json::from_slice::<Value>(asked.edited).ok();
        Ok(body.and_then(|body| Question::read(route, &body, &around, similarity)))
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

    /// Of the request with this body in place of its own.
    fn cache_key(&self, head: &RequestHeader, asked: &LookUp<'_>, body: &[u8]) -> Result<Option<CacheKey>, Refusal> {
        let LookUp { errand, leaf, target, translated, .. } = asked;
        let headers = match asked.namespace() {
            Some(_) => Vec::new(),
            None => errand.meant.known(target, head, leaf.forward_headers.as_deref(), &self.aliases)?,
        };
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let partition = match asked.namespace() {
            Some(name) => Partition::Namespace(name),
            None => Partition::Request { metadata: &errand.metadata, target: stored_slug(target), headers: &headers },
        };
        let back = translated.and_then(|translated| translated.back.as_ref());
        let repeats = matches!(back, Some(WayBack::Conversation(way)) if way.client.format() == WireFormat::Responses);
        let hooks: Vec<u8> =
            asked.guarded.iter().flat_map(|call| &call.output).flat_map(|hook| hook.fingerprint).collect();
        Ok(key(&KeyInputs {
            workspace: errand.caller.workspace.id.uuid(),
            endpoint: endpoint(errand),
            provider: &target.provider.name,
            address: [target.origin.pool_key(), target.origin.base_path()],
            model: asked.model,
            placed: &target.placed,
            query: if translated.is_none() { head.uri.query() } else { None },
            body,
            asked: repeats.then_some(&asked.edited[..]),
            is_strict: back.is_some() && errand.is_strict && leaf.is_strict,
            hooks: &hooks,
            partition,
        }))
    }
}

impl LookUp<'_> {
    fn namespace(&self) -> Option<&str> {
        self.errand.cache.as_ref().and_then(|headers| headers.namespace.as_deref())
    }

    /// A form has a boundary of its own each time; what it is made of is the client's.
    fn keyed_body(&self) -> &[u8] {
        let is_form = self.translated.is_some_and(|translated| translated.content_type.is_some());
        if is_form { self.edited } else { self.sent }
    }

    fn is_stream(&self) -> bool {
        self.fields.is_true("stream")
    }

    /// The entry as this client wants it; none where it cannot be given so.
    fn replayed(&self, visit: &mut Visit, entry: &Entry) -> Option<HeldAnswer> {
        let is_stream = self.is_stream();
        let is_failed = self.guarded.is_some_and(|call| call.input.is_failed);
        let status: u16 = if is_failed { 246 } else { 200 };
        let mut head = ResponseHeader::build_no_case(status, Some(4)).ok()?;
        let held = match is_stream {
            true => {
                let codec = client_codec(self.errand.endpoint)?;
                let events = replay::as_events(&entry.body, codec, &self.form(visit.id()).options)?;
                let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
                head.insert_header(header::CONTENT_TYPE, kind).ok()?;
                HeldStart::Stream(HeldStream {
                    first: self.with_results_event(events),
                    splitter: Splitter::default(),
                    ending: WireDialect::of_format(codec.format()).ending(),
                })
            }
            false => {
                let kind = HeaderValue::from_str(&entry.content_type).ok()?;
                let is_json = kind.as_bytes().starts_with(b"application/json");
                let body = match self.guarded.filter(|_| is_json) {
                    Some(call) => with_results(entry.body.clone(), &call.results(None)),
                    None => entry.body.clone(),
                };
                head.insert_header(header::CONTENT_TYPE, kind).ok()?;
                head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len())).ok()?;
                HeldStart::Plain(body)
            }
        };
        let mut steps = Steps::default();
        if let Some(frames) = self.errand.frames() {
            steps.frame_as(frames);
        }
        let source = AnswerSource::from(StoredAnswer::new(head, []));
        steps.begin(source.head(), is_stream);
        visit.hits(entry);
        Some(HeldAnswer { source, held, steps, waited: Duration::ZERO, permit: None, keeper: None, is_hit: true })
    }

    fn with_results_event(&self, events: Bytes) -> Bytes {
        let told = self.guarded.map(|call| results_event(call)).unwrap_or_default();
        if told.is_empty() {
            return events;
        }
        let mut whole = BytesMut::from(told.as_ref());
        whole.extend_from_slice(&events);
        whole.freeze()
    }

    /// In which formats the answer comes and goes.
    fn form(&self, request_id: &str) -> AnswerForm {
        let back = self.translated.and_then(|translated| translated.back.as_ref());
        let client = client_codec(self.errand.endpoint).filter(|_| !matches!(back, Some(WayBack::Object(_))));
        match back {
            Some(WayBack::Conversation(way)) => {
                let options = AnswerOptions { include_usage: self.includes_usage(), ..way.options.clone() };
                AnswerForm { client, provider: Some(way.provider), options }
            }
            _ => AnswerForm { client, provider: client, options: self.native_options(client, request_id) },
        }
    }

    /// Of an answer in the provider's own words: nothing of it is left out, and nothing added.
    fn native_options(&self, client: Option<&dyn Codec>, request_id: &str) -> AnswerOptions<'static> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        AnswerOptions {
            is_strict: false,
            id: client.map(|client| answer_id(client.format(), request_id)).unwrap_or_default().into(),
            created: now.map_or(0, |since| since.as_secs()),
            model: self.model.unwrap_or_default().to_owned().into(),
            provider: "".into(),
            include_usage: self.includes_usage(),
            request: None,
        }
    }

    /// Whether a stream of chat shall tell its usage.
    fn includes_usage(&self) -> bool {
        let options = self.fields.value("stream_options");
        options.as_ref().and_then(|options| options.get("include_usage")).and_then(Value::as_bool) == Some(true)
    }
}

/// The route as both its forms are called: with a stream and without.
fn endpoint(errand: &EngineRequest) -> &'static str {
    match errand.endpoint.native_route() {
        Some(route) if route.is_google() => "generateContent",
        Some(_) => "converse",
        None => errand.endpoint.path(),
    }
}

/// The workspace's handle on the provider.
fn stored_slug(target: &Target) -> Option<&str> {
    match &target.credential {
        Credential::Stored(stored) => Some(&stored.provider.slug),
        Credential::Given(_) => None,
    }
}
