//! Answers that are compressed although they were asked not to be. Whoever reads an answer wants its text: limits and logs
//! look inside, and the client may not understand the encoding. What one piece becomes is bounded, so that a few bytes
//! cannot take the memory of the gateway.

use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use std::io::{self, Write};

/// One piece from the network becomes at most this. Text of a provider grows some tenfold.
const MOST: usize = 4 << 20;

#[derive(Debug)]
pub enum Inflate {
    Gzip(Box<MultiGzDecoder<InflateBuffer>>),
    Zlib(Box<ZlibDecoder<InflateBuffer>>),
}

/// How an answer is encoded.
#[derive(Debug, PartialEq, Eq)]
pub enum ContentEncoding<'h> {
    Identity,
    Gzip,
    Deflate,
    /// None that we undo.
    Other(&'h str),
}

impl<'h> ContentEncoding<'h> {
    pub fn from_headers(head: &'h HeaderMap) -> Self {
        let Some(value) = head.get(header::CONTENT_ENCODING) else { return Self::Identity };
        let name = value.to_str().unwrap_or("something unreadable").trim();
        match name {
            "" => Self::Identity,
            _ if name.eq_ignore_ascii_case("identity") => Self::Identity,
            _ if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => Self::Gzip,
            _ if name.eq_ignore_ascii_case("deflate") => Self::Deflate,
            other => Self::Other(other),
        }
    }
}

impl Inflate {
    pub fn new(encoding: &ContentEncoding<'_>) -> Option<Self> {
        match encoding {
            ContentEncoding::Gzip => Some(Self::Gzip(Box::new(MultiGzDecoder::new(InflateBuffer::default())))),
            ContentEncoding::Deflate => Some(Self::Zlib(Box::new(ZlibDecoder::new(InflateBuffer::default())))),
            ContentEncoding::Identity | ContentEncoding::Other(_) => None,
        }
    }

    /// What the piece becomes; it may be nothing yet. An error also when it is the last and something is missing.
    pub fn push(&mut self, piece: &[u8], is_last: bool) -> io::Result<Bytes> {
        let room = match self {
            Self::Gzip(decoder) => {
                decoder.write_all(piece)?;
                if is_last {
                    decoder.try_finish()?
                } else {
                    decoder.flush()?
                }
                decoder.get_mut()
            }
            Self::Zlib(decoder) => {
                decoder.write_all(piece)?;
                if is_last {
                    decoder.try_finish()?
                } else {
                    decoder.flush()?
                }
                decoder.get_mut()
            }
        };
        Ok(Bytes::from(std::mem::take(&mut room.0)))
    }
}

/// Takes what was inflated, up to a bound.
#[derive(Debug, Default)]
pub struct InflateBuffer(Vec<u8>);

impl Write for InflateBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::Error::other("it becomes too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
