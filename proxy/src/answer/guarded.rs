//! The step that runs the hooks of an answer and tells what all hooks said: `hook_results` in a body or in events, 246 for
//! what failed, a denial in place of the answer, values back where placeholders stood. Behind the translation, so that checks
//! see what the client would.

use super::soft_denial;
use super::steps::{LARGEST_CHANGED_BODY, ResponseStep, Unusable};
use crate::conversation::WireFormat;
use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, HeldBack, Release, RemoteSide, Rewriting, SideJob, SideResult, StreamShape,
    run_side,
};
use crate::refusal::Refusal;
use crate::request::sse;
use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::response::Parts;
use http::{HeaderMap, StatusCode, header};
use pingora_http::ResponseHeader;
use serde_json::{Map, Value, json};
use shared::guardrails::{Hook, Scope, Shape, TextPlaces};
use std::sync::Arc;

/// A call whose request passed its hooks, and what its answer must pass.
pub struct GuardedCall {
    pub output: Vec<Arc<CompiledHook>>,
    /// What the hooks of the request said.
    pub input: SideResult,
    /// The one of them that denies it.
    pub denying: Option<Arc<CompiledHook>>,
    /// As the hooks saw it.
    pub request: Arc<Value>,
    /// Who asks others, where a hook of the answer has a check that they answer.
    pub remote: Option<Arc<RemoteSide>>,
    pub shape: Shape,
    pub request_type: &'static str,
    pub metadata: Map<String, Value>,
    /// Whether streams keep to their format, without events of ours.
    pub is_strict: bool,
    /// How the client is answered where a denial is an ordinary answer.
    pub format: WireFormat,
    pub request_id: String,
    pub meters: Arc<GuardMeters>,
}

impl GuardedCall {
    fn inputs<'g>(&'g self, headers: &'g HeaderMap) -> GuardInputs<'g> {
        GuardInputs {
            hook: Hook::AfterRequest,
            shape: self.shape,
            request_type: self.request_type,
            request: &self.request,
            metadata: &self.metadata,
            headers,
            text: None,
        }
    }

    /// The run of its hooks where others must be asked.
    fn job(&self, body: Value, text: Option<Arc<str>>, status: u16, size: usize) -> SideJob {
        SideJob {
            hooks: self.output.clone(),
            hook: Hook::AfterRequest,
            shape: self.shape,
            request_type: self.request_type,
            request: self.request.clone(),
            body: Arc::new(body),
            metadata: Arc::new(self.metadata.clone()),
            headers: Arc::default(),
            text,
            status: Some(status),
            size,
            meters: self.meters.clone(),
        }
    }

    pub fn model(&self) -> &str {
        self.request.get("model").and_then(Value::as_str).unwrap_or_default()
    }

    /// What hooks said, for the client.
    pub fn results(&self, output: Option<&SideResult>) -> Value {
        json!({
            "before_request_hooks": self.input.told(),
            "after_request_hooks": output.map(SideResult::told).unwrap_or_default(),
        })
    }

    /// The same for the log, with those that ran beside the call.
    pub fn logged(&self, output: Option<&SideResult>) -> String {
        json!({
            "before_request_hooks": self.input.logged(),
            "after_request_hooks": output.map(SideResult::logged).unwrap_or_default(),
        })
        .to_string()
    }
}

pub struct Guarded {
    call: Arc<GuardedCall>,
    is_success: bool,
    is_json: bool,
    is_stream: bool,
    /// What the hooks of the answer said.
    output: Option<SideResult>,
    denial: Option<Box<Refusal>>,
    stream: Option<Box<GuardedStream>>,
    told: Option<String>,
    status: u16,
    /// What waits until others were asked.
    waiting: Option<Box<WaitingAnswer>>,
    asking: Option<BoxFuture<'static, Option<SideResult>>>,
}

enum WaitingAnswer {
    /// A whole body, as it came and read.
    Body(Bytes, Arc<Value>),
    /// A stream whose text is whole; true when it is over, too.
    Stream(bool),
}

struct GuardedStream {
    held: HeldBack,
    rewriting: Option<Rewriting>,
    has_begun: bool,
    is_over: bool,
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
            stream: None,
            told: None,
            status: 0,
            waiting: None,
            asking: None,
        }
    }

    fn deny(&mut self, side: &SideResult) -> Unusable {
        self.call.meters.denies("output");
        self.told = Some(self.call.logged(Some(side)));
        let message = side.denied_by.and_then(|place| self.call.output[place].actions.message.clone());
        self.denial = Some(Box::new(Refusal::denied_by_guardrail(message, self.call.results(Some(side)))));
        Unusable("a guardrail denied it".into())
    }

    /// A whole answer with a success status.
    fn answer(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        let headers = HeaderMap::new();
        let has_hooks = !call.output.is_empty() || !call.input.placeholders.is_empty();
        let parsed: Option<Value> = match has_hooks {
            true => serde_json::from_slice(&body).ok(),
            false => None,
        };
        match parsed {
            Some(answer) => {
                if let Some(remote) = call.remote.clone() {
                    let job = call.job(answer, None, self.status, body.len());
                    self.waiting = Some(Box::new(WaitingAnswer::Body(body, job.body.clone())));
                    self.asking = Some(job.run(remote).boxed());
                    return Ok(Bytes::new());
                }
                let side = run_side(&call.output, call.inputs(&headers), &answer, &call.meters);
                self.judged_body(body, &answer, side)
            }
            // What cannot be read cannot be judged: with hooks that may deny it does not pass.
            None if call.output.iter().any(|hook| hook.actions.denies && !hook.actions.is_async) => {
                Err(Unusable("it is not JSON, and a guardrail must judge it".into()))
            }
            None => Ok(self.with_told(body, SideResult::default())),
        }
    }

    /// What becomes of a body that hooks have judged.
    fn judged_body(&mut self, body: Bytes, answer: &Value, mut side: SideResult) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        if let Some(place) = side.denied_by {
            if !call.output[place].actions.softens {
                return Err(self.deny(&side));
            }
            call.meters.denies("output");
            let message = call.output[place].actions.message.clone();
            let soft = soft_denial::body(&call, message.as_deref());
            let results = call.results(Some(&side));
            self.told = Some(call.logged(Some(&side)));
            side.is_failed = false;
            self.output = Some(side);
            return Ok(with_results(soft, &results));
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
        let changed = restored.or(passed);
        let body = changed.map_or(body, |json| Bytes::from(json.to_string()));
        Ok(self.with_told(body, side))
    }

    /// A body with what its hooks said.
    fn with_told(&mut self, body: Bytes, side: SideResult) -> Bytes {
        let results = self.call.results(Some(&side));
        self.told = Some(self.call.logged(Some(&side)));
        self.output = Some(side);
        with_results(body, &results)
    }

    /// The text of a stream is whole: others are asked about it, if they must be.
    fn ask_about_stream(&mut self, is_end: bool) {
        let (Some(stream), Some(remote)) = (&mut self.stream, self.call.remote.clone()) else { return };
        let Some(text) = stream.held.take_unjudged() else { return };
        let size = text.len();
        let job = self.call.job(Value::Null, Some(text.into()), self.status, size);
        self.waiting = Some(Box::new(WaitingAnswer::Stream(is_end)));
        self.asking = Some(job.run(remote).boxed());
    }

    /// What a stream still holds when it is over.
    fn flush(&mut self, out: &mut BytesMut) {
        if let Some(rewriting) = self.stream.as_mut().and_then(|stream| stream.rewriting.as_mut()) {
            for (name, event) in rewriting.flush() {
                put_event(out, name.as_deref(), &event);
            }
        }
    }

    fn pass(&mut self, released: Release, report: Option<SideResult>) -> Result<Bytes, Unusable> {
        if let Some(side) = report {
            self.told = Some(self.call.logged(Some(&side)));
            self.output = Some(side);
        }
        match released {
            Release::Pass(bytes) => Ok(bytes),
            Release::TooLong => Err(Unusable("it is longer than a guardrail can hold".into())),
            Release::Denied(side) => Err(self.deny(&side)),
        }
    }

    /// Events that passed, with their texts as they are to be, and what hooks said before and after them.
    fn dress(&mut self, passed: &Bytes) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        let Some(stream) = &mut self.stream else { return Ok(passed.clone()) };
        let mut out = BytesMut::new();
        if !stream.has_begun && !passed.is_empty() {
            stream.has_begun = true;
            let told = call.input.told();
            if !call.is_strict && !told.is_empty() {
                put_results(&mut out, call.shape, &json!({ "before_request_hooks": told }));
            }
        }
        match &mut stream.rewriting {
            None => out.extend_from_slice(passed),
            Some(rewriting) => {
                for raw in sse::raw_events(passed) {
                    rewrite(rewriting, &raw, call.shape, &mut out)?;
                }
            }
        }
        if let Some(side) = self.output.as_ref().filter(|_| !stream.is_over) {
            stream.is_over = true;
            let told = side.told();
            if !call.is_strict && !told.is_empty() {
                put_results(&mut out, call.shape, &json!({ "after_request_hooks": told }));
            }
        }
        Ok(out.freeze())
    }
}

impl ResponseStep for Guarded {
    fn begin(&mut self, head: &ResponseHeader, is_stream: bool) {
        self.is_success = head.status.is_success();
        self.status = head.status.as_u16();
        self.is_stream = is_stream;
        let kind = head.headers.get(header::CONTENT_TYPE);
        self.is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        self.stream = StreamShape::new(self.call.shape).filter(|_| is_stream && self.is_success).map(|shape| {
            Box::new(GuardedStream {
                held: HeldBack::new(self.call.output.clone(), shape).asking(self.call.remote.is_some()),
                rewriting: Rewriting::new(&self.call.output, &self.call.input.placeholders, shape),
                has_begun: false,
                is_over: false,
            })
        });
        // Told by an answer that no hook looks at, too.
        self.told = Some(self.call.logged(None));
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
            return self.is_json && length.is_some_and(|length: usize| length <= LARGEST_CHANGED_BODY);
        }
        let must_judge = !self.call.output.is_empty() && head.status.is_success();
        !self.is_stream && (self.is_json || must_judge)
    }

    fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        match self.is_success {
            true => self.answer(body),
            false => Ok(with_results(body, &self.call.results(None))),
        }
    }

    fn events(&mut self, events: Bytes) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        let headers = HeaderMap::new();
        let mut passed = BytesMut::new();
        for raw in sse::raw_events(&events) {
            let Some(stream) = &mut self.stream else { return Ok(events) };
            let data =
                sse::events(&with_blank_line(&raw)).next().map(|event| event.data.into_owned()).unwrap_or_default();
            let data = data.trim_ascii();
            let read: Option<Value> = if data.starts_with(b"{") { serde_json::from_slice(data).ok() } else { None };
            if stream.held.judges_next() && read.is_none() && !matches!(data, b"" | b"[DONE]") {
                return Err(Unusable("an event is no JSON object, and a guardrail must judge it".into()));
            }
            let mut report = None;
            let released = stream.held.push(raw, read.as_ref(), data, call.inputs(&headers), &call.meters, &mut report);
            let released = self.pass(released, report);
            passed.extend_from_slice(&released?);
        }
        let dressed = self.dress(&passed.freeze());
        self.ask_about_stream(false);
        dressed
    }

    fn finish(&mut self) -> Result<Bytes, Unusable> {
        let call = self.call.clone();
        let headers = HeaderMap::new();
        let Some(stream) = &mut self.stream else { return Ok(Bytes::new()) };
        let mut report = None;
        let released = stream.held.finish(call.inputs(&headers), &call.meters, &mut report);
        let passed = self.pass(released, report)?;
        let mut out = BytesMut::from(self.dress(&passed)?.as_ref());
        self.ask_about_stream(true);
        if self.asking.is_none() {
            self.flush(&mut out);
        }
        Ok(out.freeze())
    }

    fn asks(&mut self) -> Option<BoxFuture<'static, Option<SideResult>>> {
        self.asking.take()
    }

    fn judged(&mut self, side: Option<SideResult>) -> Result<Bytes, Unusable> {
        let Some(side) = side else { return Err(Unusable("a guardrail could not judge it".into())) };
        match self.waiting.take().map(|waiting| *waiting) {
            None => Ok(Bytes::new()),
            Some(WaitingAnswer::Body(body, answer)) => self.judged_body(body, &answer, side),
            Some(WaitingAnswer::Stream(is_end)) => {
                let Some(stream) = &mut self.stream else { return Ok(Bytes::new()) };
                let mut report = None;
                let released = stream.held.judged(side, &mut report);
                let passed = self.pass(released, report)?;
                let mut out = BytesMut::from(self.dress(&passed)?.as_ref());
                if is_end {
                    self.flush(&mut out);
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

    fn told(&mut self) -> Option<String> {
        self.told.take()
    }
}

/// An event whose texts are rewritten; what is no JSON passes behind what was held.
fn rewrite(rewriting: &mut Rewriting, raw: &Bytes, shape: Shape, out: &mut BytesMut) -> Result<(), Unusable> {
    let whole = with_blank_line(raw);
    let event = sse::events(&whole).next();
    let Some(event) = event else {
        out.extend_from_slice(raw);
        return Ok(());
    };
    let read: Option<Value> = serde_json::from_slice(&event.data).ok();
    let is_last = StreamShape::new(shape).is_some_and(|shape| shape.is_last(read.as_ref(), event.data.trim_ascii()));
    let rewritten = match &read {
        Some(read) => rewriting.push(event.name.as_deref(), read),
        None if is_last => Ok(Some(rewriting.flush())),
        None => Ok(None),
    };
    let rewritten = rewritten.map_err(|_| Unusable("it is longer than a guardrail can hold".into()))?;
    for (name, event) in rewritten.iter().flatten() {
        put_event(out, name.as_deref(), event);
    }
    if rewritten.is_none() || read.is_none() {
        out.extend_from_slice(raw);
    }
    Ok(())
}

fn put_event(out: &mut BytesMut, name: Option<&str>, event: &Value) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {event}\n\n").as_bytes());
}

/// One more event, of ours.
fn put_results(out: &mut BytesMut, shape: Shape, results: &Value) {
    let name = matches!(shape, Shape::Messages | Shape::Responses).then_some("hook_results");
    put_event(out, name, &json!({ "hook_results": results }));
}

/// A body with one more field. Everything else of it stays as it was written.
pub fn with_results(body: Bytes, results: &Value) -> Bytes {
    let text = body.trim_ascii();
    let Some(inside) = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")) else { return body };
    let comma: &[u8] = if inside.trim_ascii().is_empty() { b"" } else { b"," };
    let mut out = BytesMut::with_capacity(body.len() + 512);
    for part in [b"{", inside, comma, b"\"hook_results\":", results.to_string().as_bytes(), b"}"] {
        out.extend_from_slice(part);
    }
    out.freeze()
}

/// The last event of a stream may lack what ends it.
fn with_blank_line(event: &Bytes) -> Bytes {
    if [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].iter().any(|blank| event.ends_with(blank)) {
        return event.clone();
    }
    let mut whole = BytesMut::from(event.as_ref());
    whole.extend_from_slice(b"\n\n");
    whole.freeze()
}
