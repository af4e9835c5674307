//! The ledger of memory: what clients and providers make the process hold (bodies, halves of events and frames, windows of
//! decoders), of all requests together. No workspace may hold more of it than is left for all others: one that is alone may
//! take half, two a third each, and whoever comes next still finds room. What is small is counted and not told apart, since a
//! request takes as much for other things.

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use uuid::Uuid;

/// Up to here it does not matter whose a body is.
pub const SMALL: usize = 64 << 10;

/// Why nothing more can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    #[error("the gateway holds as much as it may")]
    ForAnybody,
    #[error("the workspace holds as much memory as the gateway has left for others")]
    ForThisWorkspace,
}

#[derive(Debug)]
pub struct BodyMemory {
    limit: usize,
    used: AtomicUsize,
    /// What each workspace holds in large bodies. Locked when one begins to be large and when it goes, not for its pieces.
    holders: Mutex<HashMap<Uuid, Arc<AtomicUsize>>>,
}

impl BodyMemory {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), holders: Mutex::default() })
    }

    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    fn holder(&self, workspace: Uuid) -> Arc<AtomicUsize> {
        self.holders.lock().entry(workspace).or_default().clone()
    }

    /// Of a workspace that has no large body any more nothing is kept.
    fn forget_idle(&self, workspace: Uuid) {
        let mut holders = self.holders.lock();
        if holders.get(&workspace).is_some_and(|holder| Arc::strong_count(holder) == 1) {
            holders.remove(&workspace);
        }
    }
}

/// What one body takes of `BodyMemory`, given back when dropped.
pub type MemoryShare<'m> = Share<&'m BodyMemory>;

/// The same for work that may outlast its request.
pub type OwnedShare = Share<Arc<BodyMemory>>;

#[derive(Debug)]
pub struct Share<M: Deref<Target = BodyMemory>> {
    memory: M,
    workspace: Uuid,
    bytes: usize,
    /// Set once the body is large.
    holder: Option<Arc<AtomicUsize>>,
}

impl<M: Deref<Target = BodyMemory>> Share<M> {
    pub fn none(memory: M, workspace: Uuid) -> Self {
        Self { memory, workspace, bytes: 0, holder: None }
    }

    pub fn is_large(&self) -> bool {
        self.bytes > SMALL
    }

    /// What was refused counts until the share is given back.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let used = self.memory.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        self.bytes += bytes;
        let Some(left) = self.memory.limit.checked_sub(used) else { return Err(NoRoom::ForAnybody) };
        if !self.is_large() {
            return Ok(());
        }
        let (holder, more) = match &self.holder {
            Some(holder) => (holder, bytes),
            None => (&*self.holder.insert(self.memory.holder(self.workspace)), self.bytes),
        };
        let held = holder.fetch_add(more, Relaxed) + more;
        if held > left { Err(NoRoom::ForThisWorkspace) } else { Ok(()) }
    }

    /// It begins anew.
    fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        self.memory.used.fetch_sub(bytes, Relaxed);
        if let Some(holder) = self.holder.take() {
            holder.fetch_sub(bytes, Relaxed);
            drop(holder);
            self.memory.forget_idle(self.workspace);
        }
    }
}

impl<M: Deref<Target = BodyMemory>> Drop for Share<M> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// For whom something is held, and where it counts.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOwner<'m> {
    pub memory: &'m Arc<BodyMemory>,
    pub workspace: Uuid,
}

impl MemoryOwner<'_> {
    /// A share for what may outlast this borrow.
    pub fn share(self) -> OwnedShare {
        OwnedShare::none(self.memory.clone(), self.workspace)
    }
}

/// A share that follows the size of one thing, which grows and shrinks. What is small is not counted: most events and frames
/// are, and come whole.
#[derive(Debug, Default)]
pub struct HeldSize {
    /// None for what the gateway itself has made.
    share: Option<OwnedShare>,
}

impl HeldSize {
    pub fn new(owner: MemoryOwner<'_>) -> Self {
        Self { share: Some(owner.share()) }
    }

    pub fn set(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let Some(share) = &mut self.share else { return Ok(()) };
        if bytes < share.bytes || bytes <= SMALL {
            share.give_back();
        }
        if bytes <= SMALL { Ok(()) } else { share.grow(bytes - share.bytes) }
    }
}

/// Bytes that came and wait for the rest of their event or frame.
#[derive(Debug, Default)]
pub struct HeldBytes {
    bytes: BytesMut,
    size: HeldSize,
}

impl HeldBytes {
    pub fn new(owner: MemoryOwner<'_>) -> Self {
        Self { bytes: BytesMut::new(), size: HeldSize::new(owner) }
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        self.bytes.extend_from_slice(bytes);
        self.count()
    }

    /// All of it, which is no longer held.
    pub fn take(&mut self) -> BytesMut {
        if let Some(share) = &mut self.size.share {
            share.give_back();
        }
        std::mem::take(&mut self.bytes)
    }

    /// Its beginning, which is no longer held.
    pub fn split_to(&mut self, length: usize) -> Result<Bytes, NoRoom> {
        let first = self.bytes.split_to(length).freeze();
        self.count()?;
        Ok(first)
    }

    /// Memory is taken in advance: what counts is not what came.
    fn count(&mut self) -> Result<(), NoRoom> {
        self.size.set(self.bytes.capacity())
    }
}

impl Deref for HeldBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn held(memory: &BodyMemory, workspace: u128, bytes: usize) -> Result<MemoryShare<'_>, NoRoom> {
        let mut share = MemoryShare::none(memory, Uuid::from_u128(workspace));
        share.grow(bytes).map(|()| share)
    }

    #[test]
    fn a_share_is_given_back_even_when_it_was_refused() {
        let memory = BodyMemory::new(MIB);
        let mut share = MemoryShare::none(&memory, Uuid::nil());
        assert!(share.grow(MIB / 2).is_ok());
        assert!(share.grow(MIB).is_err());
        drop(share);
        assert_eq!((memory.used(), memory.holders.lock().len()), (0, 0));
    }

    #[test]
    fn no_workspace_holds_more_than_is_left_for_the_others() {
        let memory = BodyMemory::new(12 * MIB);
        let mut shares: Vec<_> = (0..6).map(|_| held(&memory, 1, MIB).unwrap()).collect();
        assert_eq!(held(&memory, 1, MIB).unwrap_err(), NoRoom::ForThisWorkspace, "half is the most that one may have");
        shares.push(held(&memory, 2, 3 * MIB).unwrap());
        assert_eq!(held(&memory, 2, MIB).unwrap_err(), NoRoom::ForThisWorkspace);
        shares.push(held(&memory, 3, MIB).unwrap());
        assert!(held(&memory, 1, SMALL).is_ok(), "a small body is nobody's matter");
        shares.drain(..6);
        assert!(held(&memory, 2, MIB).is_ok(), "what one gives back is there for the others");
    }

    #[test]
    fn small_bodies_count_towards_the_memory_of_all() {
        let memory = BodyMemory::new(10 * SMALL);
        let shares: Vec<_> = (0..10).map(|_| held(&memory, 1, SMALL).unwrap()).collect();
        assert!(held(&memory, 2, 1).is_err());
        drop(shares);
        assert!(held(&memory, 2, 1).is_ok());
    }

    #[test]
    fn a_body_counts_whole_once_it_is_large() {
        let memory = BodyMemory::new(4 * MIB);
        let mut share = MemoryShare::none(&memory, Uuid::nil());
        for _ in 0..32 {
            share.grow(SMALL).unwrap();
        }
        assert_eq!(share.grow(SMALL).unwrap_err(), NoRoom::ForThisWorkspace);
    }

    #[test]
    fn what_waits_counts_while_it_waits() {
        let memory = BodyMemory::new(4 * MIB);
        let mut half = HeldBytes::new(MemoryOwner { memory: &memory, workspace: Uuid::nil() });
        half.put(&[0; SMALL]).unwrap();
        assert_eq!(memory.used(), 0, "small ones are left alone");
        half.put(&[0; MIB]).unwrap();
        assert!((MIB..=3 * MIB).contains(&memory.used()), "{}", memory.used());
        assert_eq!(half.split_to(MIB).unwrap().len(), MIB);
        assert!(memory.used() < MIB);
        let refused = (0..8).find_map(|_| half.put(&[0; MIB]).err());
        assert_eq!(refused, Some(NoRoom::ForThisWorkspace));
        drop(half.take());
        assert_eq!((memory.used(), memory.holders.lock().len()), (0, 0));
    }
}
