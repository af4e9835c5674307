//! Bytes of an upload on their way into the store: as soon as a part is full it is stored. So an upload holds one part,
//! whatever its length.

use super::{FileOwner, FilesAway};
use bytes::{Bytes, BytesMut};
use shared::log_store::{LogStore, file_part};
use uuid::Uuid;

pub const PART_BYTES: usize = 8 << 20;

pub struct Intake<'s> {
    store: &'s LogStore,
    owner: FileOwner,
    id: Uuid,
    part: BytesMut,
    parts: u64,
    bytes: u64,
}

impl<'s> Intake<'s> {
    pub fn new(store: &'s LogStore, owner: FileOwner, id: Uuid) -> Self {
        Self { store, owner, id, part: BytesMut::new(), parts: 0, bytes: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub async fn take(&mut self, mut piece: Bytes) -> Result<(), FilesAway> {
        self.bytes += piece.len() as u64;
        while !piece.is_empty() {
            let room = PART_BYTES - self.part.len();
            let some = piece.split_to(room.min(piece.len()));
            self.part.extend_from_slice(&some);
            if self.part.len() == PART_BYTES {
                self.store_part().await?;
            }
        }
        Ok(())
    }

    /// Stores what is left, and tells how long the file is.
    pub async fn finish(mut self) -> Result<u64, FilesAway> {
        if !self.part.is_empty() {
            self.store_part().await?;
        }
        Ok(self.bytes)
    }

    async fn store_part(&mut self) -> Result<(), FilesAway> {
        let FileOwner { organisation, workspace } = self.owner;
        let path = file_part(organisation, workspace, self.id, self.parts);
        self.store.put(&path, std::mem::take(&mut self.part).freeze()).await?;
        self.parts += 1;
        Ok(())
    }
}
