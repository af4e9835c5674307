//! How fast a file of the journal is sent. Half a second of calls at once is a burst of work here and in Postgres, which
//! may share the cores with those that serve; so it is sent in small pieces with as much rest between them. What is late,
//! after an outage or a peak, goes as fast as it can: then the disk fills up.

use std::time::{Duration, SystemTime};

/// A file that is older than this when it is sent is late.
const LATE: Duration = Duration::from_secs(5);
const MAX_REST: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShipPace {
    is_full: bool,
}

impl ShipPace {
    /// For what takes time and no processor.
    pub const FULL: Self = Self { is_full: true };

    /// For a file that was begun at `since`.
    pub fn for_file(since: SystemTime, now: SystemTime) -> Self {
        Self { is_full: now.duration_since(since).is_ok_and(|age| age > LATE) }
    }

    /// How much of at most `most` is sent at once.
    pub fn piece(self, most: usize) -> usize {
        if self.is_full { most } else { (most / 16).max(1) }
    }

    /// After a piece that took this long.
    pub async fn rest(self, took: Duration) {
        match self.is_full {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(took.min(MAX_REST)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_sent_in_large_pieces() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        for (age, expected) in [(0, 250), (5, 250), (6, 4000)] {
            assert_eq!(ShipPace::for_file(now - Duration::from_secs(age), now).piece(4000), expected, "{age} s");
        }
        assert_eq!(
            ShipPace::for_file(now + Duration::from_secs(60), now).piece(4000),
            250,
            "a clock that was set back"
        );
        assert_eq!(ShipPace::for_file(now, now).piece(3), 1);
    }
}
