//! The last stage: what a request did goes into the journal, one record for each target that was tried, before the
//! last byte of the answer leaves. A `Log` goes along with the request and gathers what only passes by once.

use super::admit::Admission;
use super::admit::admission::Used;
use super::admit::amounts::Item;
use super::identify::Principal;
use crate::bodies::{Rules, Sheet};
use crate::events::Splitter;
use crate::headers::GatewayHeaders;
use crate::journal::{Charges, Journal, Mode, Record};
use crate::plan::Branch;
use crate::realtime::Websocket;
use crate::refusal::Refusal;
use crate::request_id;
use crate::snapshot::SavedConfig;
use crate::stages::plan::{self, Found as Planned};
use crate::target::{Credential, Target};
use crate::usage::{self, Answered, Found, Spoken};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// Longest text of a header that is kept.
const LONGEST: usize = 128;

pub struct Log {
    journal: Arc<Journal>,
    caller: Principal,
    method: Method,
    uri: Uri,
    /// What the client's SDK says of itself, and where the call belongs in its trace.
    said: Vec<(&'static str, HeaderValue)>,
    config: Option<Source>,
    mode: Mode,
    metadata: Option<String>,
    /// For the tokens of a prompt that nobody counted.
    body: Bytes,
    /// Whether some of a relayed body has come.
    has_received: bool,
    attempts: u8,
    attempt: Option<Attempt>,
    /// What the client sent and got; none when only the row is kept.
    sheet: Option<Sheet>,
}

/// Where the config came from.
#[derive(Debug, Clone)]
pub enum Source {
    Saved(Arc<SavedConfig>),
    Inline,
}

/// The target being tried.
struct Attempt {
    began: Instant,
    /// What the whole request had waited for providers when this target was turned to.
    waited_before: Duration,
    ai_org: String,
    virtual_key: Option<Arc<shared::model::Provider>>,
    integration: Option<Uuid>,
    model: Option<String>,
    option: HeaderValue,
    found: Found,
    /// A plain answer that came in one piece and does not say what it used.
    silent: Bytes,
    is_stream: bool,
    is_relayed: bool,
    first_token: Option<Duration>,
    /// How the answer of a relayed call is watched.
    watch: Watch,
    /// It used more than it was heard to say.
    is_unheard: bool,
}

#[derive(Default)]
enum Watch {
    #[default]
    Not,
    Plain,
    Events(Splitter),
}

/// What the visit knows when a record is written.
pub struct Facts<'v> {
    pub request_id: Uuid,
    pub started: Instant,
    pub trace_id: &'v str,
    pub status: u16,
    pub error_code: Option<&'static str>,
    pub retries: i8,
    /// Waited for providers so far.
    pub upstream: Duration,
    /// Since the start, when the head of the answer was there.
    pub head_after: Option<Duration>,
}

/// Suffixes of our own headers whose values are kept.
const SAID: [&str; 6] = ["span-id", "span-name", "parent-span-id", "runtime", "runtime-version", "package-version"];

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
            said: said(head, headers),
            config: None,
            mode: Mode::Single,
            metadata: None,
            body: Bytes::new(),
            has_received: false,
            attempts: 0,
            attempt: None,
            sheet: rules.map(|rules| Sheet::open(rules, head, headers.sensitive_headers)),
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
            (Some(saved), _) => Some(Source::Saved(saved.clone())),
            (None, plan::Source::Inline) => Some(Source::Inline),
            (None, _) => None,
        };
        self.describe(metadata);
    }

    pub fn describe(&mut self, metadata: &Map<String, Value>) {
        self.metadata = (!metadata.is_empty()).then(|| serde_json::to_string(metadata).unwrap_or_default());
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

    /// A piece of the client's body passes.
    pub fn receives(&mut self, piece: &[u8]) {
        if let Some(sheet) = &mut self.sheet {
            sheet.receives(piece);
        }
        if let Some(attempt) = self.attempt.as_mut().filter(|_| !self.has_received) {
            attempt.model = attempt.model.take().or_else(|| usage::native::in_body(piece));
        }
        self.has_received = true;
    }

    /// The target is sent this; `body` where it is not the client's own.
    pub fn sends(&mut self, head: &RequestHeader, target: &Target, body: Option<&Bytes>, asks_usage: bool) {
        if let Some(sheet) = &mut self.sheet {
            sheet.sends(head, target.origin.authority_value(), body, asks_usage);
        }
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
        let stored = match &target.credential {
            Credential::Stored(stored) => Some(stored),
            Credential::Given(_) => None,
        };
        if let Some(sheet) = &mut self.sheet {
            sheet.turn();
        }
        self.attempt = Some(Attempt {
            began: Instant::now(),
            waited_before: waited,
            ai_org: target.provider.name.clone(),
            virtual_key: stored.map(|stored| stored.provider.clone()),
            integration: stored.map(|stored| stored.integration.id),
            model: model.map(str::to_owned).or_else(|| usage::native::in_path(self.uri.path())),
            option: option.clone(),
            found: Found::default(),
            silent: Bytes::new(),
            is_stream: false,
            is_relayed: false,
            first_token: None,
            watch: Watch::Not,
            is_unheard: false,
        });
    }

    /// Whether a target is being tried that this one would replace.
    pub fn is_elsewhere(&self, option: &HeaderValue) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.option != *option)
    }

    /// The present target's bytes are not ours to change; its answer begins with this head.
    pub fn relays(&mut self, head: &HeaderMap) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.is_relayed = true;
        if head.contains_key(header::CONTENT_ENCODING) {
            return;
        }
        let kind = head.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        attempt.is_stream = kind.starts_with(b"text/event-stream");
        attempt.watch = match attempt.is_stream {
            true => Watch::Events(Splitter::default()),
            false if kind.starts_with(b"application/json") => Watch::Plain,
            false => Watch::Not,
        };
    }

    /// Bytes of a relayed answer pass.
    pub fn relayed(&mut self, piece: &Bytes, is_last: bool, after: Duration) {
        self.tells(piece);
        let Some(attempt) = &mut self.attempt else { return };
        match &mut attempt.watch {
            Watch::Not => {}
            Watch::Plain => attempt.reads(piece, is_last),
            Watch::Events(splitter) => match splitter.push(piece.clone()) {
                Ok(whole) => {
                    attempt.first_token.get_or_insert(after);
                    attempt.found.events(&whole);
                }
                Err(_) => attempt.watch = Watch::Not,
            },
        }
    }

    /// The present target's answer was a websocket session, which is over.
    pub fn sums_up(&mut self, websocket: &Websocket) {
        if let Some(attempt) = &mut self.attempt {
            attempt.found.usage = websocket.usage().into_iter().collect();
            attempt.is_unheard = websocket.has_gaps();
        }
    }

    /// Whether the stream has said all it has to say, though it has not ended.
    pub fn is_told(&self) -> bool {
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

    /// What a plain answer says of its usage, whatever the client gets of it.
    pub fn counts(&mut self, piece: &[u8], is_last: bool) {
        if let Some(attempt) = &mut self.attempt {
            attempt.found.plain(piece, is_last);
        }
    }

    /// Whole events of a stream pass, and what the client gets of them.
    pub fn events(&mut self, whole: &[u8], passed: &[u8]) {
        if let Some(attempt) = &mut self.attempt {
            attempt.found.events(whole);
        }
        self.tells(passed);
    }

    /// The present target has failed and another takes its place. `answered` is what the client does not get to see.
    pub fn set_aside(
        &mut self,
        facts: &Facts<'_>,
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
            admission.set_aside(&used(&attempt, guess));
        }
        self.attempts = self.attempts.saturating_add(1);
    }

    /// The request has its answer, or will never have one.
    pub fn settle(mut self: Box<Self>, facts: &Facts<'_>, admission: Option<Box<Admission>>) {
        let mut attempt = self.attempt.take();
        // What asked nobody, or was refused by a limit, used nothing.
        let is_charged = attempt.is_some() && !Refusal::is_limit(facts.error_code);
        let charged = admission.as_ref().filter(|_| is_charged);
        let charges = charged.map(|admission| admission.charges(true)).unwrap_or_default();
        let time = facts.started.elapsed();
        let times = [time, facts.upstream, facts.head_after.unwrap_or(time).saturating_sub(facts.upstream)];
        let guess = self.write(facts, facts.request_id, attempt.as_mut(), times, charges);
        match (admission, &attempt) {
            (Some(admission), Some(attempt)) if is_charged => admission.settle(&used(attempt, guess)),
            (Some(admission), _) => admission.give_back(),
            (None, _) => {}
        }
    }

    /// Returns what the record guesses.
    fn write(
        &mut self,
        facts: &Facts<'_>,
        id: Uuid,
        mut attempt: Option<&mut Attempt>,
        [time, upstream, own]: [Duration; 3],
        charges: Charges<'_>,
    ) -> Option<(u64, u64)> {
        if let Some(attempt) = attempt.as_deref_mut().filter(|attempt| attempt.found.usage.is_empty())
            && facts.status < 400
        {
            attempt.found.usage.extend(usage::images::asked_for(self.uri.path(), &self.body));
        }
        let estimate = attempt.as_deref_mut().and_then(|attempt| self.estimate(attempt, id, facts.status));
        let attempt = attempt.as_deref();
        let found = attempt.map(|attempt| &attempt.found);
        let body = self.sheet.as_mut().and_then(Sheet::parts);
        let (config, config_id, version) = match &self.config {
            Some(Source::Saved(saved)) => {
                (Some(saved.row.slug.as_str()), Some(saved.row.id), Some(saved.row.version_id))
            }
            Some(Source::Inline) => (Some("inline"), None, None),
            None => (None, None, None),
        };
        let said = |name| self.said.iter().find(|(said, _)| *said == name).and_then(|(_, value)| short(value));
        let record = Record {
            id,
            internal_trace_id: facts.request_id,
            organisation_id: self.caller.workspace.organisation_id,
            workspace_id: self.caller.workspace.id,
            api_key_id: self.caller.key.id,
            user_id: self.caller.key.user_id,
            virtual_key: attempt.and_then(|attempt| attempt.virtual_key.as_ref()).map(|key| key.slug.as_str()),
            integration_id: attempt.and_then(|attempt| attempt.integration),
            ai_org: attempt.map(|attempt| attempt.ai_org.as_str()),
            requested_model: attempt.and_then(|attempt| attempt.model.as_deref()),
            answered_model: found.and_then(|found| found.model.as_deref()),
            config,
            config_id,
            config_version_id: version,
            mode: self.mode,
            option: attempt.and_then(|attempt| attempt.option.to_str().ok()),
            method: self.method.as_str(),
            url: self.uri.path(),
            status: facts.status,
            error_code: facts.error_code,
            response_time: millis(time),
            upstream_time: millis(upstream),
            gateway_time: millis(own),
            first_token_time: attempt.and_then(|attempt| attempt.first_token).map(millis),
            usage: found.map(|found| found.usage.iter().map(String::as_str).collect()).unwrap_or_default(),
            estimate,
            service_tier: found.and_then(|found| found.service_tier.as_deref()),
            retries: facts.retries,
            attempt: self.attempts,
            is_stream: attempt.is_some_and(|attempt| attempt.is_stream),
            is_relayed: attempt.is_some_and(|attempt| attempt.is_relayed),
            trace_id: facts.trace_id,
            span_id: said("span-id"),
            span_name: said("span-name"),
            parent_span_id: said("parent-span-id"),
            metadata: self.metadata.as_deref(),
            runtime: said("runtime"),
            runtime_version: said("runtime-version"),
            sdk_version: said("package-version"),
            turned_after: attempt.map_or(0, |attempt| millis(attempt.began.saturating_duration_since(facts.started))),
            has_body: body.is_some(),
            charges,
        };
        self.journal.append_with(&record, body.as_ref());
        estimate
    }

    /// Prompt and completion tokens of what has not said everything: a rough figure for the record, and the texts for
    /// whoever counts them. Whoever received half of a stream pays for half of it. Of a session that could not be listened
    /// to nothing is guessed, but that is known.
    fn estimate(&self, attempt: &mut Attempt, id: Uuid, status: u16) -> Option<(u64, u64)> {
        if attempt.is_unheard {
            return Some((0, 0));
        }
        let (rough, answered) = match attempt.is_stream {
            true if attempt.found.is_final && !attempt.found.usage.is_empty() => return None,
            true => {
                let rough = attempt.found.rough_tokens();
                let (text, length) = attempt.found.take_text();
                (rough, Answered::Stream(text, length))
            }
            false if attempt.silent.is_empty() || status >= 400 || !is_text(self.uri.path()) => return None,
            false => {
                let body = std::mem::take(&mut attempt.silent);
                (usage::rough_tokens(&body), Answered::Plain(body))
            }
        };
        let model = attempt.found.model.clone().or_else(|| attempt.model.clone());
        // A relayed body is not held for us; it may have been kept for its log.
        let asked = match self.body.is_empty() {
            true => self.sheet.as_ref().map(Sheet::asked).unwrap_or_default(),
            false => self.body.clone(),
        };
        let prompt = usage::rough_tokens(&asked);
        self.journal.untold(id, Spoken { model, asked, answered });
        Some((prompt, rough))
    }
}

impl Attempt {
    /// A piece of a plain answer.
    fn reads(&mut self, piece: &Bytes, is_last: bool) {
        let is_whole = is_last && !self.found.has_begun();
        self.found.plain(piece, is_last);
        if is_whole && self.found.usage.is_empty() {
            self.silent = piece.clone();
        }
    }
}

/// Whether the answers to this path are paid for by their text.
fn is_text(path: &str) -> bool {
    ["/completions", "/embeddings", "/messages", "/responses"].iter().any(|ending| path.ends_with(ending))
}

fn used(attempt: &Attempt, guess: Option<(u64, u64)>) -> Used<'_> {
    let item = Item {
        service: &attempt.ai_org,
        integration: attempt.integration,
        requested: attempt.model.as_deref(),
        answered: attempt.found.model.as_deref(),
        tier: attempt.found.service_tier.as_deref(),
    };
    Used { found: &attempt.found, guess, item }
}

fn said(head: &RequestHeader, headers: &GatewayHeaders<'_>) -> Vec<(&'static str, HeaderValue)> {
    let prefixes = [Some(crate::headers::PREFIX), headers.alias.as_deref()];
    let mut said = Vec::new();
    for (name, value) in &head.headers {
        let suffix = prefixes.iter().flatten().find_map(|prefix| HeaderName::as_str(name).strip_prefix(prefix));
        let Some(suffix) = suffix else { continue };
        if let Some(known) = SAID.iter().find(|known| **known == suffix) {
            said.push((*known, value.clone()));
        }
    }
    said
}

fn short(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?;
    Some(text.get(..LONGEST).unwrap_or(text))
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
