//! Compresses one body after the other. What a compressor needs is large and costs more to make than a small body costs
//! to compress, so it is made once and kept.

use bytes::Bytes;
use std::fmt;
use std::io;
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

/// Bodies compress well and are read seldom; more effort gains little.
const LEVEL: i32 = 3;
/// A longer buffer is not kept for the next body.
const MAX_IDLE_BUFFER: usize = 1 << 20;

#[derive(Default)]
pub struct Packer {
    compressor: Option<Compressor<'static>>,
    buffer: Vec<u8>,
}

impl Packer {
    /// The same bytes for the same body, whatever came before it.
    pub fn pack(&mut self, json: &[u8]) -> io::Result<Bytes> {
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(LEVEL)?),
        };
        self.buffer.clear();
        self.buffer.reserve(compress_bound(json.len()));
        compressor.compress_to_buffer(json, &mut self.buffer)?;
        // Copied, because what is reserved is as long as the body was.
        let packed = Bytes::copy_from_slice(&self.buffer);
        if self.buffer.capacity() > MAX_IDLE_BUFFER {
            self.buffer = Vec::new();
        }
        Ok(packed)
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_store::{pack, unpack};

    #[test]
    fn a_packer_gives_the_same_bytes_for_a_body_whatever_came_before_it() {
        let long: Vec<u8> = (0..2_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let bodies = [&b"{}"[..], &long, br#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#, b"", &long[..5000], b"{}"];
        let mut packer = Packer::default();
        for body in bodies {
            let packed = packer.pack(body).unwrap();
            assert_eq!(packed, pack(body).unwrap(), "{} bytes", body.len());
            assert_eq!(unpack(&packed, body.len()).unwrap(), body);
        }
    }
}
