//! Bytes of a kept file on their way out: part after part, piece after piece, nothing of it held.

use super::{FileOwner, FilesAway, ManagedFile};
use bytes::{Buf as _, Bytes};
use futures::stream::{BoxStream, StreamExt as _};
use shared::log_store::{Error, LogStore, file_part};
use std::ops::Range;
use std::time::Duration;

/// For the next piece.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct FileReader<'f> {
    store: &'f LogStore,
    owner: FileOwner,
    file: &'f ManagedFile,
    /// The one that is read next.
    part: u64,
    /// Bytes of that part before what is asked for.
    skip: u64,
    left: u64,
    stream: Option<BoxStream<'static, Result<Bytes, Error>>>,
}

impl<'f> FileReader<'f> {
    pub fn new(store: &'f LogStore, owner: FileOwner, file: &'f ManagedFile, range: &Range<u64>) -> Self {
        let part_bytes = file.part_bytes.max(1);
        Self {
            store,
            owner,
            file,
            part: range.start / part_bytes,
            skip: range.start % part_bytes,
            left: range.end.min(file.bytes).saturating_sub(range.start),
            stream: None,
        }
    }

    /// Bytes to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// None at the end.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, FilesAway> {
        while self.left > 0 {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => self.stream.insert(open(self.store, self.owner, self.file, self.part).await?),
            };
            let next = tokio::time::timeout(PATIENCE, stream.next()).await.map_err(FilesAway::because)?;
            let Some(mut piece) = next.transpose()? else {
                self.stream = None;
                self.part += 1;
                continue;
            };
            let skipped = self.skip.min(piece.len() as u64);
            self.skip -= skipped;
            piece.advance(usize::try_from(skipped).unwrap_or(piece.len()));
            piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= piece.len() as u64;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }
}

/// A part that is missing, or not as long as it must be, would be a hole in the file.
async fn open(
    store: &LogStore,
    owner: FileOwner,
    file: &ManagedFile,
    part: u64,
) -> Result<BoxStream<'static, Result<Bytes, Error>>, FilesAway> {
    let expected = file.bytes.saturating_sub(part.saturating_mul(file.part_bytes)).min(file.part_bytes);
    let found = store.read(&file_part(owner.organisation, owner.workspace, file.id, part)).await?;
    match found {
        Some((length, stream)) if length == expected && expected > 0 => Ok(stream),
        _ => Err(FilesAway::because("a part of a file is missing or damaged")),
    }
}
