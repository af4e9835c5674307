//! The chunked coding, decoded as it arrives. All whole and partial chunks of a buffer become one piece, so that many
//! small chunks cost the client one write.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;

/// Longest line between chunks, extensions included.
const MAX_LINE: usize = 4 << 10;
const MAX_TRAILERS: usize = 16 << 10;

#[derive(Debug, Default)]
pub struct Chunked {
    state: ChunkState,
    trailers: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    Done,
}

#[derive(Debug, PartialEq, Eq)]
pub struct MalformedChunk;

impl Chunked {
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Takes what it can from `buffer`; an empty piece means that more must be read.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Bytes, MalformedChunk> {
        let mut first = Bytes::new();
        let mut joined = BytesMut::new();
        loop {
            match self.state {
                ChunkState::Data(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                    if taken == 0 {
                        break;
                    }
                    let piece = buffer.split_to(taken);
                    if first.is_empty() {
                        first = piece.freeze();
                    } else {
                        if joined.is_empty() {
                            joined.extend_from_slice(&first);
                        }
                        joined.extend_from_slice(&piece);
                    }
                    let left = left - taken as u64;
                    self.state = if left == 0 { ChunkState::DataEnd } else { ChunkState::Data(left) };
                }
                ChunkState::DataEnd => match buffer.get(..2) {
                    Some(b"\r\n") => {
                        buffer.advance(2);
                        self.state = ChunkState::Size;
                    }
                    Some(_) => return Err(MalformedChunk),
                    None => break,
                },
                ChunkState::Size => {
                    let Some(line) = line(buffer)? else { break };
                    self.state = match size(&line)? {
                        0 => ChunkState::Trailers,
                        size => ChunkState::Data(size),
                    };
                }
                ChunkState::Trailers => {
                    let Some(line) = line(buffer)? else { break };
                    self.trailers += line.len();
                    if self.trailers > MAX_TRAILERS {
                        return Err(MalformedChunk);
                    }
                    if line.is_empty() {
                        self.state = ChunkState::Done;
                    }
                }
                ChunkState::Done => break,
            }
        }
        Ok(if joined.is_empty() { first } else { joined.freeze() })
    }
}

/// One line without its `\r\n`, once it is all there.
fn line(buffer: &mut BytesMut) -> Result<Option<BytesMut>, MalformedChunk> {
    let Some(end) = memchr(b'\n', &buffer[..buffer.len().min(MAX_LINE)]) else {
        return if buffer.len() < MAX_LINE { Ok(None) } else { Err(MalformedChunk) };
    };
    let mut line = buffer.split_to(end + 1);
    match line.strip_suffix(b"\r\n") {
        Some(text) => {
            let length = text.len();
            line.truncate(length);
            Ok(Some(line))
        }
        None => Err(MalformedChunk),
    }
}

/// The hexadecimal size; an extension after `;` means nothing to us.
fn size(line: &[u8]) -> Result<u64, MalformedChunk> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_number = matches!(digits.len(), 1..=15) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = is_number.then(|| std::str::from_utf8(digits).ok()).flatten().ok_or(MalformedChunk)?;
    u64::from_str_radix(text, 16).map_err(|_| MalformedChunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_in(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, usize), MalformedChunk> {
        let (mut chunks, mut buffer, mut out) = (Chunked::default(), BytesMut::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            out.extend_from_slice(&chunks.decode(&mut buffer)?);
        }
        Ok((out, chunks.is_done(), buffer.len()))
    }

    #[test]
    fn chunks_are_read_as_the_standard_says() {
        for (wire, expected) in [
            ("5\r\nhello\r\n0\r\n\r\n", Ok(("hello", true, 0))),
            ("5;x=\"y\"\r\nhello\r\n00\r\nTrailer: t\r\n\r\n", Ok(("hello", true, 0))),
            ("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nHTTP/1.1 200", Ok(("hello", true, 12))),
            ("A\r\n0123456789\r\n", Ok(("0123456789", false, 0))),
            ("5\r\nhel", Ok(("hel", false, 0))),
            ("0\r\n", Ok(("", false, 0))),
            ("5\nhello\r\n", Err(MalformedChunk)),
            ("5\r\nhelloX\r\n", Err(MalformedChunk)),
            ("-5\r\nhello", Err(MalformedChunk)),
            ("0x5\r\nhello", Err(MalformedChunk)),
            ("\r\nhello", Err(MalformedChunk)),
            ("ffffffffffffffffff\r\n", Err(MalformedChunk)),
            (" 5\r\nhello", Err(MalformedChunk)),
        ] {
            let found = decode_in(&[wire.as_bytes()]);
            let found = found.map(|(body, done, left)| (String::from_utf8(body).unwrap(), done, left));
            let found = found.as_ref().map(|(body, done, left)| (body.as_str(), *done, *left));
            assert_eq!(found, expected.as_ref().map(|found| *found), "{wire:?}");
        }
    }

    #[test]
    fn endless_lines_and_trailers_are_refused() {
        let extension = format!("5;{}", "x".repeat(MAX_LINE));
        assert_eq!(decode_in(&[extension.as_bytes()]), Err(MalformedChunk));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(MAX_TRAILERS));
        assert_eq!(decode_in(&[trailers.as_bytes()]), Err(MalformedChunk));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_body(body in prop::collection::vec("[a-z]{1,9}", 0..6), cut in 0usize..100) {
            let mut wire: String = body.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
            wire.push_str("0\r\n\r\n");
            let cut = cut.min(wire.len());
            let (head, tail) = wire.as_bytes().split_at(cut);
            prop_assert_eq!(decode_in(&[head, tail]), Ok((body.concat().into_bytes(), true, 0)));
            let bytes: Vec<&[u8]> = wire.as_bytes().chunks(1).collect();
            prop_assert_eq!(decode_in(&bytes), Ok((body.concat().into_bytes(), true, 0)));
        }
    }
}
