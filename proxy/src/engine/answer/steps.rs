//! What is changed of an answer on its way from the provider to the client: an ordered list of steps, made for each call
//! of a target by `engine/response_steps.rs`.
//!
//! A step says what it does to a head, to a whole body and to a stream. It knows neither sockets nor the step before it.
//! An empty list is the fast path: it is looked at once, and the bytes pass as they came.
//!
//! Plain bodies are changed before the commit point, so that an answer that cannot be changed is a failed attempt and
//! the plan goes on. Streams are changed while they are delivered; one that cannot be changed any further is broken off
//! with an error event.

use super::client_frames::{Framer, StreamFrames};
use crate::cache::CachedBody;
use crate::guardrails::SideResult;
use crate::journal::HookLog;
use crate::request::refusal::Refusal;
use crate::runtime::heavy::heavy;
use crate::runtime::tenant_share::Tenant;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::response::Parts;
use pingora_http::ResponseHeader;
use std::borrow::Cow;

/// A plain answer that a step changes is gathered up to this size. A larger one is a failed attempt: it is neither cut
/// nor passed on unchanged.
pub const MAX_CHANGED_BODY: usize = 16 << 20;

/// Lives as long as one answer, so that nothing of a failed attempt reaches the next.
pub trait ResponseStep: Send {
    /// The provider's own head has come, before anything of the body.
    fn begin(&mut self, _head: &ResponseHeader, _is_stream: bool) {}

    /// The head that the client gets, before the gateway's own headers are put on it.
    fn head(&self, _head: &mut Parts) {}

    /// Whether it changes the body of a plain answer with this head, and so must be given all of it.
    fn takes_body(&self, _head: &ResponseHeader) -> bool {
        false
    }

    /// The whole body of a plain answer. Its `Content-Length` is set anew by whoever delivers it.
    fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        Ok(body)
    }

    /// Whether it makes a stream of this plain answer: events, for the steps after it.
    fn becomes_stream(&self) -> bool {
        false
    }

    /// Whole events of a stream, at least one. What is returned are whole events too; the last event of all may lack its
    /// blank line.
    fn events(&mut self, events: Bytes) -> Result<Bytes, Unusable> {
        Ok(events)
    }

    /// The stream is complete: events that were held back. Not called for a stream that breaks off.
    fn finish(&mut self) -> Result<Bytes, Unusable> {
        Ok(Bytes::new())
    }

    /// Whether somebody else must be asked before the last call can be answered in full. Of the last step only.
    fn is_asking(&self) -> bool {
        false
    }

    /// For whom it works. Of the last step only.
    fn tenant(&self) -> Tenant {
        Tenant::GATEWAY
    }

    /// Who is asked, once.
    fn asks(&mut self) -> Option<BoxFuture<'static, Option<SideResult>>> {
        None
    }

    /// What was waited for has come, or none if it broke off: what follows upon what was returned before.
    fn judged(&mut self, _side: Option<SideResult>) -> Result<Bytes, Unusable> {
        Ok(Bytes::new())
    }

    /// The status of the answer, where it is another than the provider's.
    fn status(&self) -> Option<u16> {
        None
    }

    /// Why the gateway itself refuses an answer that it found unusable.
    fn denial(&mut self) -> Option<Box<Refusal>> {
        None
    }

    /// Whether the beginning of a stream may wait: then its head waits too.
    fn holds(&self) -> bool {
        false
    }

    /// What may be kept of a whole answer for others who ask the same.
    fn cached_body(&self) -> CachedBody {
        CachedBody::Passed
    }

    /// What is to be logged of it, once it is known; where nobody logs, what is still to be done.
    fn hook_log(&mut self, _is_logged: bool) -> Option<HookLog> {
        None
    }

    /// Whether a whole body of this length is more work than the threads that carry requests should do.
    fn is_heavy_body(&self, _length: usize) -> bool {
        false
    }

    /// The same of these events.
    fn is_heavy_end(&self, _events: &[u8], _is_end: bool) -> bool {
        false
    }
}

/// Why a step cannot make of an answer what it should.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub Cow<'static, str>);

/// The steps of one answer, the first nearest to the provider, and the frames that the client takes a stream in.
#[derive(Default)]
pub struct Steps {
    steps: Vec<Box<dyn ResponseStep>>,
    /// None where the provider's are the client's. In a box, as all that is rare.
    framer: Option<Box<Framer>>,
    is_stream: bool,
}

impl Steps {
    pub fn push(&mut self, step: impl ResponseStep + 'static) {
        self.steps.push(Box::new(step));
    }

    /// The client takes streams in these frames.
    pub fn frame_as(&mut self, frames: StreamFrames) {
        self.framer = Some(Box::new(Framer::new(frames)));
    }

    /// Whether the client takes streams in frames that are no events.
    pub fn is_framed(&self) -> bool {
        self.framer.is_some()
    }

    /// Whether bodies pass as they came.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub fn begin(&mut self, head: &ResponseHeader, is_stream: bool) {
        self.is_stream = is_stream;
        for step in &mut self.steps {
            step.begin(head, self.is_stream);
            self.is_stream |= step.becomes_stream();
        }
    }

    /// The head of what the steps return, which of a stream are server-sent events.
    pub fn head(&self, head: &mut Parts) {
        self.steps.iter().for_each(|step| step.head(head));
        if self.is_stream && self.framer.is_some() {
            StreamFrames::Events.write_content_type(&mut head.headers);
        }
    }

    /// The head of what the client gets, after the frames were put around it.
    pub fn framed_head(&self, head: &mut Parts) {
        if let Some(framer) = self.framer.as_ref().filter(|_| self.is_stream) {
            framer.frames().write_content_type(&mut head.headers);
        }
    }

    /// Events as the client takes them; `is_end` when no more will come.
    pub fn framed(&mut self, events: Bytes, is_end: bool) -> Bytes {
        match &mut self.framer {
            None => events,
            Some(framer) => framer.push(events, is_end),
        }
    }

    /// Whether a plain answer with this head must be gathered whole.
    pub fn take_body(&self, head: &ResponseHeader) -> bool {
        self.steps.iter().any(|step| step.takes_body(head))
    }

    pub fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        let mut is_events = false;
        let mut passed = body;
        for step in &mut self.steps {
            passed = match is_events {
                false => step.body(passed)?,
                true => join_events(step.events(passed)?, step.finish()?),
            };
            is_events |= step.becomes_stream();
        }
        Ok(passed)
    }

    /// A whole body as the client takes it: one that became a stream is in frames.
    pub fn framed_body(&mut self, body: Bytes) -> Bytes {
        if self.is_stream { self.framed(body, true) } else { body }
    }

    pub fn status(&self) -> Option<u16> {
        self.steps.iter().find_map(|step| step.status())
    }

    pub fn denial(&mut self) -> Option<Box<Refusal>> {
        self.steps.iter_mut().find_map(|step| step.denial())
    }

    pub fn hold(&self) -> bool {
        self.steps.iter().any(|step| step.holds())
    }

    /// What the last step that says something of it says.
    pub fn cached_body(&self) -> CachedBody {
        let mut bodies = self.steps.iter().rev().map(|step| step.cached_body());
        bodies.find(|cached_body| !matches!(cached_body, CachedBody::Passed)).unwrap_or(CachedBody::Passed)
    }

    pub fn hook_log(&mut self, is_logged: bool) -> Option<HookLog> {
        self.steps.iter_mut().find_map(|step| step.hook_log(is_logged))
    }

    pub fn is_heavy_body(&self, length: usize) -> bool {
        self.steps.iter().any(|step| step.is_heavy_body(length))
    }

    pub fn is_heavy_end(&self, events: &[u8], is_end: bool) -> bool {
        self.steps.iter().any(|step| step.is_heavy_end(events, is_end))
    }

    /// Whether what was returned is not all, because somebody else must be asked.
    pub fn is_asking(&self) -> bool {
        self.steps.last().is_some_and(|step| step.is_asking())
    }

    /// What `body` or `events` returned, and what follows once others were asked.
    pub async fn settled(&mut self, returned: Result<Bytes, Unusable>) -> Result<Bytes, Unusable> {
        let returned = returned?;
        let Some(asking) = self.steps.last_mut().and_then(|step| step.asks()) else { return Ok(returned) };
        let side = asking.await;
        let Some(step) = self.steps.last_mut() else { return Ok(returned) };
        Ok(join_events(returned, step.judged(side)?))
    }

    /// `events`, beside the threads that carry requests.
    pub async fn heavy_events(&mut self, whole: Bytes, is_end: bool) -> Result<Bytes, Unusable> {
        let mut taken = std::mem::take(self);
        let tenant = taken.steps.last().map_or(Tenant::GATEWAY, |step| step.tenant());
        let done = heavy(tenant, move || {
            let passed = taken.events(&whole, is_end);
            (taken, passed)
        });
        match done.await {
            Some((taken, passed)) => {
                *self = taken;
                passed
            }
            None => Err(Unusable("the gateway failed to change it".into())),
        }
    }

    /// What the client gets of these events; `is_end` when no more will come.
    pub fn events(&mut self, whole: &Bytes, is_end: bool) -> Result<Bytes, Unusable> {
        let mut passed = whole.clone();
        for step in &mut self.steps {
            if !passed.is_empty() {
                passed = step.events(passed)?;
            }
            if is_end {
                passed = join_events(passed, step.finish()?);
            }
        }
        Ok(passed)
    }
}

/// An event that lacks its blank line must not run into the next.
fn join_events(events: Bytes, more: Bytes) -> Bytes {
    if more.is_empty() || events.is_empty() {
        return if more.is_empty() { events } else { more };
    }
    let mut joined = BytesMut::with_capacity(events.len() + more.len() + 2);
    joined.extend_from_slice(&events);
    if ![&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].iter().any(|blank| events.ends_with(blank)) {
        joined.extend_from_slice(b"\n\n");
    }
    joined.extend_from_slice(&more);
    joined.freeze()
}
