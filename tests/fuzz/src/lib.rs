//! What the targets share: foreign bytes that arrive in pieces or choose who reads them, and what we write of them.

use proxy::wire::codecs::AnswerOptions;

/// The first byte says how long pieces are, the others are the bytes themselves.
pub fn pieces(data: &[u8]) -> (&[u8], impl Iterator<Item = &[u8]>) {
    let (length, whole) = data.split_first().map_or((1, data), |(first, rest)| (usize::from(*first % 64) + 1, rest));
    (whole, whole.chunks(length))
}

/// The first byte chooses one of a list; the others are the bytes themselves.
pub fn chosen<'d, T: Copy>(list: &[T], data: &'d [u8]) -> Option<(T, &'d [u8])> {
    let (first, rest) = data.split_first()?;
    Some((*list.get(usize::from(*first) % list.len())?, rest))
}

/// What an answer is told besides what the provider said.
pub fn answer_options(is_strict: bool) -> AnswerOptions<'static> {
    AnswerOptions {
        is_strict,
        id: "fuzz-1".into(),
        created: 1,
        model: "m".into(),
        provider: "p".into(),
        include_usage: true,
        request: None,
    }
}

/// What we wrote is JSON, whatever came in.
pub fn assert_json(written: &[u8], what: &str) {
    let read = serde_json::from_slice::<serde_json::Value>(written);
    assert!(read.is_ok(), "{what}: {read:?}: {}", String::from_utf8_lossy(written));
}
