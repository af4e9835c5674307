//! The wait of a client's connection for its next request. Pingora would set a timer for each; here a connection has one
//! for all its life, which is looked at again only when it ends: then either nothing came since, or it goes on. For the
//! rest of a head that has begun to come, the wait is as long again, and no longer however slowly it comes.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep_until};

/// Nobody waits longer, whatever is set.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

#[derive(Debug)]
pub struct Idle {
    limit: Duration,
    opened: Instant,
    /// When the wait began, in milliseconds after the connection was opened and one more; zero when there is none.
    since: AtomicU64,
    /// Something came since; when exactly is not worth a look at the clock.
    has_heard: AtomicBool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    pub fn new(limit: Duration) -> Self {
        let (since, has_heard) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { limit: limit.min(LONGEST), opened: Instant::now(), since, has_heard, timer: None }
    }

    /// A request is over.
    pub fn begin(&self, now: Instant) {
        let since = now.saturating_duration_since(self.opened).as_millis();
        self.since.store(u64::try_from(since).unwrap_or(u64::MAX - 1) + 1, Relaxed);
        self.has_heard.store(false, Relaxed);
    }

    /// A request has come.
    pub fn end(&self) {
        self.since.store(0, Relaxed);
    }

    /// Something came: the head of a request, or a part of it.
    pub fn hear(&self) {
        self.has_heard.store(true, Relaxed);
    }

    /// Ready when a wait has lasted too long.
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(since) = self.since.load(Relaxed).checked_sub(1) else { return Poll::Pending };
        let mut over = self.opened + Duration::from_millis(since) + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(over.into())));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline().into_std() >= over {
                if !self.has_heard.swap(false, Relaxed) {
                    return Poll::Ready(());
                }
                over += self.limit;
            }
            timer.as_mut().reset(over.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::{advance, timeout};

    const LIMIT: Duration = Duration::from_secs(10);

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    async fn is_over(idle: &mut Idle, within: Duration) -> bool {
        timeout(within, poll_fn(|cx| idle.poll_over(cx))).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_wait_ends_and_it_counts_from_its_own_beginning() {
        let mut idle = Idle { opened: now(), ..Idle::new(LIMIT) };
        assert!(!is_over(&mut idle, 9 * LIMIT).await, "nothing was asked yet");
        idle.begin(now());
        assert!(!is_over(&mut idle, LIMIT - Duration::from_secs(1)).await);
        idle.end();
        advance(9 * LIMIT).await;
        assert!(!is_over(&mut idle, LIMIT).await, "a request is under way");
        idle.begin(now());
        assert!(!is_over(&mut idle, LIMIT - Duration::from_secs(1)).await, "the timer of the first wait is long over");
        assert!(is_over(&mut idle, Duration::from_secs(2)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_comes_slowly_is_waited_for_once_more() {
        let mut idle = Idle { opened: now(), ..Idle::new(LIMIT) };
        idle.hear();
        idle.begin(now());
        assert!(is_over(&mut idle, LIMIT + Duration::from_secs(1)).await, "what came before the wait says nothing");
        idle.begin(now());
        idle.hear();
        assert!(!is_over(&mut idle, 2 * LIMIT - Duration::from_secs(1)).await);
        idle.hear();
        assert!(is_over(&mut idle, Duration::from_secs(2)).await);
    }
}
