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
mod tests;
