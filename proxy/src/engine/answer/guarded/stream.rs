//! A streamed answer that hooks look at: what is held of it until it was judged, and its events as the client gets them.

use super::call::GuardedCall;
use super::written::{put_event, put_results, rewrite, with_blank_line};
use crate::engine::answer::steps::Unusable;
use crate::guardrails::{HeldBack, Release, Rewriting, SideJob, SideResult};
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use crate::wire::event_texts::StreamShape;
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use serde_json::Value;
use std::sync::Arc;

/// What is held of a stream counts towards the memory of bodies from here on, in steps of this size.
const UNCOUNTED: usize = 64 << 10;

pub(super) struct GuardedStream {
    held: HeldBack,
    rewriting: Option<Rewriting>,
    has_begun: bool,
    is_over: bool,
    /// What it takes of the memory of bodies, and how much that is.
    share: Option<OwnedShare>,
    counted: usize,
}

impl GuardedStream {
    pub fn new(call: &GuardedCall, shape: StreamShape) -> Self {
        let held = HeldBack::new(call.output.clone(), shape)
            .gathering(call.is_looked_at_later())
            .asking(call.asker().is_some());
        let rewriting = Rewriting::new(&call.output, &call.input.placeholders, shape);
        Self { held, rewriting, has_begun: false, is_over: false, share: None, counted: 0 }
    }

    /// Its texts are not as they came: only its events are.
    pub fn is_rewritten(&self) -> bool {
        self.rewriting.is_some()
    }

    /// All that it said so far.
    pub fn whole_text(&self) -> String {
        self.held.whole_text()
    }

    /// One event more: what may go out with it, and what hooks said where it was the last.
    pub fn push(&mut self, raw: Bytes, call: &GuardedCall) -> Result<(Release, Option<SideResult>), Unusable> {
        let data = sse::events(&with_blank_line(&raw)).next().map(|event| event.data.into_owned()).unwrap_or_default();
        let data = data.trim_ascii();
        let read: Option<Value> = if data.starts_with(b"{") { serde_json::from_slice(data).ok() } else { None };
        if self.held.judges_next() && read.is_none() && !matches!(data, b"" | b"[DONE]") {
            return Err(Unusable("an event is no JSON object, and a guardrail must judge it".into()));
        }
        let headers = HeaderMap::new();
        let mut report = None;
        let released = self.held.push(raw, read.as_ref(), data, call.inputs(&headers), &call.meters, &mut report);
        Ok((released, report))
    }

    /// It is over.
    pub fn finish(&mut self, call: &GuardedCall) -> (Release, Option<SideResult>) {
        let headers = HeaderMap::new();
        let mut report = None;
        let released = self.held.finish(call.inputs(&headers), &call.meters, &mut report);
        (released, report)
    }

    /// Others have judged it.
    pub fn judged(&mut self, side: SideResult) -> (Release, Option<SideResult>) {
        let mut report = None;
        let released = self.held.judged(side, &mut report);
        (released, report)
    }

    /// What others are to be asked, once its text is whole.
    pub fn question(&mut self, call: &GuardedCall) -> Option<SideJob> {
        let text = self.held.take_unjudged()?;
        let size = text.len();
        Some(call.job(&call.output, Arc::default(), Some(text), size))
    }

    /// Counts what is held of it.
    pub fn count_held(&mut self, call: &GuardedCall) -> Result<(), Refusal> {
        let held = self.held.size();
        if held <= self.counted.max(UNCOUNTED) {
            return Ok(());
        }
        let more = (held - self.counted).max(UNCOUNTED);
        self.counted += more;
        let share = self.share.get_or_insert_with(|| OwnedShare::none(call.memory.clone(), call.tenant));
        Ok(share.grow(more)?)
    }

    /// What it still holds of rewritten texts.
    pub fn flush(&mut self, out: &mut BytesMut) {
        for (name, event) in self.rewriting.iter_mut().flat_map(Rewriting::flush) {
            put_event(out, name.as_deref(), &event);
        }
    }

    /// Events that passed, with their texts as they are to be, and what hooks said before and after them.
    pub fn dress(
        &mut self,
        passed: &Bytes,
        call: &GuardedCall,
        output: Option<&SideResult>,
    ) -> Result<Bytes, Unusable> {
        let mut out = BytesMut::new();
        if !self.has_begun && !passed.is_empty() {
            self.has_begun = true;
            if !call.is_strict && call.input.tells() {
                put_results(&mut out, call.shape, "before_request_hooks", &call.input.to_json());
            }
        }
        match &mut self.rewriting {
            None => out.extend_from_slice(passed),
            Some(rewriting) => {
                for raw in sse::raw_events(passed) {
                    rewrite(rewriting, &raw, call.shape, &mut out)?;
                }
            }
        }
        if let Some(side) = output.filter(|_| !self.is_over) {
            self.is_over = true;
            if !call.is_strict && side.tells() {
                put_results(&mut out, call.shape, "after_request_hooks", &side.to_json());
            }
        }
        Ok(out.freeze())
    }

    /// Whether judging it takes longer than others should wait, if these events end it.
    pub fn is_heavy_end(&self, events: &[u8], is_end: bool, small: usize) -> bool {
        self.held.is_heavy(small) && (is_end || self.held.may_end(events))
    }
}
