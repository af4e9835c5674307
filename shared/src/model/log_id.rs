//! Ids of logs: UUIDv7 whose first twelve random bits continue the clock below its millisecond (RFC 9562, section 6.2,
//! method 3). Two calls that follow each other are therefore in that order when logs are sorted by time and id, also when
//! different threads served them within one millisecond; between machines the order is as good as their clocks.
//!
//! A counter in those bits would order the calls of one thread only, and one for the whole process would be shared by all.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::{Builder, Uuid};

/// Steps that twelve bits divide a millisecond into; one is 244 ns.
const STEPS: u128 = 1 << 12;
const NANOS_PER_MILLI: u128 = 1_000_000;

/// The id of what happened at `time`. Two ids of one step are told apart by `random` alone.
pub fn log_id(time: SystemTime, random: u64) -> Uuid {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let step = (since_epoch.as_nanos() % NANOS_PER_MILLI * STEPS / NANOS_PER_MILLI) as u16;
    let mut tail = [0; 10];
    tail[..2].copy_from_slice(&step.to_be_bytes());
    tail[2..].copy_from_slice(&random.to_be_bytes());
    Builder::from_unix_timestamp_millis(since_epoch.as_millis() as u64, &tail).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(1_700_000_000_123) + Duration::from_nanos(nanos)
    }

    #[test]
    fn ids_sort_by_time_below_a_millisecond_whatever_their_random_part_is() {
        for (early, late) in [(0, 245), (245, 490), (999_000, 999_756), (999_999, 1_000_000)] {
            assert!(log_id(at(early), u64::MAX) < log_id(at(late), 0), "{early} ns before {late} ns");
        }
    }

    #[test]
    fn an_id_is_a_version_7_uuid_of_its_millisecond() {
        let id = log_id(at(999_999), 0x0123_4567_89ab_cdef);
        assert_eq!(id.get_version_num(), 7);
        let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos), (1_700_000_000, 123_000_000));
        assert_eq!(id.to_string(), "018bcfe5-687b-7fff-8123-456789abcdef");
    }

    #[test]
    fn a_time_before_the_epoch_is_the_epoch() {
        assert_eq!(log_id(UNIX_EPOCH - Duration::from_secs(1), 7), log_id(UNIX_EPOCH, 7));
    }
}
