//! How long a client may leave an answer unread. A connection has some patience: it is used up while a write waits, and
//! what the client takes earns it back, so that neither one who stops reading nor one who reads a byte now and then
//! holds what a request holds. A write that need not wait costs one comparison.

use crate::gateway::idle_timeout::LONGEST;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A second of patience for so many bytes.
const BYTES_PER_SECOND: f64 = 1024.0;

#[derive(Debug)]
pub struct WriteStall {
    /// The most patience there is.
    limit: Duration,
    left: Duration,
    /// Since when a write waits.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteStall {
    pub fn new(limit: Duration) -> Self {
        let limit = limit.min(LONGEST);
        Self { limit, left: limit, since: None, timer: None }
    }

    /// The outcome of a write of so many bytes, unless it has waited for too long.
    pub fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match &written {
            Poll::Pending if self.is_over(cx) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Ready(Ok(done)) if self.since.is_some() || self.left < self.limit => {
                self.go_on(bytes(done));
                written
            }
            _ => written,
        }
    }

    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        let over = *self.since.get_or_insert_with(Instant::now) + self.left;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(over)));
        if timer.deadline() != over {
            timer.as_mut().reset(over);
        }
        timer.as_mut().poll(cx).is_ready()
    }

    fn go_on(&mut self, bytes: usize) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        let earned = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
        self.left = self.left.saturating_add(earned).min(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::{advance, timeout};

    const LIMIT: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    /// Whether a write that nobody takes is given up within this time.
    async fn is_given_up(stall: &mut WriteStall, within: Duration) -> bool {
        let waiting = poll_fn(|cx| stall.watch(cx, Poll::Pending, |bytes: &usize| *bytes));
        timeout(within, waiting).await.is_ok_and(|gave_up| gave_up.is_err())
    }

    async fn takes(stall: &mut WriteStall, bytes: usize) {
        let taken = poll_fn(|cx| stall.watch(cx, Poll::Ready(Ok(bytes)), |bytes| *bytes)).await;
        assert_eq!(taken.unwrap(), bytes);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_is_given_up() {
        let mut stall = WriteStall::new(LIMIT);
        takes(&mut stall, 1).await;
        advance(9 * LIMIT).await;
        assert!(!is_given_up(&mut stall, LIMIT - SECOND).await, "only while something is to be written");
        assert!(is_given_up(&mut stall, 2 * SECOND).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_does_not_keep_a_connection() {
        let mut stall = WriteStall::new(LIMIT);
        for _ in 0..9 {
            assert!(!is_given_up(&mut stall, SECOND).await);
            takes(&mut stall, 1).await;
        }
        assert!(is_given_up(&mut stall, 2 * SECOND).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_that_goes_on_reading_is_served_for_as_long_as_it_takes() {
        let mut stall = WriteStall::new(LIMIT);
        for _ in 0..100 {
            assert!(!is_given_up(&mut stall, 5 * SECOND).await);
            takes(&mut stall, 16 << 10).await;
        }
    }
}
