//! How far the snapshot has followed the feed, and how old what it shows may be.

use chrono::{DateTime, Utc};
use std::time::{Duration, Instant};

/// How far the feed has come. Metrics, readiness and the disk copy go by it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FeedProgress {
    /// Successful reads of the feed, with or without news.
    pub reads: u64,
    /// How many of them had to read everything.
    pub reloads: u64,
    /// Grows whenever a row changed.
    pub version: u64,
    /// The oldest transaction whose changes may still be missing.
    pub cursor: u64,
    /// When Postgres last vouched for the rows; None before anything was loaded.
    pub confirmed: Option<Confirmed>,
}

/// The moment of a confirmation, by both clocks: the wall's for the disk copy, the steady one for the age.
#[derive(Debug, Clone, Copy)]
pub struct Confirmed {
    pub at: DateTime<Utc>,
    noted: Instant,
    age_when_noted: Duration,
}

impl Confirmed {
    pub(super) fn now(at: DateTime<Utc>) -> Self {
        Self::aged(at, Duration::ZERO)
    }

    pub(super) fn aged(at: DateTime<Utc>, age: Duration) -> Self {
        Self { at, noted: Instant::now(), age_when_noted: age }
    }

    pub fn age(&self) -> Duration {
        self.age_when_noted + self.noted.elapsed()
    }
}
