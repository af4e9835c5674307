//! What is known of one token. Pure: the clock is an argument.

use crate::catalog::signing::error::SigningError;
use crate::catalog::signing::token_request::GrantedToken;
use futures::future::{BoxFuture, Shared};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub type FetchOutcome = Result<Arc<GrantedToken>, SigningError>;
/// The one fetch that is under way, for all who wait for it.
pub type Fetching = Shared<BoxFuture<'static, FetchOutcome>>;

/// So long everybody is told of the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// A token is not used in its last moments: the request may be on the way for some of them.
const MARGIN: Duration = Duration::from_secs(60);
/// A provider that takes none of our tokens costs one login in this time.
const BETWEEN_RETIREMENTS: Duration = Duration::from_secs(60);

pub struct TokenState {
    token: Option<CachedToken>,
    /// What the last fetch ended with, and until when none is begun.
    failure: Option<(SigningError, Instant)>,
    failures: u32,
    pub fetching: Option<Fetching>,
    pub used_at: Instant,
    retired_at: Option<Instant>,
}

struct CachedToken {
    token: Arc<GrantedToken>,
    renew_at: Instant,
    ends_at: Instant,
}

pub enum TokenLookup {
    Good(Arc<GrantedToken>),
    /// Good, and it is time for another.
    Aging(Arc<GrantedToken>),
    Fetching(Fetching),
    Failed(SigningError),
    Absent,
}

impl TokenState {
    pub fn new(now: Instant) -> Self {
        Self { token: None, failure: None, failures: 0, fetching: None, used_at: now, retired_at: None }
    }

    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub fn look(&self, now: Instant) -> TokenLookup {
        // One that is over and has not settled died on its way.
        let fetching = self.fetching.as_ref().filter(|fetching| fetching.peek().is_none());
        let paused = self.failure.as_ref().filter(|(_, until)| now < *until);
        if let Some(cached) = self.token.as_ref().filter(|cached| now < cached.ends_at) {
            let is_due = now >= cached.renew_at && fetching.is_none() && paused.is_none();
            let token = cached.token.clone();
            return if is_due { TokenLookup::Aging(token) } else { TokenLookup::Good(token) };
        }
        match (paused, fetching) {
            // A failure is no reason to wait for the next attempt.
            (Some((error, _)), _) => TokenLookup::Failed(error.clone()),
            (None, Some(fetching)) => TokenLookup::Fetching(fetching.clone()),
            (None, None) => TokenLookup::Absent,
        }
    }

    /// A provider took the token that `is_sent` tells for no credential, though its life is not over. Whether there is, or
    /// may be, another one: the same is not asked for again and again.
    pub fn retire(&mut self, is_sent: impl Fn(&GrantedToken) -> bool, now: Instant) -> bool {
        let is_current = self.token.as_ref().is_some_and(|cached| is_sent(&cached.token));
        if !is_current {
            return true;
        }
        let is_early = self.retired_at.is_some_and(|at| now.saturating_duration_since(at) < BETWEEN_RETIREMENTS);
        // Away now: a token that one provider refused may be good at another.
        let is_paused = self.failure.as_ref().is_some_and(|(_, until)| now < *until);
        if is_early || is_paused {
            return false;
        }
        self.token = None;
        self.retired_at = Some(now);
        true
    }

    pub fn settle(&mut self, fetched: Result<(GrantedToken, Duration), SigningError>, now: Instant) -> FetchOutcome {
        self.fetching = None;
        match fetched {
            Ok((token, lasts)) => {
                let token = Arc::new(token);
                let (renew_at, ends_at) = (now + lasts * 4 / 5, now + lasts.saturating_sub(MARGIN.min(lasts / 10)));
                self.token = Some(CachedToken { token: token.clone(), renew_at, ends_at });
                (self.failure, self.failures) = (None, 0);
                Ok(token)
            }
            Err(error) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(MAX_PAUSE);
                self.failures = self.failures.saturating_add(1);
                self.failure = Some((error.clone(), now + pause));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use shared::secrets::cloud::LoginError;

    fn granted(lasts_s: u64) -> Result<(GrantedToken, Duration), SigningError> {
        Ok((GrantedToken::Bearer(HeaderValue::from_static("Bearer t")), Duration::from_secs(lasts_s)))
    }

    fn away() -> Result<(GrantedToken, Duration), SigningError> {
        Err(LoginError::Away("status 503".into()).into())
    }

    fn seen(state: &TokenState, at: Instant) -> &'static str {
        match state.look(at) {
            TokenLookup::Good(_) => "good",
            TokenLookup::Aging(_) => "aging",
            TokenLookup::Fetching(_) => "fetching",
            TokenLookup::Failed(_) => "failed",
            TokenLookup::Absent => "absent",
        }
    }

    #[test]
    fn a_token_is_renewed_at_four_fifths_and_used_until_shortly_before_its_end() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for (lasts, renewed, ends) in [(3600, 2880, 3540), (100, 80, 90), (10, 8, 9)] {
            let mut state = TokenState::new(start);
            assert_eq!(seen(&state, start), "absent");
            state.settle(granted(lasts), start).unwrap();
            assert_eq!(seen(&state, at(renewed - 1)), "good", "{lasts}");
            assert_eq!(seen(&state, at(renewed)), "aging", "{lasts}");
            assert_eq!(seen(&state, at(ends - 1)), "aging", "{lasts}");
            assert_eq!(seen(&state, at(ends)), "absent", "{lasts}");
        }
        let mut dead = TokenState::new(start);
        dead.settle(granted(0), start).unwrap();
        assert_eq!(seen(&dead, start), "absent");
    }

    #[test]
    fn a_failure_is_told_at_once_for_a_while_that_grows_and_a_good_token_outlives_it() {
        let start = Instant::now();
        let mut state = TokenState::new(start);
        let mut now = start;
        for pause in [2, 4, 8, 16, 32, 60, 60] {
            state.settle(away(), now).map(|_| ()).unwrap_err();
            assert_eq!(seen(&state, now + Duration::from_secs(pause - 1)), "failed");
            now += Duration::from_secs(pause);
            assert_eq!(seen(&state, now), "absent", "{pause}");
        }
        state.settle(granted(100), now).unwrap();
        now += Duration::from_secs(85);
        assert_eq!(seen(&state, now), "aging");
        state.settle(away(), now).map(|_| ()).unwrap_err();
        assert_eq!(seen(&state, now), "good", "it is not asked again at once");
        assert_eq!(seen(&state, now + Duration::from_secs(2)), "aging");
    }
    #[test]
    fn a_token_that_is_refused_is_replaced_once_and_not_again_at_once() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut state = TokenState::new(start);
        state.settle(granted(3600), start).unwrap();
        assert!(state.retire(|_| false, at(1)), "another one is there already");
        assert_eq!(seen(&state, at(1)), "good");
        assert!(state.retire(|_| true, at(1)));
        assert_eq!(seen(&state, at(1)), "absent");
        assert!(state.retire(|_| true, at(1)), "whoever comes second waits for the same fetch");
        state.settle(granted(3600), at(2)).unwrap();
        assert!(!state.retire(|_| true, at(3)), "the new one is refused too");
        assert_eq!(seen(&state, at(3)), "good");
        assert!(state.retire(|_| true, at(61)));
        state.settle(granted(3600), at(62)).unwrap();
        state.settle(away(), at(200)).map(|_| ()).unwrap_err();
        assert!(!state.retire(|_| true, at(201)), "the login service is away");
        assert_eq!(seen(&state, at(201)), "good");
    }
}
