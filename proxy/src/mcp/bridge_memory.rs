//! What sessions of the older transport hold of what servers said, until their clients read it: bounded for a session, and in
//! all, shared out between tenants (`tenant_share`).

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) const MAX_BYTES: usize = 256 << 20;
/// No less than the longest answer.
const MAX_OF_SESSION: usize = super::MAX_ANSWER + (1 << 20);

#[derive(Debug)]
pub struct BridgeMemory(Arc<TenantShare>);

impl Default for BridgeMemory {
    fn default() -> Self {
        Self(TenantShare::new(MAX_BYTES, ShareRule::REFUSING))
    }
}

impl BridgeMemory {
    pub fn session(&self, tenant: Tenant) -> SessionMemory {
        SessionMemory { share: self.0.clone(), tenant, held: Arc::default() }
    }
}

/// What one session holds.
#[derive(Debug, Clone)]
pub struct SessionMemory {
    share: Arc<TenantShare>,
    tenant: Tenant,
    held: Arc<AtomicUsize>,
}

impl SessionMemory {
    /// None when that is too much, for the session or for its tenant.
    pub fn hold(&self, bytes: usize) -> Option<HeldBytes> {
        let room = Holding::none(self.share.clone(), self.tenant);
        let mut held = HeldBytes { room, session: self.held.clone() };
        held.resize(bytes).then_some(held)
    }
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    room: Holding,
    /// Of all of the session.
    session: Arc<AtomicUsize>,
}

impl HeldBytes {
    /// False when that is too much; what was held stays so.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let before = self.room.amount();
        if let Some(more) = bytes.checked_sub(before) {
            let of_session = self.session.fetch_add(more, Relaxed) + more;
            if of_session > MAX_OF_SESSION || self.room.try_grow(more).is_err() {
                self.session.fetch_sub(more, Relaxed);
                return false;
            }
        } else {
            self.session.fetch_sub(before - bytes, Relaxed);
            self.room.shrink(before - bytes);
        }
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
        let memory = BridgeMemory::default();
        let session = memory.session(Tenant::test(1, 1));
        let mut first = session.hold(MAX_OF_SESSION).unwrap();
        assert!(session.hold(1).is_none());
        assert!(!first.resize(MAX_OF_SESSION + 1));
        assert!(first.resize(MAX_OF_SESSION - 1));
        assert!(session.hold(1).is_some());
        drop(first);
        assert!(session.hold(MAX_OF_SESSION).is_some());
        assert_eq!((memory.0.used(), memory.0.held(Tenant::test(1, 1))), (0, (0, 0)));
    }

    #[test]
    fn an_organisation_leaves_room_for_others() {
        let memory = BridgeMemory::default();
        let fill = |organisation: u128| {
            let more = |own: u128| memory.session(Tenant::test(organisation, own)).hold(MAX_OF_SESSION / 4);
            (0..64).filter_map(more).collect::<Vec<_>>()
        };
        let [first, second, third] = [fill(1), fill(2), fill(3)];
        assert!(first.len() * (MAX_OF_SESSION / 4) <= MAX_BYTES / 2);
        assert!(!second.is_empty() && !third.is_empty());
        drop(first);
        assert!(!fill(4).is_empty());
    }
}
