//! A compressed answer, made readable on the side: its usage must be found though its bytes are passed on as they came.
//! Bounded, because what compresses well is large: an answer that grows beyond any provider's is no longer read.

use brotli_decompressor::DecompressorWriter;
use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use parking_lot::Mutex;
use std::io::{self, Write};
use std::sync::Arc;

/// What one piece, and a whole answer, may become.
const MOST_OF_PIECE: usize = 8 << 20;
const MOST: usize = 256 << 20;
const BROTLI_BUFFER: usize = 4 << 10;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEncoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// None when it is plain.
pub fn encoding(head: &HeaderMap) -> Result<Option<AnswerEncoding>, UndecodableBody> {
    let mut lines = head.get_all(header::CONTENT_ENCODING).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return if head.contains_key(header::CONTENT_ENCODING) { Err(UndecodableBody) } else { Ok(None) };
    };
    match &*line.as_bytes().trim_ascii().to_ascii_lowercase() {
        b"identity" | b"" => Ok(None),
        b"gzip" | b"x-gzip" => Ok(Some(AnswerEncoding::Gzip)),
        b"deflate" => Ok(Some(AnswerEncoding::Deflate)),
        b"br" => Ok(Some(AnswerEncoding::Brotli)),
        b"zstd" => Ok(Some(AnswerEncoding::Zstd)),
        _ => Err(UndecodableBody),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is compressed in a way that cannot be read here")]
pub struct UndecodableBody;

pub struct Decoder {
    encoding: AnswerEncoding,
    /// Made by the first piece.
    writer: Option<Box<dyn Write + Send + Sync>>,
    sink: Sink,
    total: usize,
}

impl Decoder {
    pub fn new(encoding: AnswerEncoding) -> Self {
        Self { encoding, writer: None, sink: Sink::default(), total: 0 }
    }

    /// What a piece says in plain text, as far as it can be told yet.
    pub fn decode(&mut self, piece: &[u8]) -> Result<Bytes, UndecodableBody> {
        if piece.is_empty() {
            return Ok(Bytes::new());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(writer(self.encoding, piece, self.sink.clone()).map_err(|_| UndecodableBody)?),
        };
        writer.write_all(piece).and_then(|()| writer.flush()).map_err(|_| UndecodableBody)?;
        let plain = std::mem::take(&mut *self.sink.0.lock());
        self.total += plain.len();
        if self.total > MOST { Err(UndecodableBody) } else { Ok(Bytes::from(plain)) }
    }
}

fn writer(encoding: AnswerEncoding, first: &[u8], sink: Sink) -> io::Result<Box<dyn Write + Send + Sync>> {
    Ok(match encoding {
        AnswerEncoding::Gzip => Box::new(MultiGzDecoder::new(sink)),
        // Named after the one and mostly meant to be the other (RFC 9110, 8.4.1.2); their first bytes differ.
        AnswerEncoding::Deflate => match is_zlib(first) {
            true => Box::new(ZlibDecoder::new(sink)),
            false => Box::new(DeflateDecoder::new(sink)),
        },
        AnswerEncoding::Brotli => Box::new(DecompressorWriter::new(sink, BROTLI_BUFFER)),
        AnswerEncoding::Zstd => Box::new(zstd::stream::write::Decoder::new(sink)?),
    })
}

fn is_zlib(first: &[u8]) -> bool {
    match first {
        [method, flags, ..] => method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31),
        [method] => *method == 0x78,
        [] => false,
    }
}

/// What a decoder writes, until it is taken.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = self.0.lock();
        if plain.len() + bytes.len() > MOST_OF_PIECE {
            return Err(io::Error::other(UndecodableBody));
        }
        plain.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::HeaderValue;

    const TEXT: &[u8] = br#"data: {"usage":{"prompt_tokens":7}}"#;

    fn compressed(encoding: AnswerEncoding, text: &[u8]) -> Vec<u8> {
        match encoding {
            AnswerEncoding::Gzip => {
                let mut out = GzEncoder::new(Vec::new(), Compression::default());
                out.write_all(text).unwrap();
                out.finish().unwrap()
            }
            AnswerEncoding::Deflate => {
                let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
                out.write_all(text).unwrap();
                out.finish().unwrap()
            }
            AnswerEncoding::Zstd => zstd::encode_all(text, 1).unwrap(),
            AnswerEncoding::Brotli => stored_brotli(text),
        }
    }

    /// A window of 16 bits, one uncompressed block, and the empty last one (RFC 7932, 9.2).
    fn stored_brotli(text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len() - 1).unwrap();
        // Bits, lowest first: WBITS 0; ISLAST 0; MNIBBLES 00; MLEN - 1 in 16 bits; ISUNCOMPRESSED 1.
        let bits: u32 = (length << 4) | (1 << 20);
        let mut out = bits.to_le_bytes()[..3].to_vec();
        out.extend_from_slice(text);
        out.push(0b11);
        out
    }

    #[test]
    fn every_encoding_is_read_in_any_pieces() {
        for encoding in [AnswerEncoding::Gzip, AnswerEncoding::Deflate, AnswerEncoding::Brotli, AnswerEncoding::Zstd] {
            let whole = compressed(encoding, TEXT);
            for size in [1, 2, 7, whole.len()] {
                let mut decoder = Decoder::new(encoding);
                let plain: Vec<u8> =
                    whole.chunks(size).flat_map(|piece| decoder.decode(piece).unwrap().to_vec()).collect();
                assert_eq!(plain, TEXT, "{encoding:?} in pieces of {size}");
            }
        }
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(TEXT).unwrap();
        assert_eq!(
            Decoder::new(AnswerEncoding::Deflate).decode(&raw.finish().unwrap()).unwrap(),
            TEXT,
            "without a wrapper"
        );
    }

    #[test]
    fn an_event_is_read_before_its_stream_ends() {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(TEXT).unwrap();
        out.flush().unwrap();
        assert_eq!(Decoder::new(AnswerEncoding::Gzip).decode(out.get_ref()).unwrap(), TEXT);
    }

    #[test]
    fn what_grows_without_end_is_given_up() {
        for encoding in [AnswerEncoding::Gzip, AnswerEncoding::Deflate, AnswerEncoding::Zstd] {
            let bomb = compressed(encoding, &vec![b' '; MOST_OF_PIECE + 1]);
            assert_eq!(Decoder::new(encoding).decode(&bomb), Err(UndecodableBody), "{encoding:?}");
        }
        assert_eq!(Decoder::new(AnswerEncoding::Gzip).decode(b"no gzip at all"), Err(UndecodableBody));
    }

    #[test]
    fn a_head_says_how_its_body_is_written() {
        for (lines, expected) in [
            (&[][..], Ok(None)),
            (&["identity"], Ok(None)),
            (&["GZip "], Ok(Some(AnswerEncoding::Gzip))),
            (&["br"], Ok(Some(AnswerEncoding::Brotli))),
            (&["gzip, br"], Err(UndecodableBody)),
            (&["gzip", "gzip"], Err(UndecodableBody)),
            (&["lz4"], Err(UndecodableBody)),
        ] {
            let mut head = HeaderMap::new();
            for line in lines {
                head.append(header::CONTENT_ENCODING, HeaderValue::from_static(line));
            }
            assert_eq!(encoding(&head), expected, "{lines:?}");
        }
    }
}
