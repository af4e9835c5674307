//! Answers that are compressed, made readable piece by piece: for whoever looks inside of them, and for clients who may
//! not understand the encoding; and bodies of requests, which are there whole. Bounded, because what compresses well is large: a few bytes must not take the memory of
//! the gateway, and an answer that grows beyond any provider's is no longer read.

use crate::runtime::memory::HeldSize;
use brotli_decompressor::{Decompressor, DecompressorWriter};
use bytes::Bytes;
use flate2::bufread;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use std::io::{self, Read, Write};

/// What one piece, and a whole answer, may become.
const MAX_PIECE: usize = 8 << 20;
const MAX_ANSWER: usize = 256 << 20;
const BROTLI_BUFFER: usize = 4 << 10;
/// 8 MiB, which is what RFC 8878 asks of whoever decodes.
const ZSTD_WINDOW: u32 = 23;
/// The largest window that its standard (RFC 7932) has.
const BROTLI_WINDOW: u32 = 24;

/// How an answer or a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// One that cannot be undone, by its name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the encoding {0} cannot be undone")]
pub struct UnknownEncoding(pub String);

impl ContentEncoding {
    /// What a decoder keeps at most of the text that it has written.
    fn window(self) -> usize {
        match self {
            Self::Gzip | Self::Deflate => 32 << 10,
            Self::Brotli => 1 << BROTLI_WINDOW,
            Self::Zstd => 1 << ZSTD_WINDOW,
        }
    }

    /// None when it is plain.
    pub fn from_headers(head: &HeaderMap) -> Result<Option<Self>, UnknownEncoding> {
        let mut lines = head.get_all(header::CONTENT_ENCODING).iter();
        let Some(line) = lines.next() else { return Ok(None) };
        if lines.next().is_some() {
            return Err(UnknownEncoding("several at once".into()));
        }
        let name = line.to_str().unwrap_or("something unreadable").trim();
        match &*name.to_ascii_lowercase() {
            "identity" | "" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            "br" => Ok(Some(Self::Brotli)),
            "zstd" => Ok(Some(Self::Zstd)),
            _ => Err(UnknownEncoding(name.into())),
        }
    }
}

pub struct Decoder {
    encoding: ContentEncoding,
    /// Made by the first piece.
    inflater: Option<Box<dyn Inflater>>,
    total: usize,
    /// Its window, as far as there is text in it.
    size: HeldSize,
}

impl Decoder {
    /// Its window counts as `size` says.
    pub fn new(encoding: ContentEncoding, size: HeldSize) -> Self {
        Self { encoding, inflater: None, total: 0, size }
    }

    /// What the piece becomes; it may be nothing yet. An error also when it is the last and something is missing.
    pub fn push(&mut self, piece: &[u8], is_last: bool) -> io::Result<Bytes> {
        let inflater = match &mut self.inflater {
            Some(inflater) => inflater,
            None if piece.is_empty() => return Ok(Bytes::new()),
            None => self.inflater.insert(inflater(self.encoding, piece)?),
        };
        inflater.write_all(piece)?;
        if is_last {
            inflater.end()?;
        } else {
            inflater.flush()?;
        }
        let plain = std::mem::take(&mut inflater.plain().0);
        self.total += plain.len();
        self.size.set(self.total.min(self.encoding.window())).map_err(io::Error::other)?;
        if self.total > MAX_ANSWER { Err(too_large()) } else { Ok(Bytes::from(plain)) }
    }
}

fn inflater(encoding: ContentEncoding, first: &[u8]) -> io::Result<Box<dyn Inflater>> {
    let plain = PlainText::default();
    Ok(match encoding {
        ContentEncoding::Gzip => Box::new(MultiGzDecoder::new(plain)),
        // Named after the one and mostly meant to be the other (RFC 9110, 8.4.1.2); their first bytes differ.
        ContentEncoding::Deflate => match is_zlib(first) {
            true => Box::new(ZlibDecoder::new(plain)),
            false => Box::new(DeflateDecoder::new(plain)),
        },
        ContentEncoding::Brotli if is_large_window(first) => return Err(io::Error::other("its window is too large")),
        ContentEncoding::Brotli => Box::new(DecompressorWriter::new(plain, BROTLI_BUFFER)),
        ContentEncoding::Zstd => {
            let mut decoder = zstd::stream::write::Decoder::new(plain)?;
            decoder.window_log_max(ZSTD_WINDOW)?;
            Box::new(decoder)
        }
    })
}

/// Reads what is there whole. Its end is an error where something is missing, but for deflate without a frame.
pub fn reader<'p>(encoding: ContentEncoding, packed: &'p [u8]) -> io::Result<Box<dyn Read + 'p>> {
    Ok(match encoding {
        ContentEncoding::Gzip => Box::new(bufread::MultiGzDecoder::new(packed)),
        ContentEncoding::Deflate if is_zlib(packed) => Box::new(bufread::ZlibDecoder::new(packed)),
        ContentEncoding::Deflate => Box::new(bufread::DeflateDecoder::new(packed)),
        ContentEncoding::Brotli if is_large_window(packed) => return Err(io::Error::other("its window is too large")),
        ContentEncoding::Brotli => Box::new(Decompressor::new(packed, BROTLI_BUFFER)),
        ContentEncoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
            decoder.window_log_max(ZSTD_WINDOW)?;
            Box::new(decoder)
        }
    })
}

/// Brotli beyond its standard (RFC 7932): a window of up to a gigabyte.
fn is_large_window(first: &[u8]) -> bool {
    first.first().is_some_and(|byte| byte & 0x7f == 0x11)
}

fn is_zlib(first: &[u8]) -> bool {
    match first {
        [method, flags, ..] => method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31),
        [method] => *method == 0x78,
        [] => false,
    }
}

/// The decoders of several crates, which have this in common and no trait for it.
trait Inflater: Write + Send + Sync {
    /// Nothing follows: an error if something is missing.
    fn end(&mut self) -> io::Result<()>;
    fn plain(&mut self) -> &mut PlainText;
}

impl Inflater for MultiGzDecoder<PlainText> {
    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }

    fn plain(&mut self) -> &mut PlainText {
        self.get_mut()
    }
}

impl Inflater for ZlibDecoder<PlainText> {
    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }

    fn plain(&mut self) -> &mut PlainText {
        self.get_mut()
    }
}

impl Inflater for DeflateDecoder<PlainText> {
    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }

    fn plain(&mut self) -> &mut PlainText {
        self.get_mut()
    }
}

impl Inflater for DecompressorWriter<PlainText> {
    fn end(&mut self) -> io::Result<()> {
        self.close()
    }

    fn plain(&mut self) -> &mut PlainText {
        self.get_mut()
    }
}

impl Inflater for zstd::stream::write::Decoder<'static, PlainText> {
    fn end(&mut self) -> io::Result<()> {
        self.do_finish()
    }

    fn plain(&mut self) -> &mut PlainText {
        self.get_mut()
    }
}

/// What a decoder has written, until it is taken.
#[derive(Debug, Default)]
struct PlainText(Vec<u8>);

impl Write for PlainText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_PIECE {
            return Err(too_large());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_large() -> io::Error {
    io::Error::other("it becomes too large")
}

#[cfg(test)]
mod tests;
