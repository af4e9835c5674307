//! Request ids, which are log ids (`shared::model::log_id`). Random bits come from this thread's generator, because the
//! library's own `now_v7` keeps its counter behind one lock for the whole process.

use rand::RngExt as _;
use shared::model::log_id::log_id;
use std::time::SystemTime;
use uuid::{Builder, Uuid};

pub fn new(now: SystemTime) -> Uuid {
    log_id(now, rand::rng().random())
}

/// A random id for what has no time of its own, such as a trace.
pub fn random() -> Uuid {
    Builder::from_random_bytes(rand::rng().random()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn ids_sort_by_their_time_and_are_version_7() {
        let (early, late) = (UNIX_EPOCH + Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(2));
        assert!(new(early) < new(late));
        assert_eq!(new(late).get_version_num(), 7);
        assert_ne!(new(late), new(late));
    }
}
