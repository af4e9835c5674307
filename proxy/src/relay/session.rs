//! Limits of a realtime session. Each of its responses is a request: it is admitted before the client's message that
//! begins it passes, charged when it is over, and noted by itself. A session whose caller, rate or budget has ended is
//! ended too.
//!
//! A provider begins responses of its own accord (it hears that somebody has stopped speaking), and what it then says is
//! heard where nothing can be waited for: such a response is charged even if its limits would not have let it pass.

use super::passage::Owed;
use super::{Passage, RelayLane};
use crate::context::Visit;
use crate::identity::identify::INFERENCE;
use crate::limits::admission;
use crate::limits::admission::{Admission, Amounts, asks};
use crate::limits::{LimitKind, Unit};
use crate::request::headers::GatewayHeaders;
use crate::request::limit_headers::LimitHit;
use crate::request::realtime::{RealtimeEvent, SessionNeeds};
use crate::request::receive::MemoryOwner;
use crate::request::refusal::Refusal;
use crate::runtime::tenant_share::Tenant;
use futures::FutureExt as _;
use pingora_http::RequestHeader;
use shared::providers::Family;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the caller of a session in which something is said goes unchecked.
const CHECKED_EVERY: Duration = Duration::from_secs(1);
/// Responses that may be asked for at once.
const MAX_AT_ONCE: usize = 32;

type SessionPromise = Option<Box<Admission>>;

impl Passage {
    /// The connection has become a session: what it was promised is its first response's.
    pub fn begin_session(&mut self, visit: &mut Visit) {
        self.promised.push_back(visit.observer.admission.take());
    }

    /// It is over. A response that was under way is charged, and so is a session without any; other promises are given
    /// back.
    pub fn end_session(&mut self, visit: &mut Visit) {
        let is_charged = visit.answer.websocket.as_ref().is_some_and(|websocket| websocket.is_rest_charged());
        visit.observer.admission = self.promised.pop_front().flatten().filter(|_| is_charged);
        self.promised.clear();
    }
}

impl RelayLane {
    /// Where what is gathered of a session's messages counts.
    pub fn session_memory(&self, passage: Option<&Passage>) -> MemoryOwner<'_> {
        let tenant = passage.map_or(Tenant::GATEWAY, |passage| passage.asked().1.tenant());
        MemoryOwner { memory: &self.body_limits.memory, tenant }
    }

    /// Before what a client of a session has sent may pass.
    pub async fn admit_message(
        &self,
        passage: &mut Passage,
        head: &RequestHeader,
        visit: &mut Visit,
        wanted: SessionNeeds,
    ) -> Result<(), Refusal> {
        if !wanted.is_message {
            return Ok(());
        }
        self.check_caller(passage, head, wanted.responses > 0)?;
        match std::mem::take(&mut passage.owed) {
            Owed::Nothing => {}
            Owed::Budgets => self.check_budgets(passage, head, visit).await?,
            Owed::All => drop(self.admit_response(passage, head, visit).await?),
        }
        while passage.promised.len() < wanted.responses as usize {
            if passage.promised.len() >= MAX_AT_ONCE {
                let message = format!("a session may ask for at most {MAX_AT_ONCE} responses at once");
                let hit = LimitHit { scope: "session", rate: None, wait_ms: None, unit: Unit::Requests };
                return Err(Refusal::rate_limited(message, 1, hit));
            }
            let promise = self.admit_response(passage, head, visit).await?;
            passage.promised.push_back(promise);
        }
        Ok(())
    }

    /// After the provider has said something. An error ends the session; what was used is charged in any case.
    pub fn hear(
        &self,
        passage: &mut Passage,
        head: &RequestHeader,
        visit: &mut Visit,
        events: Vec<RealtimeEvent>,
    ) -> Result<(), Refusal> {
        let mut heard = Ok(());
        let mut is_over = false;
        for event in events {
            match event {
                RealtimeEvent::Began => {
                    let running = visit.answer.websocket.as_mut().map_or(0, |websocket| websocket.begin());
                    if passage.promised.len() < running as usize {
                        let (promise, admitted) = self.admit_begun(passage, head, visit);
                        passage.promised.push_back(promise);
                        heard = heard.and(admitted);
                    }
                }
                RealtimeEvent::Done(done) => {
                    let promise = match passage.promised.pop_front() {
                        Some(promise) => promise,
                        None => {
                            let (promise, admitted) = self.admit_begun(passage, head, visit);
                            heard = heard.and(admitted);
                            promise
                        }
                    };
                    visit.note_response(done, promise);
                    is_over = true;
                }
                _ => {}
            }
        }
        heard?;
        self.check_caller(passage, head, is_over)?;
        if !is_over {
            return Ok(());
        }
        let checked = self.check_budgets(passage, head, visit).now_or_never();
        visit.observer.admission = None;
        // What must be waited for is asked again before the client goes on.
        if checked.is_none() && passage.owed == Owed::Nothing {
            passage.owed = Owed::Budgets;
        }
        checked.unwrap_or(Ok(()))
    }

    /// Whether the session's key still opens, as the control plane's data stands now.
    fn check_caller(&self, passage: &mut Passage, head: &RequestHeader, is_due: bool) -> Result<(), Refusal> {
        if !is_due && passage.checked.elapsed() < CHECKED_EVERY {
            return Ok(());
        }
        passage.checked = Instant::now();
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        self.authenticator.identify_again(passage.caller_mut(), &headers, &[INFERENCE])
    }

    /// Whether every budget has something left. That a rate has nothing left ends a session only when it asks for more.
    async fn check_budgets(&self, passage: &Passage, head: &RequestHeader, visit: &mut Visit) -> Result<(), Refusal> {
        let (of_request, of_attempt) = self.limits_of_response(passage, head, visit);
        let is_budget = |wanted: &&admission::ApplicableLimit| matches!(wanted.limit.kind, LimitKind::Budget { .. });
        let budgets: Vec<_> = of_request.iter().chain(&of_attempt).filter(is_budget).cloned().collect();
        if budgets.is_empty() {
            return Ok(());
        }
        let left = self.admitter.reserve(visit, &budgets, Amounts::default(), false).await;
        visit.observer.admission = None;
        left
    }

    async fn admit_response(
        &self,
        passage: &Passage,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Result<SessionPromise, Refusal> {
        let (of_request, of_attempt) = self.limits_of_response(passage, head, visit);
        let mut admitted = Ok(());
        if !of_request.is_empty() {
            admitted = self.admitter.reserve(visit, &of_request, Amounts::default(), false).await;
        }
        if admitted.is_ok() && !of_attempt.is_empty() {
            admitted = self.admitter.reserve(visit, &of_attempt, Amounts::default(), true).await;
        }
        let promise = visit.observer.admission.take();
        admitted.map(|()| promise)
    }

    /// For a response that nobody asked leave for.
    fn admit_begun(
        &self,
        passage: &mut Passage,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> (SessionPromise, Result<(), Refusal>) {
        let refused = match self.admit_response(passage, head, visit).now_or_never() {
            Some(Ok(promise)) => return (promise, Ok(())),
            Some(Err(refusal)) => Err(refusal),
            // Its limits cannot be asked at once: they are before the client goes on.
            None => {
                passage.owed = Owed::All;
                Ok(())
            }
        };
        visit.observer.admission = None;
        let (of_request, of_attempt) = self.limits_of_response(passage, head, visit);
        let now = self.admitter.limits.now();
        let charge = |wanted: &[admission::ApplicableLimit]| {
            self.admitter.limits.charge_unasked(now, &asks(wanted, &Amounts::default()))
        };
        let mut admission = Box::new(Admission::new(self.admitter.tariff.clone()));
        admission.admit(charge(&of_request), Amounts::default());
        admission.admit_attempt(charge(&of_attempt), visit.routing.option.clone());
        (Some(admission), refused)
    }

    fn limits_of_response(
        &self,
        passage: &Passage,
        head: &RequestHeader,
        visit: &Visit,
    ) -> (Arc<[admission::ApplicableLimit]>, Vec<admission::ApplicableLimit>) {
        let (path, caller, metadata) = passage.asked();
        let family = Family::from_path(&head.method, path).map(|(family, _)| family);
        let model = passage.model.as_deref();
        let of_request = self.admitter.wanted(visit, caller, metadata, family);
        (of_request, self.admitter.wanted_of(visit, caller, metadata, family, &passage.target, model))
    }
}
