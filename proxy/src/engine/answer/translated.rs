//! The step that writes a provider's answer anew in the client's format: whole answers, errors and streams are read with
//! one codec and written with another. A stream that ends without its end marker cannot be finished, and is broken off
//! with an error in the client's words.

use super::steps::{ResponseStep, Unusable};
use crate::runtime::memory::{HeldSize, MemoryOwner};
use crate::wire::codecs::{AnswerOptions, Codec, CodecError, SseSink, StreamReader, StreamWriter, WireEvent};
use crate::wire::conversation::{Answer, Delta, MAX_ANSWER, Pieces};
use crate::wire::sse;
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use std::sync::Arc;

/// Between which formats a call is translated, and what its answer is told besides.
pub struct Translation {
    pub provider: &'static dyn Codec,
    pub client: &'static dyn Codec,
    pub options: AnswerOptions<'static>,
    /// The client asked for a stream. Where the provider has none, its whole answer becomes one.
    pub wants_stream: bool,
}

/// An answer and the parts of it that are repeated.
const MAX_HELD: usize = 2 * MAX_ANSWER;

static ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

pub struct Translated {
    translation: Arc<Translation>,
    status: u16,
    /// What a header says about an error: AWS has its type there.
    error_type: Option<String>,
    /// The same for the client.
    sent_error_type: Option<&'static str>,
    is_stream: bool,
    stream: Option<TranslatedStream>,
    /// Of a stream, what its writer keeps to say it again.
    held: HeldSize,
}

struct TranslatedStream {
    reader: Box<dyn StreamReader>,
    writer: Box<dyn StreamWriter>,
    deltas: Vec<Delta>,
    /// Something of an answer came, be it only its beginning.
    has_begun: bool,
    /// The provider told of an error: nothing that it says afterwards belongs to the answer.
    has_failed: bool,
    /// Its end was written.
    is_over: bool,
}

impl Translated {
    /// What it holds counts where the owner says.
    pub fn new(translation: Arc<Translation>, owner: MemoryOwner<'_>) -> Self {
        let held = HeldSize::new(owner);
        Self { translation, status: 0, error_type: None, sent_error_type: None, is_stream: false, stream: None, held }
    }
}

impl ResponseStep for Translated {
    fn begin(&mut self, head: &ResponseHeader, is_stream: bool) {
        let named = head.headers.get(&ERROR_TYPE).and_then(|value| value.to_str().ok());
        self.error_type = named.map(str::to_owned);
        self.status = head.status.as_u16();
        self.is_stream = is_stream;
    }

    fn head(&self, head: &mut Parts) {
        let kind = match self.is_stream || self.becomes_stream() {
            true => "text/event-stream; charset=utf-8",
            false => "application/json",
        };
        head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        head.headers.remove(&ERROR_TYPE);
        if let Some(name) = self.sent_error_type {
            head.headers.insert(ERROR_TYPE.clone(), HeaderValue::from_static(name));
        }
    }

    fn takes_body(&self, _: &ResponseHeader) -> bool {
        true
    }

    /// The provider knows no streams, and the client asked for one.
    fn becomes_stream(&self) -> bool {
        self.translation.wants_stream && !self.is_stream && (200..300).contains(&self.status)
    }

    fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        let Translation { provider, client, options, .. } = &*self.translation;
        if self.becomes_stream() {
            let answer = provider.read_answer(&body).map_err(unusable)?;
            return Ok(in_pieces(&answer, *client, options));
        }
        let mut out = Vec::with_capacity(body.len() + 256);
        match self.status {
            200..300 => client.write_answer(&provider.read_answer(&body).map_err(unusable)?, options, &mut out),
            status => {
                let error = provider.read_error(status, self.error_type.as_deref(), &body);
                client.write_error(&error, options, &mut out);
                self.sent_error_type = client.error_type(&error);
            }
        }
        Ok(Bytes::from(out))
    }

    fn events(&mut self, events: Bytes) -> Result<Bytes, Unusable> {
        let stream = self.stream.get_or_insert_with(|| TranslatedStream::new(&self.translation));
        let mut sink = SseSink::default();
        for event in sse::events(&sse::with_blank_line(events)) {
            stream.push(&WireEvent { name: event.name.as_deref(), data: &event.data }, &mut sink)?;
        }
        match stream.writer.held() {
            ..=MAX_HELD => self.held.set(stream.writer.held()).map_err(|why| Unusable(why.to_string().into()))?,
            _ => return Err(Unusable("the stream is too long to be repeated at its end".into())),
        }
        Ok(Bytes::from(sink.bytes))
    }

    fn finish(&mut self) -> Result<Bytes, Unusable> {
        let mut sink = SseSink::default();
        if let Some(stream) = &mut self.stream {
            stream.finish(&mut sink)?;
        }
        Ok(Bytes::from(sink.bytes))
    }
}

impl TranslatedStream {
    fn new(translation: &Translation) -> Self {
        Self {
            reader: translation.provider.stream_reader(),
            writer: translation.client.stream_writer(translation.options.clone()),
            deltas: Vec::new(),
            has_begun: false,
            has_failed: false,
            is_over: false,
        }
    }

    fn push(&mut self, event: &WireEvent<'_>, sink: &mut SseSink) -> Result<(), Unusable> {
        if self.is_over {
            return Ok(());
        }
        self.reader.push(event, &mut self.deltas).map_err(unusable)?;
        self.write(sink);
        // At once: a client should not wait for the end of a connection.
        if self.reader.has_ended() {
            self.finish(sink)?;
        }
        Ok(())
    }

    fn finish(&mut self, sink: &mut SseSink) -> Result<(), Unusable> {
        if self.is_over {
            return Ok(());
        }
        self.reader.finish(&mut self.deltas).map_err(unusable)?;
        self.write(sink);
        if !self.has_begun {
            return Err(Unusable("the stream ended before it began".into()));
        }
        self.writer.finish(sink);
        self.is_over = true;
        Ok(())
    }

    fn write(&mut self, sink: &mut SseSink) {
        self.has_begun |= !self.deltas.is_empty();
        for delta in self.deltas.drain(..) {
            if !self.has_failed {
                self.writer.push(&delta, sink);
            }
            self.has_failed |= matches!(delta, Delta::Error(_));
        }
    }
}

fn in_pieces(answer: &Answer, client: &dyn Codec, options: &AnswerOptions<'_>) -> Bytes {
    let mut sink = SseSink::default();
    let mut writer = client.stream_writer(options.clone());
    Pieces::new(answer).for_each(|delta| writer.push(&delta, &mut sink));
    writer.finish(&mut sink);
    Bytes::from(sink.bytes)
}

fn unusable(error: CodecError) -> Unusable {
    Unusable(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::answer::Steps;
    use crate::runtime::memory::{BodyMemory, body_memory};
    use crate::runtime::tenant_share::Tenant;
    use crate::wire::codecs;
    use serde_json::{Value, json};

    const ANTHROPIC: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\
        \"model\":\"claude\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
        \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
        \"delta\":{\"type\":\"text_delta\",\"text\":\"Hé\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
        \"usage\":{\"output_tokens\":2}}\n\n";
    const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}";

    fn step(provider: &str, client: &str) -> Translated {
        held_in(&body_memory(MAX_ANSWER), translation(provider, client))
    }

    fn held_in(memory: &Arc<BodyMemory>, translation: Translation) -> Translated {
        let tenant = Tenant::test(1, 1);
        Translated::new(Arc::new(translation), MemoryOwner { memory, tenant })
    }

    fn translation(provider: &str, client: &str) -> Translation {
        Translation {
            provider: codecs::by_name(provider).unwrap(),
            client: codecs::by_name(client).unwrap(),
            options: AnswerOptions {
                is_strict: true,
                id: "id".into(),
                created: 1,
                model: "m".into(),
                provider: "acme".into(),
                include_usage: true,
                request: None,
            },
            wants_stream: false,
        }
    }

    fn answered(step: &mut Translated, status: u16, is_stream: bool) {
        step.begin(&ResponseHeader::build(status, None).unwrap(), is_stream);
    }

    #[test]
    fn a_stream_is_ended_with_its_end_marker_and_not_with_its_connection() {
        let mut steps = Steps::default();
        let mut translated = step("messages", "chat");
        answered(&mut translated, 200, true);
        steps.push(translated);
        let first = steps.events(&Bytes::from_static(ANTHROPIC.as_bytes()), false).unwrap();
        let text = String::from_utf8(first.to_vec()).unwrap();
        assert!(text.contains("\"content\":\"Hé\"") && !text.contains("[DONE]"), "{text}");
        let last = steps.events(&Bytes::from_static(STOP.as_bytes()), false).unwrap();
        let text = String::from_utf8(last.to_vec()).unwrap();
        assert!(text.contains("\"total_tokens\":5") && text.ends_with("data: [DONE]\n\n"), "{text}");
        assert_eq!(steps.events(&Bytes::new(), true).unwrap(), "", "it has ended already");
    }

    #[test]
    fn a_stream_that_was_cut_cannot_be_finished() {
        let mut translated = step("messages", "responses");
        answered(&mut translated, 200, true);
        translated.events(Bytes::from_static(ANTHROPIC.as_bytes())).unwrap();
        assert_eq!(translated.finish(), Err(Unusable("the stream ended before its end".into())));
    }

    #[test]
    fn a_whole_answer_becomes_the_stream_that_was_asked_for() {
        let translation = Translation { wants_stream: true, ..translation("reka", "chat") };
        let mut translated = held_in(&body_memory(MAX_ANSWER), translation);
        answered(&mut translated, 200, false);
        let body = r#"{"text":"Hi","finish_reason":"stop","metadata":{"input_tokens":3,"generated_tokens":2}}"#;
        let said = translated.body(Bytes::from_static(body.as_bytes())).unwrap();
        let text = String::from_utf8(said.to_vec()).unwrap();
        assert!(text.contains("\"content\":\"Hi\"") && text.contains("\"total_tokens\":5"), "{text}");
        assert!(text.starts_with("data: {") && text.ends_with("data: [DONE]\n\n"), "{text}");
        let mut head = http::Response::new(()).into_parts().0;
        translated.head(&mut head);
        assert_eq!(head.headers[header::CONTENT_TYPE], "text/event-stream; charset=utf-8");
        answered(&mut translated, 429, false);
        assert!(translated.body(Bytes::from_static(b"{}")).unwrap().starts_with(b"{"));
    }

    #[test]
    fn what_a_stream_repeats_at_its_end_counts_as_memory_and_goes_with_it() {
        for client in ["responses", "gemini"] {
            let memory = body_memory(8 << 20);
            let mut translated = held_in(&memory, translation("chat", client));
            answered(&mut translated, 200, true);
            let call = json!({ "index": 0, "id": "c", "function": { "name": "f", "arguments": "x".repeat(200_000) } });
            let event = json!({ "id": "1", "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
            let event = Bytes::from(format!("data: {event}\n\n"));
            translated.events(event.clone()).unwrap();
            assert!(memory.used() >= 200_000, "{client}: {}", memory.used());
            let refused = (0..100).find_map(|_| translated.events(event.clone()).err());
            assert!(refused.is_some(), "{client}: its organisation has no room for more");
            drop(translated);
            assert_eq!(memory.used(), 0, "{client}");
        }
    }

    #[test]
    fn a_stream_that_ends_before_it_begins_is_no_answer() {
        let mut translated = step("chat", "messages");
        answered(&mut translated, 200, true);
        let nothing = translated.events(Bytes::from_static(b"data: [DONE]\n\n"));
        assert_eq!(nothing, Err(Unusable("the stream ended before it began".into())));
    }

    #[test]
    fn errors_keep_their_words_and_rubbish_is_no_answer() {
        let mut translated = step("gemini", "messages");
        answered(&mut translated, 429, false);
        let body = r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}"#;
        let said = translated.body(Bytes::from_static(body.as_bytes())).unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap();
        assert_eq!(said["error"], json!({ "type": "rate_limit_error", "message": "acme error: slow down" }));
        answered(&mut translated, 200, false);
        assert!(translated.body(Bytes::from_static(b"<html>")).is_err());
        let mut head = http::Response::new(()).into_parts().0;
        translated.head(&mut head);
        assert_eq!(head.headers[header::CONTENT_TYPE], "application/json");
    }
}
