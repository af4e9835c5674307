//! The last stage: what a request did goes into the journal, one record for each target that was tried, before the
//! last byte of the answer leaves. A `Log` goes along with the request and gathers what only passes by once.

mod attempt;
mod client_cost;
mod deprecated_model;
mod look_up;
mod own_call;
mod paid_route;
mod record;

use super::{AnswerCost, CacheUse, PaidAnswer};
use crate::cache::Entry;
use crate::catalog::choose_plan::{self, ChosenPlan as Planned};
use crate::catalog::prompts::PromptRun;
use crate::catalog::target::Target;
use crate::identity::identify::Principal;
use crate::journal::logged_body::{LoggedExchange, Rules};
use crate::journal::{HookLog, Intent, Journal, LateWork, Mode, Record, bounded_results};
use crate::limits::admission::{Admission, Tariff};
use crate::limits::usage;
use crate::limits::usage::UsageReader;
use crate::net::dial::UpstreamRequest;
use crate::request::headers::GatewayHeaders;
use crate::request::path_spelling::canonical;
use crate::request::realtime::Websocket;
use crate::request::refusal::RefusalCode;
use crate::request::request_id;
use crate::routing::plan::Branch;
use crate::runtime::memory::{BodyMemory, MemoryOwner};
use crate::snapshot::SavedConfig;
use attempt::Attempt;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
pub use own_call::OwnCallRecord;
pub use paid_route::PaidRoute;
use pingora_http::{RequestHeader, ResponseHeader};
use record::caller_headers;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

pub struct Log {
    journal: Arc<Journal>,
    caller: Principal,
    method: Method,
    uri: Uri,
    /// What the client's SDK says of itself, and where the call belongs in its trace.
    caller_headers: Vec<(&'static str, HeaderValue)>,
    config: Option<LoggedConfig>,
    mode: Mode,
    metadata: Option<String>,
    /// For the tokens of a prompt that nobody counted.
    body: Bytes,
    /// The beginning of a relayed body, and how long it is so far: the prompt of a call that nobody counted.
    beginning: Vec<Bytes>,
    received_bytes: u64,
    /// About how many seconds of sound were sent in a form.
    sound: Option<f64>,
    attempts: u8,
    attempt: Option<Attempt>,
    /// What the client sent and got; none when only the row is kept.
    sheet: Option<LoggedExchange>,
    /// What guardrails said, as JSON, and those that have yet to speak.
    hook_results: Option<String>,
    late: Option<Box<dyn LateWork>>,
    /// Whoever made the request wants to know what was noted of it.
    copies: Option<Arc<RecordCopies>>,
}

/// What was noted of one request, as the journal has it, for whoever made it.
#[derive(Debug, Default)]
pub struct RecordCopies(parking_lot::Mutex<Vec<Vec<u8>>>);

impl RecordCopies {
    fn keep(&self, record: &Record<'_>) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.0.lock().push(bytes);
    }

    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock())
    }
}

/// So much of a relayed body is kept until its answer has said what it used.
const MAX_BEGINNING: u64 = 16 << 10;

/// What a response of a session was promised.
type ResponsePromise = Option<Box<Admission>>;

/// Where the config came from.
#[derive(Debug, Clone)]
pub enum LoggedConfig {
    Saved(Arc<SavedConfig>),
    Inline,
}

/// What the visit knows when a record is written.
pub struct RecordFacts<'v> {
    pub request_id: Uuid,
    /// Of the record, if it is the request's last.
    pub record_id: Uuid,
    pub started: Instant,
    pub trace_id: &'v str,
    pub status: u16,
    pub error_code: Option<RefusalCode>,
    pub retries: i8,
    /// Waited for providers so far.
    pub upstream: Duration,
    /// Since the start, when the head of the answer was there.
    pub head_after: Option<Duration>,
    /// Since the start, when the body was understood.
    pub parsed_after: Option<Duration>,
    /// The stored prompt that was run.
    pub prompt: Option<&'v PromptRun>,
    pub cache: CacheUse,
}

impl Log {
    pub fn open(
        journal: &Arc<Journal>,
        caller: &Principal,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        rules: Option<Rules>,
    ) -> Box<Self> {
        Box::new(Self {
            journal: journal.clone(),
            caller: caller.clone(),
            method: head.method.clone(),
            uri: head.uri.clone(),
            caller_headers: caller_headers(head, headers),
            config: None,
            mode: Mode::Single,
            metadata: None,
            body: Bytes::new(),
            beginning: Vec::new(),
            received_bytes: 0,
            sound: None,
            attempts: 0,
            attempt: None,
            sheet: rules.map(|rules| LoggedExchange::open(rules, head, headers.sensitive_headers)),
            hook_results: None,
            late: None,
            copies: None,
        })
    }

    pub fn planned(&mut self, planned: &Planned, metadata: &Map<String, Value>) {
        self.mode = match planned.plan.node(0).branch {
            Branch::Leaf(_) | Branch::Single(_) => Mode::Single,
            Branch::Fallback { .. } => Mode::Fallback,
            Branch::Balance { .. } => Mode::Loadbalance,
            Branch::Conditional { .. } => Mode::Conditional,
        };
        self.config = match (&planned.saved, planned.source) {
            (Some(saved), _) => Some(LoggedConfig::Saved(saved.clone())),
            (None, choose_plan::ConfigSource::Inline) => Some(LoggedConfig::Inline),
            (None, _) => None,
        };
        self.describe(metadata);
    }

    pub fn describe(&mut self, metadata: &Map<String, Value>) {
        self.metadata = (!metadata.is_empty()).then(|| record::written(metadata));
    }

    /// Whether it is paid by what a person signed in for, for whoever adds costs up.
    fn mark_credential(&mut self, is_own: bool) {
        const MARK: &str = "_credential";
        let is_marked = self.metadata.as_ref().is_some_and(|written| written.contains(MARK));
        if !is_own && !is_marked {
            return;
        }
        let read = self.metadata.as_deref().and_then(|written| serde_json::from_str(written).ok());
        let mut metadata: Map<String, Value> = read.unwrap_or_default();
        match is_own {
            true => drop(metadata.insert(MARK.to_owned(), "own".into())),
            false => drop(metadata.remove(MARK)),
        }
        self.describe(&metadata);
    }

    pub fn copy_to(&mut self, copies: &Arc<RecordCopies>) {
        self.copies = Some(copies.clone());
    }

    /// Kept until the record is written: a stream that is cut tells nobody what it read.
    pub fn asked(&mut self, body: &Bytes) {
        self.body = body.clone();
    }

    /// The client's body, or what stands for it.
    pub fn received(&mut self, body: &Bytes) {
        if let Some(sheet) = &mut self.sheet {
            sheet.received(body);
        }
    }

    /// The client's body is this form, whose fields alone are received.
    pub fn uploads(&mut self, form: &[u8]) {
        self.sound = Some(usage::audio::length_of_upload(form));
    }

    /// A piece of the client's body passes.
    pub fn receives(&mut self, piece: &Bytes) {
        if let Some(sheet) = &mut self.sheet {
            sheet.receives(piece);
        }
        if let Some(attempt) = self.attempt.as_mut().filter(|_| self.received_bytes == 0) {
            attempt.model = attempt.model.take().or_else(|| usage::native_model::in_body(piece));
        }
        if self.received_bytes < MAX_BEGINNING {
            self.beginning.push(piece.clone());
        }
        self.received_bytes += piece.len() as u64;
    }

    /// The client's body goes to its provider once more, from the beginning.
    pub fn sends_again(&mut self) {
        if let Some(sheet) = &mut self.sheet {
            sheet.receives_again();
        }
        self.beginning.clear();
        self.received_bytes = 0;
    }

    /// The target is sent this; `body` where it is not the client's own.
    pub fn sends(&mut self, request: &UpstreamRequest, target: &Target, body: Option<&Bytes>, asks_usage: bool) {
        if let Some(sheet) = &mut self.sheet {
            sheet.sends(target.origin.authority_value(), request.path(), request.headers(), body, asks_usage);
        }
    }

    /// What guardrails said so far.
    pub fn checked(&mut self, hook_log: HookLog) {
        self.hook_results = Some(bounded_results(hook_log.results));
        self.late = hook_log.late;
    }

    /// What they said until now, as JSON.
    pub fn hook_results(&self) -> Option<&str> {
        self.hook_results.as_deref()
    }

    /// The present target's format cannot say these parameters, or its row leaves them out.
    pub fn drops(&mut self, names: &[String]) {
        if let Some(attempt) = &mut self.attempt {
            attempt.dropped = names.to_vec();
        }
    }

    /// The target is sent this head, and the client's own body.
    pub fn sends_on(&mut self, head: &RequestHeader, target: &Target) {
        if let Some(sheet) = &mut self.sheet {
            sheet.sends(target.origin.authority_value(), head.uri.path(), &head.headers, None, false);
        }
    }

    /// Whether what the client sends and gets is kept beside the row.
    pub fn keeps_bodies(&self) -> bool {
        self.sheet.is_some()
    }

    /// The client gets this head.
    pub fn answers(&mut self, status: u16, head: &HeaderMap) {
        if let Some(sheet) = &mut self.sheet {
            sheet.answers(status, head);
        }
    }

    /// The client gets these bytes, which are ours.
    pub fn tells(&mut self, bytes: &[u8]) {
        if let Some(sheet) = &mut self.sheet {
            sheet.gather(bytes);
        }
    }

    /// A target is turned to; a retry of the same one goes on with its record.
    pub fn turn_to(&mut self, target: &Target, model: Option<&str>, option: &HeaderValue, waited: Duration) {
        if self.attempt.as_ref().is_some_and(|attempt| attempt.option == *option) {
            return;
        }
        if let Some(sheet) = &mut self.sheet {
            sheet.turn();
        }
        self.mark_credential(target.own_bearer.is_some());
        let mut attempt = Attempt::new(target, model, self.uri.path(), option, waited);
        attempt.found.is_look_up = self.method.is_safe();
        self.attempt = Some(attempt);
    }

    /// Somebody is turned to who is no provider.
    pub fn turn_to_service(&mut self, service: &str, name: &str) {
        self.attempt = Some(Attempt::of_service(service, Some(name), &HeaderValue::from_static("config")));
    }

    /// What the present call costs if it is answered, in nano-cents.
    pub fn price_at(&mut self, nano_cents: u64) {
        if let Some(attempt) = &mut self.attempt {
            attempt.own_price = Some(nano_cents);
        }
    }

    /// It is sent this head, and the client's own body.
    pub fn sends_to_service<'h>(
        &mut self,
        authority: &HeaderValue,
        path: &str,
        headers: impl IntoIterator<Item = (&'h HeaderName, &'h HeaderValue)>,
    ) {
        if let Some(sheet) = &mut self.sheet {
            sheet.sends(authority, path, headers, None, false);
        }
    }

    /// Whether a target is being tried that this one would replace.
    pub fn is_elsewhere(&self, option: &HeaderValue) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.option != *option)
    }

    /// The present target's bytes are not ours to change; its answer begins with this head.
    /// What is held of it to be read counts in `memory`.
    pub fn relays(&mut self, head: &ResponseHeader, memory: &Arc<BodyMemory>) {
        if let Some(attempt) = &mut self.attempt {
            let owner = MemoryOwner { memory, tenant: self.caller.tenant() };
            attempt.relays(&head.headers, head.status.is_success(), owner);
        }
    }

    /// Bytes of a relayed answer pass.
    pub fn relayed(&mut self, piece: &Bytes, is_last: bool, after: Duration) {
        self.tells(piece);
        if let Some(attempt) = &mut self.attempt {
            attempt.relayed(piece, is_last, after);
        }
    }

    /// A text of a session came from the client.
    pub fn hears(&mut self, text: &[u8]) {
        if let Some(sheet) = &mut self.sheet {
            sheet.hears(text);
        }
    }

    /// A text of a session came from the provider.
    pub fn says(&mut self, text: &[u8]) {
        if let Some(sheet) = &mut self.sheet {
            sheet.says(text);
        }
    }

    /// One response of a session is over, and the session goes on.
    pub fn settle_response(
        &mut self,
        facts: &RecordFacts<'_>,
        took: Duration,
        usage: Option<String>,
        admission: ResponsePromise,
    ) {
        let Some(mut attempt) = self.attempt.take() else { return };
        attempt.found.usage = usage.into_iter().collect();
        let charges = admission.as_ref().map(|admission| admission.charges(true)).unwrap_or_default();
        let times = [took, took, Duration::ZERO];
        let guess = self.write(facts, facts.record_id, Some(&mut attempt), times, charges);
        if let Some(admission) = admission {
            admission.settle(&attempt.used(guess, facts.status));
        }
        attempt.found.usage.clear();
        self.attempt = Some(attempt);
        if let Some(sheet) = &mut self.sheet {
            sheet.begin_anew();
        }
    }

    /// The present target's answer was a websocket session, which is over.
    pub fn sums_up(&mut self, websocket: &Websocket) {
        if let Some(attempt) = &mut self.attempt {
            attempt.unheard = websocket.guess();
        }
    }

    /// The answer of the present target comes from the cache.
    pub fn hits(&mut self, entry: &Entry) {
        if let Some(attempt) = &mut self.attempt {
            attempt.hits(entry);
        }
    }

    /// What the answer has said of its usage so far.
    pub fn found(&self) -> Option<&UsageReader> {
        self.attempt.as_ref().map(|attempt| &attempt.found)
    }

    /// Whether the stream has said all it has to say, though it has not ended.
    pub fn is_complete(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.found.is_final)
    }

    /// A stream has begun to say something.
    pub fn streams(&mut self, after: Duration) {
        if let Some(attempt) = &mut self.attempt {
            attempt.is_stream = true;
            attempt.first_token.get_or_insert(after);
        }
    }

    /// Bytes of a plain answer pass.
    pub fn plain(&mut self, piece: &Bytes, is_last: bool) {
        if let Some(sheet) = &mut self.sheet {
            sheet.piece(piece);
        }
        if let Some(attempt) = &mut self.attempt {
            attempt.reads(piece, is_last);
        }
    }

    /// A plain answer passes that steps have changed: what the provider sent counts, what the client gets is kept.
    pub fn changed(&mut self, read: &Bytes, passed: &Bytes) {
        if let Some(sheet) = &mut self.sheet {
            sheet.piece(passed);
        }
        if let Some(attempt) = &mut self.attempt {
            attempt.images = usage::images::made(&canonical(self.uri.path()), passed);
            attempt.reads(read, true);
        }
    }

    /// What a plain answer says of its usage, whatever the client gets of it.
    pub fn counts(&mut self, piece: &[u8], is_last: bool) {
        if let Some(attempt) = &mut self.attempt {
            attempt.found.plain(piece, is_last);
        }
    }

    /// Whole events of a stream pass, and what the client gets of them.
    pub fn events(&mut self, whole: &[u8], passed: &[u8]) {
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| !attempt.is_hit) {
            attempt.found.events(whole);
        }
        self.tells(passed);
    }

    /// Notes what strict budgets promised to the call that is about to leave, once for each target. False when it could not
    /// be written: then the call must not leave.
    pub fn promise(&mut self, request_id: Uuid, admission: &Admission) -> bool {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| !attempt.is_promised) else { return true };
        let Some((charges, amounts)) = admission.promises() else { return true };
        attempt.promised_answer = admission.most_answer();
        attempt.is_promised = self.journal.promise(&Intent {
            boot: self.journal.boot(),
            request_id,
            attempt: self.attempts,
            organisation_id: self.caller.workspace.organisation_id,
            charges,
            amounts,
        });
        attempt.is_promised
    }

    /// The present target has answered with this, which the client does not get.
    pub fn pays(&mut self, paid: &PaidAnswer) {
        if let Some(attempt) = &mut self.attempt {
            attempt.pays(paid);
        }
    }

    /// The present target has answered, and is paid whatever becomes of its answer.
    pub fn is_answered(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.is_paid = true;
        }
    }

    /// All of a relayed call was sent.
    pub fn sent_whole(&mut self) {
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| !attempt.is_relayed) {
            attempt.sent_whole();
        }
    }

    /// The provider has not worked on what it was sent.
    pub fn not_worked_on(&mut self) {
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.is_unheard) {
            attempt.not_worked_on();
        }
    }

    /// A second call of the present target was made beside it, and one of the two was overtaken: what it was sent is paid
    /// for, as far as anybody can tell. `paid` is what it answered, if it did.
    pub fn overtakes(
        &mut self,
        facts: &RecordFacts<'_>,
        paid: Option<&PaidAnswer>,
        began: Instant,
        admission: Option<&mut Admission>,
    ) {
        let Some(mut other) = self.attempt.as_ref().map(Attempt::sibling) else { return };
        other.began = began;
        if let Some(paid) = paid {
            other.pays(paid);
        }
        let time = began.elapsed();
        let id = request_id::new(SystemTime::now() - time);
        let charges = admission.as_ref().map(|admission| admission.charges(false)).unwrap_or_default();
        // What was sent and answered is kept with the call that won.
        let sheet = self.sheet.take();
        let guess = self.write(facts, id, Some(&mut other), [time, time, Duration::ZERO], charges);
        self.sheet = sheet;
        if let Some(admission) = admission {
            admission.overtakes(&other.used(guess, facts.status));
        }
        self.attempts = self.attempts.saturating_add(1);
    }

    /// The present target has failed and another takes its place. `answered` is what the client does not get to see.
    pub fn set_aside(
        &mut self,
        facts: &RecordFacts<'_>,
        answered: Option<(&HeaderMap, &Bytes)>,
        admission: Option<&mut Admission>,
    ) {
        let Some(mut attempt) = self.attempt.take() else { return };
        if let (Some(sheet), Some((head, body))) = (&mut self.sheet, answered) {
            sheet.answers(facts.status, head);
            sheet.piece(body);
        }
        let time = attempt.began.elapsed();
        let id = request_id::new(SystemTime::now() - time);
        let waited = facts.upstream.saturating_sub(attempt.waited_before);
        let charges = admission.as_ref().map(|admission| admission.charges(false)).unwrap_or_default();
        let times = [time, waited, time.saturating_sub(waited)];
        let guess = self.write(facts, id, Some(&mut attempt), times, charges);
        if let Some(admission) = admission {
            admission.set_aside(&attempt.used(guess, facts.status));
        }
        self.attempts = self.attempts.saturating_add(1);
    }

    /// The request has its answer, or will never have one.
    /// `told_costs` prices a stream that tells what it cost.
    pub fn settle(
        mut self: Box<Self>,
        facts: &RecordFacts<'_>,
        admission: Option<Box<Admission>>,
        client_tariff: Option<&Tariff>,
    ) -> Option<AnswerCost> {
        let mut attempt = self.attempt.take();
        if let Some(attempt) = &mut attempt {
            self.forget_counted_usage(attempt);
        }
        // What asked nobody, or was refused by a limit, used nothing; a session that a limit ended has.
        let has_used =
            |attempt: &Attempt| attempt.unheard.is_some() || !facts.error_code.is_some_and(RefusalCode::is_limit);
        let is_charged = attempt.as_ref().is_some_and(has_used);
        let charged = admission.as_ref().filter(|_| is_charged);
        let charges = charged.map(|admission| admission.charges(true)).unwrap_or_default();
        let time = facts.started.elapsed();
        let times = [time, facts.upstream, facts.head_after.unwrap_or(time).saturating_sub(facts.upstream)];
        let guess = self.write(facts, facts.record_id, attempt.as_mut(), times, charges);
        let streamed =
            attempt.as_mut().filter(|attempt| attempt.row.is_some() && attempt.is_stream && !attempt.is_relayed);
        let cost = streamed.zip(client_tariff).map(|(attempt, tariff)| attempt.price(guess, tariff));
        match (admission, &attempt) {
            (Some(admission), Some(attempt)) if is_charged => admission.settle(&attempt.used(guess, facts.status)),
            (Some(admission), _) => admission.give_back(),
            (None, _) => {}
        }
        cost
    }
}
