//! Request ids: UUIDv7, so that a log id carries its time. Random bits come from this thread's generator, because
//! the library's own `now_v7` keeps its counter behind one lock for the whole process.

use rand::RngExt as _;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::{Builder, Uuid};

pub fn new(now: SystemTime) -> Uuid {
    let millis = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let random: [u8; 10] = rand::rng().random();
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// A random id for what has no time of its own, such as a trace.
pub fn random() -> Uuid {
    Builder::from_random_bytes(rand::rng().random()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ids_sort_by_their_time_and_are_version_7() {
        let (early, late) = (UNIX_EPOCH + Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(2));
        assert!(new(early) < new(late));
        assert_eq!(new(late).get_version_num(), 7);
        assert_ne!(new(late), new(late));
    }
}
