//! The step that runs the hooks of an answer and tells what all hooks said: `hook_results` in a body or in events, 246 for
//! what failed, a denial in place of the answer, values back where placeholders stood. Behind the translation, so that checks
//! see what the client would.

mod call;
mod later;
mod stream;
mod written;

pub use call::{GuardedCall, SeenRequest};
pub use later::{Answered, AsyncHooks};
pub use written::{results_event, with_denial, with_results};

use super::soft_denial;
use super::steps::{MAX_CHANGED_BODY, ResponseStep, Unusable};
use crate::cache::CachedBody;
use crate::guardrails::{Release, SideResult, must_read, run_side};
use crate::journal::HookLog;
use crate::request::refusal::Refusal;
use crate::runtime::heavy::SMALL;
use crate::runtime::tenant_share::Tenant;
use crate::wire::event_texts::StreamShape;
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::response::Parts;
use http::{HeaderMap, StatusCode, header};
use pingora_http::ResponseHeader;
use serde_json::Value;
use shared::guardrails::{Hook, Scope, Shape, TextPlaces};
use std::sync::Arc;
use stream::GuardedStream;

pub struct Guarded {
    call: Arc<GuardedCall>,
    is_success: bool,
    is_json: bool,
    is_stream: bool,
    /// What the hooks of the answer said, where there are any.
    output: Option<Box<SideResult>>,
    denial: Option<Box<Refusal>>,
    /// What the hooks said that denied it.
    denied: Option<Box<SideResult>>,
    stream: Option<Box<GuardedStream>>,
    /// What it was answered with, until what hooks said of it is told.
    answered: Option<Answered>,
    /// What may be kept of it: never what hooks said.
    cached_body: CachedBody,
    /// What waits until others were asked.
    waiting: Option<WaitingAnswer>,
    asking: Option<BoxFuture<'static, Option<SideResult>>>,
}

enum WaitingAnswer {
    /// A whole body, as it came and read.
    Body(Bytes, Arc<Value>),
    /// A stream whose text is whole; true when it is over, too.
    Stream(bool),
}

impl Guarded {
    pub fn new(call: Arc<GuardedCall>) -> Self {
        Self {
            call,
            is_success: false,
            is_json: false,
            is_stream: false,
            output: None,
            denial: None,
            denied: None,
            stream: None,
            answered: None,
            waiting: None,
            asking: None,
            cached_body: CachedBody::Nothing,
        }
    }

    fn deny(&mut self, side: Box<SideResult>) -> Unusable {
        self.call.meters.denies("output");
        self.answered = Some(self.take_answered());
        let message = side.denied_by.and_then(|place| self.call.output[place].actions.message.clone());
        self.denial = Some(Box::new(Refusal::denied_by_guardrail(message, &self.call.results(Some(&side)))));
        self.denied = Some(side);
        Unusable("a guardrail denied it".into())
    }

    /// What a stream said, where a hook looks at it later.
    fn take_answered(&self) -> Answered {
        let stream = self.stream.as_ref().filter(|_| self.call.is_looked_at_later());
        stream.map_or(Answered::Nothing, |stream| Answered::Text(stream.whole_text()))
    }

    /// A whole answer with a success status.
    fn answer(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        if self.call.output.is_empty() && self.call.input.placeholders.is_empty() {
            return Ok(self.with_results(body.clone(), body, None));
        }
        let call = self.call.clone();
        let headers = HeaderMap::new();
        match serde_json::from_slice::<Value>(&body).ok() {
            Some(answer) => {
                if let Some(remote) = call.asker() {
                    let answer = Arc::new(answer);
                    let job = call.job(&call.output, answer.clone(), None, body.len());
                    self.waiting = Some(WaitingAnswer::Body(body, answer));
                    self.asking = Some(job.run(remote).boxed());
                    return Ok(Bytes::new());
                }
                let side = run_side(&call.output, call.inputs(&headers), &answer, &call.meters);
                self.judged_body(body, &answer, side)
            }
            // What cannot be read cannot be judged or changed.
            None if call.output.iter().any(|hook| hook.must_read()) => {
                Err(Unusable("it is not JSON, and a guardrail must judge it".into()))
            }
            None => Ok(self.with_results(body.clone(), body, None)),
        }
    }

    /// What becomes of a body that hooks have judged.
    fn judged_body(&mut self, body: Bytes, answer: &Value, mut side: SideResult) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        let came = body.clone();
        if let Some(place) = side.denied_by {
            if !call.output[place].actions.softens {
                let denied = self.deny(Box::new(side));
                self.answered = Some(Answered::Plain(came));
                return Err(denied);
            }
            call.meters.denies("output");
            let message = call.output[place].actions.message.clone();
            let soft = soft_denial::body(&call, message.as_deref());
            let soft = with_denial(soft, &call, Some(&side));
            self.answered = Some(Answered::Plain(came));
            side.is_failed = false;
            self.output = Some(Box::new(side));
            return Ok(soft);
        }
        let passed = side.transformed.take();
        let seen = passed.as_ref().unwrap_or(answer);
        let restored = match call.input.placeholders.is_empty() {
            true => None,
            false => TextPlaces::find(seen, call.shape, Hook::AfterRequest, Scope::All).replace(seen, |text| {
                let restored = call.input.placeholders.restore(text, true);
                restored.is_changed.then_some(restored.text)
            }),
        };
        let body = restored.or(passed).map_or(body, |json| Bytes::from(json.to_string()));
        Ok(self.with_results(body, came, Some(Box::new(side))))
    }

    /// A body with what its hooks said of the one that came.
    fn with_results(&mut self, body: Bytes, came: Bytes, side: Option<Box<SideResult>>) -> Bytes {
        self.answered = Some(if self.call.is_looked_at_later() { Answered::Plain(came) } else { Answered::Nothing });
        self.output = side;
        // What was put back belongs to this request alone, and others are sent alike without it.
        if self.call.input.placeholders.is_empty() {
            self.cached_body = CachedBody::Instead(body.clone());
        }
        if self.call.tells_results() { with_results(body, &self.call, self.output.as_deref()) } else { body }
    }

    /// The text of a stream is whole: others are asked about it, if they must be.
    fn ask_about_stream(&mut self) {
        let (Some(stream), Some(remote)) = (&mut self.stream, self.call.asker()) else { return };
        let Some(job) = stream.question(&self.call) else { return };
        self.waiting = Some(WaitingAnswer::Stream(false));
        self.asking = Some(job.run(remote).boxed());
    }

    fn pass(&mut self, released: Release, report: Option<SideResult>) -> Result<Bytes, Unusable> {
        if let Some(side) = report {
            self.answered = Some(self.take_answered());
            self.output = Some(Box::new(side));
        }
        match released {
            Release::Pass(bytes) => Ok(bytes),
            Release::TooLong => Err(Unusable("it is longer than a guardrail can hold".into())),
            Release::Denied(side) => Err(self.deny(side)),
        }
    }

    /// Events that passed, as the client gets them.
    fn dress(&mut self, passed: &Bytes) -> Result<Bytes, Unusable> {
        match &mut self.stream {
            Some(stream) => stream.dress(passed, &self.call, self.output.as_deref()),
            None => Ok(passed.clone()),
        }
    }
}

impl ResponseStep for Guarded {
    fn begin(&mut self, head: &ResponseHeader, is_stream: bool) {
        self.is_success = head.status.is_success();
        self.is_stream = is_stream;
        let kind = head.headers.get(header::CONTENT_TYPE);
        self.is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let shape = StreamShape::new(self.call.shape).filter(|_| is_stream && self.is_success);
        self.stream = shape.map(|shape| Box::new(GuardedStream::new(&self.call, shape)));
        // Told by an answer that no hook looks at, too.
        self.answered = Some(Answered::Nothing);
    }

    fn head(&self, head: &mut Parts) {
        if let Some(status) = self.status().and_then(|status| StatusCode::from_u16(status).ok()) {
            head.status = status;
        }
    }

    fn takes_body(&self, head: &ResponseHeader) -> bool {
        // Vectors are only told of, and pass untold where they are too many to be held.
        if self.call.shape == Shape::Embeddings {
            let length = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            return self.is_json && length.is_some_and(|length: usize| length <= MAX_CHANGED_BODY);
        }
        let must_judge = !self.call.output.is_empty() && head.status.is_success();
        !self.is_stream && (self.is_json || must_judge)
    }

    fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        match self.is_success {
            true => self.answer(body),
            false if self.call.tells_results() => Ok(with_results(body, &self.call, None)),
            false => Ok(body),
        }
    }

    fn events(&mut self, events: Bytes) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        let mut passed = BytesMut::new();
        for raw in sse::raw_events(&events) {
            let Some(stream) = &mut self.stream else {
                return match self.is_success && must_read(&self.call.output) {
                    true => Err(Unusable("it is a stream of a form that a guardrail cannot judge".into())),
                    false => Ok(events),
                };
            };
            let (released, report) = stream.push(raw, &call)?;
            passed.extend_from_slice(&self.pass(released, report)?);
        }
        if let Some(Err(refusal)) = self.stream.as_mut().map(|stream| stream.count_held(&call)) {
            self.denial = Some(Box::new(refusal));
            return Err(Unusable("there is no room to hold it".into()));
        }
        let dressed = self.dress(&passed.freeze());
        self.ask_about_stream();
        dressed
    }

    fn finish(&mut self) -> Result<Bytes, Unusable> {
        let Some(stream) = &mut self.stream else { return Ok(Bytes::new()) };
        let (released, report) = stream.finish(&self.call);
        let passed = self.pass(released, report)?;
        let mut out = BytesMut::from(self.dress(&passed)?.as_ref());
        self.ask_about_stream();
        match (&mut self.waiting, &mut self.stream) {
            // The end follows when others have judged it.
            (Some(WaitingAnswer::Stream(is_over)), _) => *is_over = true,
            (_, Some(stream)) => stream.flush(&mut out),
            (_, None) => {}
        }
        Ok(out.freeze())
    }

    fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    fn tenant(&self) -> Tenant {
        self.call.tenant
    }

    fn asks(&mut self) -> Option<BoxFuture<'static, Option<SideResult>>> {
        self.asking.take()
    }

    fn judged(&mut self, side: Option<SideResult>) -> Result<Bytes, Unusable> {
        let Some(side) = side else { return Err(Unusable("a guardrail could not judge it".into())) };
        match self.waiting.take() {
            None => Ok(Bytes::new()),
            Some(WaitingAnswer::Body(body, answer)) => self.judged_body(body, &answer, side),
            Some(WaitingAnswer::Stream(is_over)) => {
                let Some(stream) = &mut self.stream else { return Ok(Bytes::new()) };
                let (released, report) = stream.judged(side);
                let passed = self.pass(released, report)?;
                let mut out = BytesMut::from(self.dress(&passed)?.as_ref());
                if let Some(stream) = self.stream.as_mut().filter(|_| is_over) {
                    stream.flush(&mut out);
                }
                Ok(out.freeze())
            }
        }
    }

    fn status(&self) -> Option<u16> {
        // A stream's head is gone when its text is judged.
        let is_output_failed = !self.is_stream && self.output.as_ref().is_some_and(|side| side.is_failed);
        let is_failed = self.call.input.is_failed || is_output_failed;
        (self.is_success && is_failed).then_some(246)
    }

    fn denial(&mut self) -> Option<Box<Refusal>> {
        self.denial.take()
    }

    fn holds(&self) -> bool {
        self.stream.is_some()
    }

    /// What a check found fault with is not, nor a stream whose texts were rewritten: only its events were.
    fn cached_body(&self) -> CachedBody {
        let is_failed = self.call.input.is_failed || self.output.as_ref().is_some_and(|side| side.is_failed);
        let is_rewritten = self.stream.as_ref().is_some_and(|stream| stream.is_rewritten());
        match self.is_stream {
            _ if is_failed || self.denial.is_some() || is_rewritten => CachedBody::Nothing,
            true => CachedBody::Passed,
            false => self.cached_body.clone(),
        }
    }

    fn hook_log(&mut self, is_logged: bool) -> Option<HookLog> {
        let answered = self.answered.take()?;
        // That nothing is to be done was told with the request.
        if !is_logged && self.call.later.is_none() {
            return None;
        }
        let judged = self.denied.as_deref().or(self.output.as_deref());
        Some(self.call.log(judged, answered, is_logged))
    }

    fn is_heavy_body(&self, length: usize) -> bool {
        length > SMALL && self.is_success && !self.call.output.is_empty()
    }

    fn is_heavy_end(&self, events: &[u8], is_end: bool) -> bool {
        self.stream.as_deref().is_some_and(|stream| stream.is_heavy_end(events, is_end, SMALL))
    }
}
