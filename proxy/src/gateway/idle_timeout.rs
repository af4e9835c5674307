//! How long a client's connection waits for a request: its first, and each one after an answer. Pingora would set a
//! timer for each; here a connection has one for all its life, which is looked at again only when it ends: then either
//! nothing came since, or it goes on. A head that has begun to come has a limit of its own, however slowly it comes.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep_until};

/// Nobody waits longer, whatever is set.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 86_400);

#[derive(Debug)]
pub struct IdleTimeout {
    /// The longest wait for the first byte of a request.
    limit: Duration,
    /// The longest wait for the rest of its head.
    head_limit: Duration,
    opened: Instant,
    /// When the wait began, in milliseconds after the connection was opened and one more; zero when there is none.
    since: AtomicU64,
    /// Something came since; when exactly is not worth a look at the clock.
    has_heard: AtomicBool,
    /// When the head must be whole that came in part, and the wait in which it came.
    head_over: Option<(u64, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeout {
    /// Of a connection that was just opened: its first request is waited for already.
    pub fn new(limit: Duration, head_limit: Duration) -> Self {
        let (since, has_heard) = (AtomicU64::new(1), AtomicBool::new(false));
        let (limit, head_limit) = (limit.min(MAX_TIMEOUT), head_limit.min(MAX_TIMEOUT));
        Self { limit, head_limit, opened: Instant::now(), since, has_heard, head_over: None, timer: None }
    }

    /// A request is over.
    pub fn begin(&self, now: Instant) {
        self.begin_at(now);
        self.has_heard.store(false, Relaxed);
    }

    fn begin_at(&self, now: Instant) {
        let since = now.saturating_duration_since(self.opened).as_millis();
        self.since.store(u64::try_from(since).unwrap_or(u64::MAX - 1) + 1, Relaxed);
    }

    /// A request has come.
    pub fn end(&self) {
        self.since.store(0, Relaxed);
    }

    /// Something came: the head of a request, or a part of it.
    pub fn hear(&self) {
        self.has_heard.store(true, Relaxed);
    }

    /// Whether a request is waited for.
    pub fn is_waiting(&self) -> bool {
        self.since.load(Relaxed) > 0
    }

    /// Whether something came since the wait began.
    pub fn has_heard(&self) -> bool {
        self.has_heard.load(Relaxed)
    }

    /// From now on no wait, the present one included, lasts longer than this.
    pub fn shorten(&mut self, limit: Duration) {
        (self.limit, self.head_limit) = (self.limit.min(limit), self.head_limit.min(limit));
        self.begin_at(tokio::time::Instant::now().into_std());
    }

    /// Asked when nothing more is there to be read; ready when the wait for it has lasted too long.
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let wait = self.since.load(Relaxed);
        let Some(since) = wait.checked_sub(1) else { return Poll::Pending };
        let over = match self.has_heard.load(Relaxed) {
            true => self.head_over(wait),
            false => self.opened + Duration::from_millis(since) + self.limit,
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(over.into())));
        // One that ends early is left to end; the limit of a head may be before the end of the present one.
        if timer.deadline().into_std() > over {
            timer.as_mut().reset(over.into());
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline().into_std() >= over {
                return Poll::Ready(());
            }
            timer.as_mut().reset(over.into());
        }
    }

    /// Counts from the first time that only a part of the head was there.
    fn head_over(&mut self, wait: u64) -> Instant {
        match self.head_over {
            Some((known, over)) if known == wait => over,
            _ => {
                let over = tokio::time::Instant::now().into_std() + self.head_limit;
                self.head_over = Some((wait, over));
                over
            }
        }
    }
}

#[cfg(test)]
mod tests;
