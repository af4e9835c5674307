//! What a look-up knows of its request: in which form its answer is kept, and how a kept one is given to its client.

use super::LookUp;
use crate::cache::{AnswerForm, Entry, replay};
use crate::context::Visit;
use crate::engine::answer::{
    AnswerSource, HeldStart, HeldStream, Steps, StoredAnswer, WireDialect, results_event, with_results,
};
use crate::engine::call::HeldAnswer;
use crate::engine::translate::{WayBack, answer_id, client_codec};
use crate::wire::codecs::{AnswerOptions, Codec};
use crate::wire::conversation::WireFormat;
use crate::wire::sse::Splitter;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use pingora_http::ResponseHeader;
use serde_json::Value;
use shared::providers::Family;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl LookUp<'_> {
    pub(super) fn namespace(&self) -> Option<&str> {
        self.request.cache.as_ref().and_then(|headers| headers.namespace.as_deref())
    }

    /// A form has a boundary of its own each time; what it is made of is the client's.
    pub(super) fn keyed_body(&self) -> &Bytes {
        let is_form = self.translated.is_some_and(|translated| translated.content_type.is_some());
        if is_form { self.edited } else { self.sent }
    }

    /// Whether its answer says again what was asked.
    pub(super) fn repeats(&self) -> bool {
        let back = self.translated.and_then(|translated| translated.back.as_ref());
        matches!(back, Some(WayBack::Conversation(way)) if way.client.format() == WireFormat::Responses)
    }

    pub(super) fn is_stream(&self) -> bool {
        self.fields.is_true("stream")
    }

    /// The entry as this client wants it; none where it cannot be given so.
    pub(super) fn replayed(&self, visit: &mut Visit, entry: &Entry) -> Option<HeldAnswer> {
        let is_stream = self.is_stream();
        let is_failed = self.guarded.is_some_and(|call| call.input.is_failed);
        let status: u16 = if is_failed { 246 } else { 200 };
        // As plain parts: Pingora's setters also look how a name is spelled.
        let (mut head, ()) = http::Response::new(()).into_parts();
        head.status = StatusCode::from_u16(status).ok()?;
        let held = match is_stream {
            true => {
                let codec = client_codec(self.request.endpoint)?;
                let events = replay::as_events(&entry.body, codec, &self.form(visit.id()).options)?;
                let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
                head.headers.insert(header::CONTENT_TYPE, kind);
                HeldStart::Stream(HeldStream {
                    first: self.with_results_event(events),
                    splitter: Splitter::default(),
                    ending: WireDialect::of_format(codec.format()).ending(),
                })
            }
            false => {
                let kind = match entry.content_type.as_str() {
                    "application/json" => HeaderValue::from_static("application/json"),
                    other => HeaderValue::from_str(other).ok()?,
                };
                let is_json = kind.as_bytes().starts_with(b"application/json");
                let body = match self.guarded.filter(|call| is_json && call.tells_results()) {
                    Some(call) => with_results(entry.body.clone(), call, None),
                    None => entry.body.clone(),
                };
                head.headers.insert(header::CONTENT_TYPE, kind);
                HeldStart::Plain(body)
            }
        };
        let mut steps = Steps::default();
        if let Some(frames) = self.request.frames() {
            steps.frame_as(frames);
        }
        let source = AnswerSource::from(StoredAnswer::new(ResponseHeader::from(head), []));
        steps.begin(source.head(), is_stream);
        visit.hits(entry);
        Some(HeldAnswer { source, held, steps, waited: Duration::ZERO, permit: None, keeper: None, is_hit: true })
    }

    fn with_results_event(&self, events: Bytes) -> Bytes {
        let results = self.guarded.map(|call| results_event(call)).unwrap_or_default();
        if results.is_empty() {
            return events;
        }
        let mut whole = BytesMut::from(results.as_ref());
        whole.extend_from_slice(&events);
        whole.freeze()
    }

    /// In which formats the answer comes and goes.
    pub(super) fn form(&self, request_id: &str) -> AnswerForm {
        let back = self.translated.and_then(|translated| translated.back.as_ref());
        let client = client_codec(self.request.endpoint).filter(|_| !matches!(back, Some(WayBack::Object(_))));
        let is_speech = self.request.endpoint.family() == Family::Speech;
        match back {
            Some(WayBack::Conversation(way)) => {
                let options = AnswerOptions { include_usage: self.includes_usage(), ..way.options.clone() };
                AnswerForm { client, provider: Some(way.provider), options, is_speech }
            }
            _ => {
                let options = self.native_options(client, request_id);
                AnswerForm { client, provider: client, options, is_speech }
            }
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
