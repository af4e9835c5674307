//! One request from its first byte to its last, in either lane. Four parts: which request it is, where it stands in its
//! plan, what its client has had of an answer, and the observer that logs and counts all of it. What happens to a request
//! is told here once and reaches each part that has to know. Its metrics are the process's (`metrics`).

mod answer_cost;
mod identity;
pub mod metrics;
mod observer;
mod paid_answer;
mod server_timing;
pub mod settle;
mod stamp;
mod state;

pub use answer_cost::AnswerCost;
pub use identity::RequestIdentity;
pub use observer::Observer;
pub use paid_answer::PaidAnswer;
pub use state::{AnswerState, CacheUse, Heartbeats, RoutingState};

use crate::cache::{CachedBody, Entry};
use crate::catalog::target::Target;
use crate::journal::HookLog;
use crate::limits::Reservation;
use crate::limits::admission::{Admission, Tariff};
use crate::request::realtime::Done;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::wire::codecs::options::MAX_DROPPED;
use bytes::Bytes;
use http::HeaderMap;
use metrics::{Lane, Metrics};
use observer::{RestOfVisit, facts};
use pingora_http::ResponseHeader;
use settle::OwnCallRecord;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

pub struct Visit {
    pub request: RequestIdentity,
    pub routing: RoutingState,
    pub answer: AnswerState,
    pub observer: Observer,
}

impl Visit {
    pub fn begin() -> Self {
        Self {
            request: RequestIdentity::begin(),
            routing: RoutingState::default(),
            answer: AnswerState::default(),
            observer: Observer::default(),
        }
    }

    pub fn enter(&mut self, lane: Lane, metrics: &Arc<Metrics>) {
        self.observer.enter(lane, metrics);
    }

    pub fn id(&self) -> &str {
        self.request.id()
    }

    /// Whom the request was sent to last, if to anybody.
    pub fn tried_provider(&self) -> Option<&str> {
        let provider = self.routing.provider.as_ref().filter(|_| self.routing.attempts > 0);
        provider.and_then(|name| name.to_str().ok())
    }

    /// A target is turned to. One that was being tried on the relay lane could not be reached then.
    pub fn turn_to(&mut self, target: &Target, model: Option<&str>) {
        match self.observer.log.as_ref().map(|log| log.is_elsewhere(&self.routing.option)) {
            None => {
                if let Some(admission) = &mut self.observer.admission {
                    admission.leave_attempt_unless(&self.routing.option);
                }
            }
            Some(true) => self.set_aside(503, Some(RefusalCode::UpstreamUnreachable), None),
            Some(false) => {}
        }
        self.routing.provider_number = target.provider.number;
        self.routing.dropped = None;
        self.routing.cache = CacheUse::default();
        if let Some(log) = &mut self.observer.log {
            log.turn_to(target, model, &self.routing.option, self.routing.upstream);
        }
    }

    /// Notes the present target, which another one replaces.
    pub fn set_aside(&mut self, status: u16, error_code: Option<RefusalCode>, answered: Option<(&HeaderMap, &Bytes)>) {
        let facts = facts(&mut self.request, &self.routing, self.answer.head_after, status, error_code);
        self.observer.set_aside(&facts, answered);
    }

    /// The present target has answered with this, which the client does not get.
    pub fn pays(&mut self, paid: &PaidAnswer) {
        if let Some(log) = &mut self.observer.log {
            log.pays(paid);
        }
    }

    /// One of two calls of the present target was overtaken by the other. `paid` is what it answered, if it did.
    pub fn overtakes(&mut self, paid: Option<&PaidAnswer>, began: Instant) {
        const OVERTAKEN: u16 = 499;
        let facts = facts(&mut self.request, &self.routing, self.answer.head_after, OVERTAKEN, None);
        self.observer.overtakes(&facts, paid, began);
    }

    /// The present target is not told these parameters.
    pub fn drops(&mut self, names: &[String]) {
        let names = &names[..names.len().min(MAX_DROPPED)];
        self.routing.dropped = (!names.is_empty()).then(|| names.join(", "));
        if let Some(log) = &mut self.observer.log {
            log.drops(names);
        }
    }

    /// Whether what happens to it is logged.
    pub fn is_logged(&self) -> bool {
        self.observer.log.is_some()
    }

    /// What guardrails said, as far as it is known.
    pub fn checked(&mut self, hook_log: Option<HookLog>) {
        let Some(hook_log) = hook_log else { return };
        match (&mut self.observer.log, &mut self.observer.unlogged) {
            (Some(log), _) => log.checked(hook_log),
            (None, Some(unlogged)) => unlogged.checked(hook_log.late),
            (None, None) => {}
        }
    }

    /// The call is about to leave; it must not if this fails.
    pub fn leaves(&mut self) -> Result<(), Refusal> {
        self.observer.leaves(self.request.uuid())?;
        self.routing.attempts = self.routing.attempts.saturating_add(1);
        Ok(())
    }

    /// The answer comes from the cache: nobody is paid for it.
    pub fn hits(&mut self, entry: &Entry) {
        if let Some(admission) = &mut self.observer.admission {
            admission.hits();
        }
        if let Some(log) = &mut self.observer.log {
            log.hits(entry);
        }
    }

    /// The gateway is about to make a call for itself that strict budgets were asked for. False when it must not leave.
    pub fn promises_own_call(&self, id: Uuid, reserved: &Reservation) -> bool {
        self.observer.log.as_ref().is_none_or(|log| log.promise_own_call(id, reserved))
    }

    /// The gateway has made a call for itself while it served this request.
    pub fn notes_own_call(&mut self, call: &OwnCallRecord<'_>) {
        let trace_id = self.request.trace_id().to_str().unwrap_or_default();
        if let Some(log) = &self.observer.log {
            log.append_own_call(call, trace_id);
        }
    }

    /// What may be kept of the answer that is about to leave.
    pub fn keeps(&mut self, body: CachedBody) {
        match (body, &mut self.observer.keeper) {
            (CachedBody::Nothing, keeper) => *keeper = None,
            (CachedBody::Instead(body), Some(keeper)) => keeper.take_instead(body),
            (CachedBody::Instead(_), None) | (CachedBody::Passed, _) => {}
        }
    }

    /// Whether the head that the client gets may be made of lines: nobody looks at it, and no alias can repeat a name.
    pub fn writes_lines(&self) -> bool {
        self.request.alias.is_none() && !self.observer.keeps_heads()
    }

    /// The client gets this head.
    pub fn answers(&mut self, head: &HeaderMap) {
        self.observer.answers(self.answer.status, head);
    }

    /// The client gets this head of a relayed answer, with our headers beside what it says.
    pub fn answers_relayed(&mut self, head: &mut ResponseHeader, is_provider: bool) {
        self.answer.status = head.status.as_u16();
        self.answer.head_after = Some(self.request.started.elapsed());
        self.stamp_relayed(head, is_provider);
        self.answers(&head.headers);
    }

    /// The gateway itself ends the answer with this, or answers so: the request is noted first.
    pub fn ends_with(&mut self, bytes: &[u8]) {
        let (observer, known) = self.observed();
        observer.ends_with(bytes, known);
    }

    /// The prices that must be fetched before an answer can tell its cost, and whose they are.
    pub fn prices_to_learn(&self) -> Option<(Arc<Tariff>, String)> {
        let tariff = self.observer.tariff.as_ref().filter(|_| self.observer.tells_costs)?;
        let service = self.observer.log.as_ref()?.paid_service()?;
        tariff.sources.known(service).is_none().then(|| (tariff.clone(), service.to_owned()))
    }

    /// A plain answer is whole, and its head has not left.
    pub fn price_plain(&mut self, read: &Bytes, passed: Option<&Bytes>, status: u16) {
        let Observer { log: Some(log), tariff: Some(tariff), tells_costs: true, .. } = &mut self.observer else {
            return;
        };
        self.answer.cost = log.price_plain(read, passed, status, tariff);
    }

    /// The head of an answer of the present target is about to be written.
    pub fn warn_of_deprecated_model(&mut self) {
        let Observer { log: Some(log), tariff: Some(tariff), .. } = &mut self.observer else { return };
        if let Some(warning) = log.deprecation_warning(tariff) {
            self.routing.warn(&warning);
        }
    }

    /// Events with what the stream cost, once that is known and if the client wants to know it.
    pub fn with_cost(&mut self, events: Bytes) -> Bytes {
        match self.answer.cost.take() {
            None => events,
            Some(cost) => answer_cost::with_comment(&events, &cost.comment()).into(),
        }
    }

    /// A piece of a plain answer is about to leave; the request is noted before the last one does.
    pub fn plain(&mut self, piece: &Bytes, is_last: bool) {
        let (observer, known) = self.observed();
        observer.plain(piece, is_last, known);
    }

    /// A plain answer is about to leave that steps have changed.
    pub fn changed(&mut self, read: &Bytes, passed: &Bytes) {
        let (observer, known) = self.observed();
        observer.changed(read, passed, known);
    }

    /// A plain answer is about to leave as an event.
    pub fn late(&mut self, body: &[u8], event: &[u8]) {
        let (observer, known) = self.observed();
        observer.late(body, event, known);
    }

    /// Whole events of a stream came, of which the client gets what is passed; the request is noted before what ends it
    /// leaves.
    pub fn events(&mut self, whole: &[u8], passed: &[u8], is_last: bool) {
        let (observer, known) = self.observed();
        observer.events(whole, passed, is_last, known);
    }

    /// Whole events came of which the client gets nothing but the error that comes next.
    pub fn withholds(&mut self, whole: &[u8]) {
        self.observer.withholds(whole);
    }

    /// Bytes of a relayed answer are about to leave.
    pub fn relays(&mut self, piece: &Bytes, is_last: bool) {
        let (observer, known) = self.observed();
        observer.relays(piece, is_last, known);
    }

    /// A response of a session is over: it is noted by itself, the first one under the id of the session.
    pub fn note_response(&mut self, done: Done, admission: Option<Box<Admission>>) {
        let (observer, known) = self.observed();
        observer.note_response(done, admission, known);
    }

    /// Counts the finished request, and notes it if its answer never came to an end. Tells when that was.
    pub fn settle(&mut self, metrics: &Metrics) -> Instant {
        let (observer, known) = self.observed();
        observer.note(known);
        self.observer.count(metrics, self.answer.status, self.request.started)
    }

    fn observed(&mut self) -> (&mut Observer, RestOfVisit<'_>) {
        let Self { request, routing, answer, observer } = self;
        (observer, RestOfVisit { request, routing, answer })
    }
}
