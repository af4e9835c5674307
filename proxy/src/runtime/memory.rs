//! The ledger of memory: what clients and providers make the process hold (bodies, halves of events and frames, windows of
//! decoders), of all requests together, shared out between tenants (`tenant_share`). What is small is counted and not told
//! apart, since a request takes as much for other things.

pub use super::tenant_share::NoRoom;
use super::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use bytes::{Bytes, BytesMut};
use std::ops::Deref;
use std::sync::Arc;

/// Up to here it does not matter whose a body is.
pub const SMALL: usize = 64 << 10;

pub type BodyMemory = TenantShare;

pub fn body_memory(limit: usize) -> Arc<BodyMemory> {
    TenantShare::new(limit, ShareRule::REFUSING)
}

/// What one body takes of `BodyMemory`, given back when dropped.
pub type MemoryShare<'m> = Share<&'m BodyMemory>;

/// The same for work that may outlast its request.
pub type OwnedShare = Share<Arc<BodyMemory>>;

#[derive(Debug)]
pub struct Share<M: Deref<Target = BodyMemory>>(Holding<M>);

impl<M: Deref<Target = BodyMemory>> Share<M> {
    pub fn none(memory: M, tenant: Tenant) -> Self {
        Self(Holding::none(memory, tenant))
    }

    pub fn tenant(&self) -> Tenant {
        self.0.tenant()
    }

    pub fn is_large(&self) -> bool {
        self.0.amount() > SMALL
    }

    /// What was refused counts until the share is given back.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        match self.0.amount() + bytes > SMALL {
            true => self.0.grow(bytes),
            false => self.0.grow_small(bytes),
        }
    }

    /// It begins anew.
    fn give_back(&mut self) {
        self.0.give_back();
    }
}

/// For whom something is held, and where it counts.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOwner<'m> {
    pub memory: &'m Arc<BodyMemory>,
    pub tenant: Tenant,
}

impl MemoryOwner<'_> {
    /// A share for what may outlast this borrow.
    pub fn share(self) -> OwnedShare {
        OwnedShare::none(self.memory.clone(), self.tenant)
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
        if bytes < share.0.amount() || bytes <= SMALL {
            share.give_back();
        }
        if bytes <= SMALL { Ok(()) } else { share.grow(bytes - share.0.amount()) }
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

    fn held(memory: &BodyMemory, tenant: Tenant, bytes: usize) -> Result<MemoryShare<'_>, NoRoom> {
        let mut share = MemoryShare::none(memory, tenant);
        share.grow(bytes).map(|()| share)
    }

    #[test]
    fn a_share_is_given_back_even_when_it_was_refused() {
        let memory = body_memory(MIB);
        let tenant = Tenant::test(1, 1);
        let mut share = MemoryShare::none(&memory, tenant);
        assert!(share.grow(MIB / 4).is_ok());
        assert!(share.grow(MIB).is_err());
        drop(share);
        assert_eq!((memory.used(), memory.held(tenant)), (0, (0, 0)));
    }

    #[test]
    fn no_organisation_holds_more_than_is_left_for_the_others() {
        let memory = body_memory(12 * MIB);
        let mut shares: Vec<_> = (0..5).map(|own| held(&memory, Tenant::test(1, own), MIB).unwrap()).collect();
        let refused = |tenant, bytes| held(&memory, tenant, bytes).unwrap_err();
        assert_eq!(refused(Tenant::test(1, 9), 2 * MIB), NoRoom::ForThisOrganisation, "half is the most for one");
        shares.push(held(&memory, Tenant::test(2, 1), 2 * MIB).unwrap());
        let rest = MIB + MIB / 2;
        assert_eq!(refused(Tenant::test(2, 1), rest), NoRoom::ForThisWorkspace, "some is for its siblings");
        shares.push(held(&memory, Tenant::test(2, 2), MIB / 2).unwrap());
        shares.push(held(&memory, Tenant::test(3, 1), MIB).unwrap());
        assert!(held(&memory, Tenant::test(1, 1), SMALL).is_ok(), "a small body is nobody's matter");
        shares.drain(..5);
        assert!(held(&memory, Tenant::test(2, 1), MIB).is_ok(), "what one gives back is there for the others");
    }

    #[test]
    fn small_bodies_count_towards_the_memory_of_all() {
        let memory = body_memory(10 * SMALL);
        let shares: Vec<_> = (0..10).map(|_| held(&memory, Tenant::test(1, 1), SMALL).unwrap()).collect();
        assert!(held(&memory, Tenant::test(2, 2), 1).is_err());
        drop(shares);
        assert!(held(&memory, Tenant::test(2, 2), 1).is_ok());
    }

    #[test]
    fn a_body_counts_whole_once_it_is_large() {
        let memory = body_memory(4 * MIB);
        let mut share = MemoryShare::none(&memory, Tenant::test(1, 1));
        for _ in 0..30 {
            share.grow(SMALL).unwrap();
        }
        assert_eq!(share.grow(SMALL).unwrap_err(), NoRoom::ForThisWorkspace);
    }

    #[test]
    fn what_waits_counts_while_it_waits() {
        let memory = body_memory(4 * MIB);
        let tenant = Tenant::test(1, 1);
        let mut half = HeldBytes::new(MemoryOwner { memory: &memory, tenant });
        half.put(&[0; SMALL]).unwrap();
        assert_eq!(memory.used(), 0, "small ones are left alone");
        half.put(&[0; MIB]).unwrap();
        assert!((MIB..=3 * MIB).contains(&memory.used()), "{}", memory.used());
        assert_eq!(half.split_to(MIB).unwrap().len(), MIB);
        assert!(memory.used() < MIB);
        let refused = (0..8).find_map(|_| half.put(&[0; MIB]).err());
        assert!(matches!(refused, Some(NoRoom::ForThisOrganisation | NoRoom::ForThisWorkspace)), "{refused:?}");
        drop(half.take());
        assert_eq!((memory.used(), memory.held(tenant)), (0, (0, 0)));
    }
}
