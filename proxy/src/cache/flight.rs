//! Equal requests that wait for one call: the first to miss asks the provider, those that come meanwhile wait for what it
//! gets. One that fails, is not kept, or whose client leaves frees them: one of them asks then, and the others wait for that one,
//! instead of all going to a provider that has just failed; after that each goes on by itself.

use super::entry::{CacheKey, Entry};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Calls that others wait for.
#[derive(Default)]
pub struct Flights(Mutex<HashMap<CacheKey, watch::Receiver<Landed>, foldhash::fast::RandomState>>);

/// None as long as it is under way.
type Landed = Option<Arc<Entry>>;

pub enum Boarding {
    /// Nobody has asked for it yet: others wait for this one.
    First(Flight),
    Waiting(Follower),
}

/// A call that others may wait for. Dropped, they wait no longer.
pub struct Flight {
    flights: Arc<Flights>,
    key: CacheKey,
    landed: watch::Sender<Landed>,
}

pub struct Follower(watch::Receiver<Landed>);

impl Flights {
    pub fn board(self: &Arc<Self>, key: CacheKey) -> Boarding {
        let mut flights = self.0.lock();
        if let Some(flight) = flights.get(&key) {
            return Boarding::Waiting(Follower(flight.clone()));
        }
        let (landed, follow) = watch::channel(None);
        flights.insert(key, follow);
        Boarding::First(Flight { flights: self.clone(), key, landed })
    }
}

impl Flight {
    /// Those who wait get this.
    pub fn land(self, entry: Arc<Entry>) {
        self.landed.send_replace(Some(entry));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.0.lock().remove(&self.key);
    }
}

impl Follower {
    /// None where there is nothing to share.
    pub async fn landing(mut self) -> Option<Arc<Entry>> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::entry::tests::entry;
    use crate::runtime::tenant_share::Tenant;

    fn key() -> CacheKey {
        CacheKey { tenant: Tenant::test(1, 1), digest: [1; 32] }
    }

    fn first(flights: &Arc<Flights>) -> Flight {
        match flights.board(key()) {
            Boarding::First(flight) => flight,
            Boarding::Waiting(_) => panic!("somebody is under way"),
        }
    }

    fn waiting(flights: &Arc<Flights>) -> Follower {
        match flights.board(key()) {
            Boarding::First(_) => panic!("nobody is under way"),
            Boarding::Waiting(follower) => follower,
        }
    }

    #[tokio::test]
    async fn those_who_wait_get_what_the_first_gets() {
        let flights = Arc::<Flights>::default();
        let flight = first(&flights);
        let followers = [waiting(&flights), waiting(&flights)];
        flight.land(Arc::new(entry(b"{}")));
        for follower in followers {
            assert_eq!(follower.landing().await.unwrap().body, "{}");
        }
        drop(first(&flights));
    }

    #[tokio::test]
    async fn one_that_does_not_land_frees_those_who_wait() {
        let flights = Arc::<Flights>::default();
        let flight = first(&flights);
        let follower = waiting(&flights);
        drop(flight);
        assert!(follower.landing().await.is_none());
        assert!(flights.0.lock().is_empty());
        drop(first(&flights));
    }
}
