//! A kept answer as a stream: read with the codec of the client's route, cut into pieces, and written with the same codec.

use crate::wire::codecs::{AnswerOptions, Codec, SseSink};
use crate::wire::conversation::Pieces;
use bytes::Bytes;

/// None of an answer that its own codec cannot read.
pub fn as_events(body: &[u8], codec: &dyn Codec, options: &AnswerOptions<'_>) -> Option<Bytes> {
    let answer = codec.read_answer(body).ok()?;
    let mut options = options.clone();
    if let Some(id) = &answer.id {
        // What is named after the answer is named as it was.
        options.id = id.clone().into();
    }
    let mut sink = SseSink::default();
    let mut writer = codec.stream_writer(options);
    Pieces::new(&answer).for_each(|delta| writer.push(&delta, &mut sink));
    writer.finish(&mut sink);
    Some(Bytes::from(sink.bytes))
}

#[cfg(test)]
pub(super) mod tests;
