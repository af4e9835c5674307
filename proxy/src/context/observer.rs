//! Who watches a request: gathers what the journal will say of it, holds what its limits promised it, and counts it as in
//! flight. It decides nothing about the request; that it cannot write an intent is the one thing that stops a call.

use super::metrics::{Lane, Metrics};
use super::settle::{Log, RecordFacts};
use super::{AnswerState, PaidAnswer, RequestIdentity, RoutingState};
use crate::cache::Keeper;
use crate::journal::UnloggedCall;
use crate::limits::admission::{Admission, Tariff};
use crate::request::realtime::Done;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::request::request_id;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

#[derive(Default)]
pub struct Observer {
    /// What the journal will say; none once it has been said, or when nobody knows who asks.
    pub log: Option<Box<Log>>,
    /// What its limits promised it; none once that is settled, or when no limit applies to it.
    pub admission: Option<Box<Admission>>,
    /// What is known of models and their prices; none where the request is not logged.
    pub tariff: Option<Arc<Tariff>>,
    /// Whether answers tell what they cost.
    pub tells_costs: bool,
    /// Gathers the answer, where it is to be kept for others. Dropped, it is not.
    pub keeper: Option<Box<Keeper>>,
    /// Hooks that nobody waits for, where calls are not logged.
    pub unlogged: Option<UnloggedCall>,
    presence: Option<Presence>,
}

/// The rest of the visit, for what is written of it.
pub(super) struct RestOfVisit<'v> {
    pub request: &'v mut RequestIdentity,
    pub routing: &'v RoutingState,
    pub answer: &'v mut AnswerState,
}

/// Counts as in flight until dropped, however the request ends.
struct Presence {
    lane: Lane,
    metrics: Arc<Metrics>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.metrics.leave(self.lane);
    }
}

impl Observer {
    pub fn enter(&mut self, lane: Lane, metrics: &Arc<Metrics>) {
        self.presence = None;
        metrics.enter(lane);
        self.presence = Some(Presence { lane, metrics: metrics.clone() });
    }

    pub fn lane(&self) -> Lane {
        self.presence.as_ref().map_or(Lane::Own, |presence| presence.lane)
    }

    /// Whether the limits of the present target let it pass already.
    pub fn is_attempt_admitted(&self) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.has_attempt())
    }

    /// The present target was not asked after all: what its limits promised is others' again.
    pub fn give_attempt_back(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.give_attempt_back();
        }
    }

    /// The call is about to leave. What strict budgets promised it is noted before; it must not leave if that fails.
    pub fn leaves(&mut self, request_id: Uuid) -> Result<(), Refusal> {
        let (Some(log), Some(admission)) = (&mut self.log, &self.admission) else { return Ok(()) };
        match log.promise(request_id, admission) {
            true => Ok(()),
            false => Err(Refusal::journal_full()),
        }
    }

    /// Notes the present target, which another one replaces.
    pub(super) fn set_aside(&mut self, facts: &RecordFacts<'_>, answered: Option<(&HeaderMap, &Bytes)>) {
        if let Some(log) = &mut self.log {
            log.set_aside(facts, answered, self.admission.as_deref_mut());
        }
    }

    pub(super) fn overtakes(&mut self, facts: &RecordFacts<'_>, paid: Option<&PaidAnswer>, began: Instant) {
        if let Some(log) = &mut self.log {
            log.overtakes(facts, paid, began, self.admission.as_deref_mut());
        }
    }

    /// Whether a second call of the present target may be made beside the first: what limits each call, or must never be
    /// overspent, was asked for one.
    pub fn may_call_twice(&self) -> bool {
        self.admission.as_ref().is_none_or(|admission| !admission.binds_each_call())
    }

    pub(super) fn keeps_heads(&self) -> bool {
        self.keeper.is_some() || self.log.as_ref().is_some_and(|log| log.keeps_bodies())
    }

    pub(super) fn answers(&mut self, status: u16, head: &HeaderMap) {
        if self.keeper.as_mut().is_some_and(|keeper| !keeper.begins(status, head)) {
            self.keeper = None;
        }
        if let Some(log) = &mut self.log {
            log.answers(status, head);
        }
    }

    pub(super) fn ends_with(&mut self, bytes: &[u8], known: RestOfVisit<'_>) {
        self.keeper = None;
        if let Some(log) = &mut self.log {
            log.tells(bytes);
            self.note(known);
        }
    }

    pub(super) fn plain(&mut self, piece: &Bytes, is_last: bool, known: RestOfVisit<'_>) {
        if let Some(log) = &mut self.log {
            log.plain(piece, is_last);
            if is_last {
                self.note(known);
            }
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.plain(piece);
            if is_last {
                self.keep();
            }
        }
    }

    pub(super) fn changed(&mut self, read: &Bytes, passed: &Bytes, known: RestOfVisit<'_>) {
        if let Some(log) = &mut self.log {
            log.changed(read, passed);
            self.note(known);
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.changed(read, passed);
            self.keep();
        }
    }

    pub(super) fn late(&mut self, body: &[u8], event: &[u8], known: RestOfVisit<'_>) {
        self.keeper = None;
        let Some(log) = &mut self.log else { return };
        log.counts(body, true);
        log.tells(event);
        self.note(known);
    }

    pub(super) fn events(&mut self, whole: &[u8], passed: &[u8], is_last: bool, known: RestOfVisit<'_>) {
        let after = known.request.started.elapsed();
        if let Some(log) = &mut self.log {
            log.streams(after);
            log.events(whole, passed);
            if is_last || log.is_complete() {
                self.note(known);
            }
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.events(whole);
            if is_last {
                self.keep();
            }
        }
    }

    /// The whole answer has come.
    fn keep(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.keep();
        }
    }

    pub(super) fn withholds(&mut self, whole: &[u8]) {
        self.keeper = None;
        if let Some(log) = &mut self.log {
            log.events(whole, &[]);
        }
    }

    pub(super) fn relays(&mut self, piece: &Bytes, is_last: bool, known: RestOfVisit<'_>) {
        let after = known.request.started.elapsed();
        let Some(log) = &mut self.log else { return };
        log.relayed(piece, is_last, after);
        if is_last || log.is_complete() {
            self.note(known);
        }
    }

    /// Notes the request in the journal, once.
    pub(super) fn note(&mut self, known: RestOfVisit<'_>) {
        let Some(mut log) = self.log.take() else { return };
        let admission = self.admission.take();
        if let (Some(keeper), Some(found)) = (&mut self.keeper, log.found()) {
            keeper.learns(&found.usage, found.model.as_deref(), found.service_tier.as_deref());
        }
        let RestOfVisit { request, routing, answer } = known;
        let (mut status, mut error_code) = (answer.status, answer.error_code);
        let mut record_id = request.uuid();
        let includes_cost = request.includes_cost;
        if let Some(websocket) = &answer.websocket {
            if !websocket.has_rest() {
                return;
            }
            if websocket.has_finished_any() {
                record_id = request_id::new(SystemTime::now());
            }
            log.sums_up(websocket);
            if status == 101 {
                (status, error_code) = websocket.outcome();
            }
        }
        let facts = facts(request, routing, answer.head_after, status, error_code);
        let client_tariff = self.tariff.as_deref().filter(|_| self.tells_costs && includes_cost);
        let cost = log.settle(&RecordFacts { record_id, ..facts }, admission, client_tariff);
        answer.cost = answer.cost.take().or(cost);
    }

    pub(super) fn note_response(&mut self, done: Done, admission: Option<Box<Admission>>, known: RestOfVisit<'_>) {
        let RestOfVisit { request, routing, answer } = known;
        let Some(websocket) = &mut answer.websocket else { return };
        let (number, took) = websocket.finish(&done);
        let Some(log) = &mut self.log else {
            return admission.into_iter().for_each(|admission| admission.settle_unseen());
        };
        let record_id = if number == 0 { request.uuid() } else { request_id::new(SystemTime::now() - took) };
        let (status, error_code) = if done.is_failed { (502, Some(RefusalCode::UpstreamError)) } else { (200, None) };
        let facts = facts(request, routing, answer.head_after, status, error_code);
        log.settle_response(&RecordFacts { record_id, ..facts }, took, done.usage, admission);
    }

    /// Counts the finished request. What its limits promised it is settled, if no record did that. Tells when that was.
    pub(super) fn count(&mut self, metrics: &Metrics, status: u16, started: Instant) -> Instant {
        if let Some(admission) = self.admission.take() {
            admission.settle_unseen();
        }
        let now = Instant::now();
        metrics.answered(self.lane(), status, now.saturating_duration_since(started));
        self.presence = None;
        now
    }
}

pub(super) fn facts<'v>(
    request: &'v mut RequestIdentity,
    routing: &'v RoutingState,
    head_after: Option<Duration>,
    status: u16,
    error_code: Option<RefusalCode>,
) -> RecordFacts<'v> {
    request.trace_id();
    let trace_id = request.trace_id.as_ref().and_then(|trace_id| trace_id.to_str().ok());
    RecordFacts {
        request_id: request.uuid(),
        record_id: request.uuid(),
        started: request.started,
        trace_id: trace_id.unwrap_or_default(),
        status,
        error_code,
        retries: routing.retries,
        upstream: routing.upstream,
        head_after,
        parsed_after: request.parsed_after,
        prompt: routing.prompt.as_deref(),
        cache: routing.cache,
    }
}
