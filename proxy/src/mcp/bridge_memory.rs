//! What sessions of the older transport hold of what servers said, until their clients read it: bounded for a session, and in
//! all. No organisation may hold more than is left for all others: one that is alone may take half, two a third each.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use uuid::Uuid;

const MOST: usize = 256 << 20;
/// No less than the longest answer.
const MOST_OF_SESSION: usize = super::LONGEST_ANSWER + (1 << 20);

#[derive(Debug, Default)]
pub struct BridgeMemory(Mutex<HeldByOrganisations>);

#[derive(Debug, Default)]
struct HeldByOrganisations {
    all: usize,
    each: HashMap<Uuid, usize>,
}

impl BridgeMemory {
    fn grow(&self, organisation: Uuid, bytes: usize) -> bool {
        let mut held = self.0.lock();
        let (all, own) = (held.all + bytes, held.each.get(&organisation).copied().unwrap_or(0) + bytes);
        if own > MOST.saturating_sub(all) {
            return false;
        }
        held.all = all;
        held.each.insert(organisation, own);
        true
    }

    fn shrink(&self, organisation: Uuid, bytes: usize) {
        let mut held = self.0.lock();
        held.all -= bytes;
        if let Some(own) = held.each.get_mut(&organisation) {
            *own -= bytes;
            if *own == 0 {
                held.each.remove(&organisation);
            }
        }
    }
}

/// What one session holds.
#[derive(Debug, Clone)]
pub struct SessionMemory {
    memory: Arc<BridgeMemory>,
    organisation: Uuid,
    held: Arc<AtomicUsize>,
}

impl SessionMemory {
    pub fn new(memory: Arc<BridgeMemory>, organisation: Uuid) -> Self {
        Self { memory, organisation, held: Arc::default() }
    }

    /// None when that is too much, for the session or for its organisation.
    pub fn hold(&self, bytes: usize) -> Option<HeldBytes> {
        let mut held = HeldBytes { session: self.clone(), bytes: 0 };
        held.resize(bytes).then_some(held)
    }
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    session: SessionMemory,
    bytes: usize,
}

impl HeldBytes {
    /// False when that is too much; what was held stays so.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let SessionMemory { memory, organisation, held } = &self.session;
        if let Some(more) = bytes.checked_sub(self.bytes) {
            if held.fetch_add(more, Relaxed) + more > MOST_OF_SESSION || !memory.grow(*organisation, more) {
                held.fetch_sub(more, Relaxed);
                return false;
            }
        } else {
            held.fetch_sub(self.bytes - bytes, Relaxed);
            memory.shrink(*organisation, self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_holds_so_much_and_no_more() {
        let session = SessionMemory::new(Arc::default(), Uuid::from_u128(1));
        let mut first = session.hold(MOST_OF_SESSION).unwrap();
        assert!(session.hold(1).is_none());
        assert!(!first.resize(MOST_OF_SESSION + 1));
        assert!(first.resize(MOST_OF_SESSION - 1));
        assert!(session.hold(1).is_some());
        drop(first);
        assert!(session.hold(MOST_OF_SESSION).is_some());
        assert_eq!(session.memory.0.lock().all, 0);
        assert!(session.memory.0.lock().each.is_empty());
    }

    #[test]
    fn an_organisation_leaves_room_for_others() {
        let memory = Arc::<BridgeMemory>::default();
        let fill = |organisation: u128| {
            let mut held = Vec::new();
            while let Some(more) =
                SessionMemory::new(memory.clone(), Uuid::from_u128(organisation)).hold(MOST_OF_SESSION / 4)
            {
                held.push(more);
            }
            held
        };
        let [first, second, third] = [fill(1), fill(2), fill(3)];
        assert!(first.len() * (MOST_OF_SESSION / 4) <= MOST / 2);
        assert!(!second.is_empty() && !third.is_empty());
        drop(first);
        assert!(!fill(4).is_empty());
    }
}
