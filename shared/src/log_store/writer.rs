//! An object that is written piece by piece. It holds a few pieces in memory, whatever the object's length, and a
//! store shows nothing of it before `finish`.

use super::Error;
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;

/// Clouds want parts of at least 5 MiB.
const PART: usize = 5 << 20;
/// Parts under way at once.
const PARTS: usize = 2;

pub struct Writer {
    inner: BufWriter,
    written: u64,
}

impl Writer {
    pub(super) fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { inner: BufWriter::with_capacity(store, path, PART).with_max_concurrency(PARTS), written: 0 }
    }

    /// Waits while too much is under way.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), Error> {
        self.written += piece.len() as u64;
        self.inner.put(piece).await.map_err(|error| Error::from_store(&error))
    }

    /// Bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub async fn finish(mut self) -> Result<(), Error> {
        self.inner.shutdown().await.map_err(|error| Error::Away(error.kind().to_string()))
    }

    /// Leaves nothing behind. One that is merely dropped may leave parts that the bucket's own rules sweep away.
    pub async fn abort(mut self) -> Result<(), Error> {
        self.inner.abort().await.map_err(|error| Error::from_store(&error))
    }
}
