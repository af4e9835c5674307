//! The time, for those who ask: most plans never do, and reading it is not free.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub trait Clock {
    fn now(&self) -> Instant;
    fn unix_seconds(&self) -> u64;
}

/// The machine's.
pub struct Machine;

impl Clock for Machine {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

/// One that stands still until it is moved.
#[cfg(test)]
pub struct Still {
    pub now: std::cell::Cell<Instant>,
    pub unix_seconds: u64,
}

#[cfg(test)]
impl Still {
    pub fn at(now: Instant) -> Self {
        Self { now: now.into(), unix_seconds: 0 }
    }

    pub fn pass(&self, duration: std::time::Duration) {
        self.now.set(self.now.get() + duration);
    }
}

#[cfg(test)]
impl Clock for Still {
    fn now(&self) -> Instant {
        self.now.get()
    }

    fn unix_seconds(&self) -> u64 {
        self.unix_seconds
    }
}
