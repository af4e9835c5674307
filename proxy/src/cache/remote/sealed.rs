//! An entry as it lies in Redis: a byte that says the form, then the entry, compressed and sealed with its organisation's
//! data key. Workspace and digest are authenticated with it, so a value that was moved or copied opens nowhere else, and
//! whoever reads Redis learns how many answers a workspace keeps and how long they are.

use crate::cache::entry::CacheKey;
use crate::cache::remote::MAX_SIZE;
use crate::snapshot::Snapshot;
use shared::secrets::seal;
use shared::secrets::seal::Sealer;
use std::cell::RefCell;
use std::sync::Arc;
use uuid::Uuid;
use zstd::bulk::{Compressor, Decompressor};

/// Raised whenever what follows it changes.
pub const FORM: u8 = 1;
/// Answers compress well at any level, and this one costs the least.
const LEVEL: i32 = 1;

thread_local! {
    /// What they need is large and costs more to make than an entry costs to pack.
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

#[derive(Clone)]
pub struct SealedEntries {
    pub snapshot: Arc<Snapshot>,
    pub sealer: Arc<Sealer>,
}

impl SealedEntries {
    /// None without a key to seal with: nothing is ever stored that others could read.
    pub fn seal(&self, organisation: Uuid, key: &CacheKey, encoded: &[u8]) -> Option<Vec<u8>> {
        let data_key = self.snapshot.sealing_key(organisation)?;
        let sealed = self.sealer.seal_elsewhere(&data_key, &place(key), &packed(encoded)?);
        match sealed {
            Ok(sealed) => Some([&[FORM], &*sealed].concat()),
            Err(error) => {
                tracing::debug!(%error, "an answer cannot be sealed and is not kept in Redis");
                None
            }
        }
    }

    /// None for what is no entry of this key: of another form, damaged, moved, or sealed by a key that is gone.
    pub fn open(&self, organisation: Uuid, key: &CacheKey, stored: &[u8]) -> Option<Vec<u8>> {
        let sealed = stored.split_first().filter(|(form, _)| **form == FORM)?.1;
        let data_key = self.snapshot.data_key(&seal::data_key_id(sealed).ok()?)?;
        if data_key.organisation_id != organisation {
            return None;
        }
        unpacked(self.sealer.open_elsewhere(&data_key, &place(key), sealed).ok()?.expose())
    }
}

fn place(key: &CacheKey) -> Vec<u8> {
    [b"cache\0", [FORM].as_slice(), key.tenant.workspace.as_bytes(), &key.digest].concat()
}

fn packed(entry: &[u8]) -> Option<Vec<u8>> {
    PACKER.with_borrow_mut(|packer| {
        let packer = match packer {
            Some(packer) => packer,
            none => none.insert(Compressor::new(LEVEL).ok()?),
        };
        packer.compress(entry).ok()
    })
}

/// Of what we sealed ourselves, and still never longer than what we would have.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    UNPACKER.with_borrow_mut(|unpacker| {
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(Decompressor::new().ok()?),
        };
        unpacker.decompress(packed, MAX_SIZE).ok()
    })
}
