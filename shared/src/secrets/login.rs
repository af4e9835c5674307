//! What a login gave us, kept until shortly before it ends, so that not every fetch logs in.

use super::cloud::AwsKeys;
use super::seal::Secret;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub enum Login {
    Token(Secret),
    Aws(AwsKeys),
}

/// By the fingerprint of the credentials that were shown.
#[derive(Default)]
pub struct Logins(Mutex<HashMap<[u8; 32], (Login, Instant)>>);

/// A login is renewed so long before it ends.
const BEFORE: Duration = Duration::from_secs(60);
const MAX_LOGINS: usize = 10_000;

impl Logins {
    pub fn find(&self, of: &[u8; 32], now: Instant) -> Option<Login> {
        let logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logins.get(of).filter(|(_, end)| *end > now).map(|(login, _)| login.clone())
    }

    pub fn keep(&self, of: [u8; 32], login: Login, lasts: Duration, now: Instant) {
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logins.len() >= MAX_LOGINS {
            logins.retain(|_, (_, end)| *end > now);
        }
        // A short one is used for half of its time.
        let lasts = lasts.checked_sub(BEFORE).unwrap_or_default().max(lasts / 2);
        logins.insert(of, (login, now + lasts));
    }

    pub fn forget(&self, of: &[u8; 32]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_used_until_shortly_before_its_end() {
        let (logins, now) = (Logins::default(), Instant::now());
        for (lasts, used) in [(3600, 3540), (60, 30), (10, 5), (100, 50)] {
            logins.keep([0; 32], Login::Token("t".to_owned().into()), Duration::from_secs(lasts), now);
            assert!(logins.find(&[0; 32], now + Duration::from_secs(used - 1)).is_some(), "{lasts}");
            assert!(logins.find(&[0; 32], now + Duration::from_secs(used)).is_none(), "{lasts}");
        }
        logins.keep([1; 32], Login::Token("t".to_owned().into()), Duration::from_secs(3600), now);
        logins.forget(&[1; 32]);
        assert!(logins.find(&[1; 32], now).is_none());
    }
}
