//! A denial that looks like an answer (`soft_deny_200`): a message of the assistant, in the client's format, whole or as a
//! stream. It is written by the codec of the client's route, as any translated answer.

use super::GuardedCall;
use crate::request::refusal::DENIED;
use crate::wire::codecs;
use crate::wire::codecs::{AnswerOptions, SseSink};
use crate::wire::conversation::{Answer, Choice, Finish, FinishReason, Part, Pieces, TextPart};
use bytes::Bytes;

/// The whole answer.
pub fn body(call: &GuardedCall, message: Option<&str>) -> Bytes {
    let mut out = Vec::new();
    if let Some(codec) = codecs::by_format(call.format) {
        codec.write_answer(&answer(call, message), &options(call), &mut out);
    }
    Bytes::from(out)
}

/// The same as events.
pub fn events(call: &GuardedCall, message: Option<&str>) -> Bytes {
    let answer = answer(call, message);
    let mut sink = SseSink::default();
    if let Some(codec) = codecs::by_format(call.format) {
        let mut writer = codec.stream_writer(options(call));
        for delta in Pieces::new(&answer) {
            writer.push(&delta, &mut sink);
        }
        writer.finish(&mut sink);
    }
    Bytes::from(sink.bytes)
}

fn answer(call: &GuardedCall, message: Option<&str>) -> Answer {
    let text = TextPart { text: message.unwrap_or(DENIED).to_owned(), ..TextPart::default() };
    let choice =
        Choice { parts: vec![Part::Text(text)], finish: Some(Finish::new(FinishReason::Stop)), ..Choice::default() };
    Answer { model: Some(call.model().into_owned()), choices: vec![choice], ..Answer::default() }
}

fn options(call: &GuardedCall) -> AnswerOptions<'static> {
    AnswerOptions {
        is_strict: call.is_strict,
        id: call.request_id.to_string().into(),
        created: chrono::Utc::now().timestamp().unsigned_abs(),
        model: call.model().into_owned().into(),
        provider: "gateway".into(),
        include_usage: false,
        request: None,
    }
}
