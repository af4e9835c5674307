//! How often one credential may call the control plane. Off unless the operator sets it. Counted by this process
//! alone, per minute of the clock: it stops scripts that run wild and is not meant to be exact.

use crate::http::ApiError;
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

const TOO_OFTEN: &str = "This credential calls the control plane more often than allowed (ADMIN_REQUESTS_PER_MINUTE)";
const MINUTE: i64 = 60;
/// Counted apart within one minute; who comes later is counted together with others who do.
const MAX_CALLERS: usize = 100_000;

pub struct RequestLimit {
    /// 0 is no limit.
    per_minute: u32,
    counted: Mutex<MinuteCounts>,
}

/// The requests of one minute, by credential.
#[derive(Default)]
struct MinuteCounts {
    minute: i64,
    requests: HashMap<Uuid, u32>,
}

impl RequestLimit {
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, counted: Mutex::default() }
    }

    /// Counts a request, or says when the next one may come.
    pub fn take(&self, credential: Uuid, now: DateTime<Utc>) -> Result<(), ApiError> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let seconds = now.timestamp();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.minute != seconds.div_euclid(MINUTE) {
            *counted = MinuteCounts { minute: seconds.div_euclid(MINUTE), requests: HashMap::new() };
        }
        let is_counted = counted.requests.len() < MAX_CALLERS || counted.requests.contains_key(&credential);
        let requests = counted.requests.entry(if is_counted { credential } else { Uuid::nil() }).or_default();
        if *requests >= self.per_minute {
            let retry_after = (MINUTE - seconds.rem_euclid(MINUTE)).unsigned_abs();
            return Err(ApiError::RateLimited { message: TOO_OFTEN, retry_after });
        }
        *requests += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_credential_has_its_own_requests_in_each_minute() {
        let limit = RequestLimit::new(2);
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        let at = |seconds: i64| DateTime::from_timestamp(600 + seconds, 0).unwrap();
        let taken = |who, seconds| match limit.take(who, at(seconds)) {
            Ok(()) => None,
            Err(ApiError::RateLimited { retry_after, .. }) => Some(retry_after),
            Err(other) => panic!("{other}"),
        };
        assert_eq!([taken(one, 0), taken(one, 20), taken(one, 20), taken(other, 20)], [None, None, Some(40), None]);
        assert_eq!([taken(one, 59), taken(one, 60), taken(one, 60), taken(one, 60)], [Some(1), None, None, Some(60)]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let limit = RequestLimit::new(2);
        let taken =
            (0..3 * MAX_CALLERS as u128).filter(|n| limit.take(Uuid::from_u128(n + 1), DateTime::UNIX_EPOCH).is_ok());
        assert_eq!(taken.count(), MAX_CALLERS + 2);
        assert_eq!(limit.counted.lock().unwrap().requests.len(), MAX_CALLERS + 1);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let limit = RequestLimit::new(0);
        for _ in 0..1000 {
            assert!(limit.take(Uuid::nil(), Utc::now()).is_ok());
        }
        assert!(limit.counted.lock().unwrap().requests.is_empty());
    }
}
