//! What an organisation may do at once of something that only few can do at the same time. Whoever asks for more is
//! refused at once, so that others never wait behind one organisation's queue.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use uuid::Uuid;

pub struct Shares {
    most: usize,
    taken: Mutex<BTreeMap<Uuid, usize>>,
}

/// Given back when dropped.
pub struct Share {
    of: &'static Shares,
    organisation: Uuid,
}

impl Shares {
    pub const fn new(most: usize) -> Self {
        Self { most, taken: Mutex::new(BTreeMap::new()) }
    }

    pub fn take(&'static self, organisation: Uuid) -> Option<Share> {
        let mut taken = self.taken.lock();
        let count = taken.entry(organisation).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share { of: self, organisation })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock();
        let left = taken.get(&self.organisation).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => taken.remove(&self.organisation),
            _ => taken.insert(self.organisation, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organisation_has_its_share_and_leaves_others_theirs() {
        static SHARES: Shares = Shares::new(2);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let held: Vec<Share> = (0..2).filter_map(|_| SHARES.take(one)).collect();
        assert_eq!(held.len(), 2);
        assert!(SHARES.take(one).is_none() && SHARES.take(other).is_some());
        drop(held);
        assert!(SHARES.take(one).is_some());
        assert!(SHARES.taken.lock().is_empty(), "nobody is remembered");
    }
}
