//! The memory that request bodies take, of all requests of the process together. No workspace may hold more of it than
//! is left for all others: one that is alone may take half, two a third each, and whoever comes next still finds room.
//! Small bodies are counted and not told apart, since a request takes as much for other things.

use crate::refusal::Refusal;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use uuid::Uuid;

/// Up to here it does not matter whose a body is.
const SMALL: usize = 64 << 10;

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

    pub fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        let used = self.memory.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        self.bytes += bytes;
        let Some(left) = self.memory.limit.checked_sub(used) else { return Err(Refusal::overloaded()) };
        if !self.is_large() {
            return Ok(());
        }
        let (holder, more) = match &self.holder {
            Some(holder) => (holder, bytes),
            None => (&*self.holder.insert(self.memory.holder(self.workspace)), self.bytes),
        };
        let held = holder.fetch_add(more, Relaxed) + more;
        if held > left { Err(Refusal::too_many_bodies()) } else { Ok(()) }
    }
}

impl<M: Deref<Target = BodyMemory>> Drop for Share<M> {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Relaxed);
        if let Some(holder) = self.holder.take() {
            holder.fetch_sub(self.bytes, Relaxed);
            drop(holder);
            self.memory.forget_idle(self.workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn held(memory: &BodyMemory, workspace: u128, bytes: usize) -> Result<MemoryShare<'_>, &'static str> {
        let mut share = MemoryShare::none(memory, Uuid::from_u128(workspace));
        share.grow(bytes).map(|()| share).map_err(|refusal| refusal.code.as_str())
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
        assert_eq!(held(&memory, 1, MIB).unwrap_err(), "overloaded", "half is the most that one may have");
        shares.push(held(&memory, 2, 3 * MIB).unwrap());
        assert_eq!(held(&memory, 2, MIB).unwrap_err(), "overloaded");
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
        assert_eq!(share.grow(SMALL).unwrap_err().code.as_str(), "overloaded");
    }
}
