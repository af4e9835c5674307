//! What the targets share: foreign bytes that arrive in pieces.

/// The first byte says how long pieces are, the others are the bytes themselves.
pub fn pieces(data: &[u8]) -> (&[u8], impl Iterator<Item = &[u8]>) {
    let (length, whole) = data.split_first().map_or((1, data), |(first, rest)| (usize::from(*first % 64) + 1, rest));
    (whole, whole.chunks(length))
}
