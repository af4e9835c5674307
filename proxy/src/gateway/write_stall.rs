//! How long a client may leave an answer unread. A connection has some patience: it is used up while a write waits, and
//! what the client takes earns it back, so that neither one who stops reading nor one who reads a byte now and then
//! holds what a request holds. A write that need not wait costs one comparison.
//!
//! Where somebody waits for what the request holds, a client that takes nothing has `MAX_UNREAD_CONTENDED` alone.

use crate::gateway::idle_timeout::MAX_TIMEOUT;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use proxy::net::downstream::{Contention, MAX_UNREAD_CONTENDED};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A second of patience for so many bytes.
const BYTES_PER_SECOND: f64 = 1024.0;

pub struct WriteStall {
    /// The most patience there is.
    limit: Duration,
    left: Duration,
    /// Since when a write waits.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    contention: Mutex<Option<Contention>>,
    /// Of the write that waits: resolves when it has waited for long enough and somebody else waits.
    contended: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl fmt::Debug for WriteStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteStall").field("limit", &self.limit).field("left", &self.left).finish_non_exhaustive()
    }
}

impl WriteStall {
    pub fn new(limit: Duration) -> Self {
        let limit = limit.min(MAX_TIMEOUT);
        Self { limit, left: limit, since: None, timer: None, contention: Mutex::default(), contended: Mutex::default() }
    }

    /// Who may wait for what the present request holds.
    pub fn set_contention(&self, contention: Option<Contention>) {
        *self.contention.lock() = contention;
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
        timer.as_mut().poll(cx).is_ready() || self.is_contended(cx)
    }

    fn is_contended(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(contention) = self.contention.get_mut() else { return false };
        let contended = self.contended.get_mut().get_or_insert_with(|| {
            let contention = contention.clone();
            Box::pin(async move {
                tokio::time::sleep(MAX_UNREAD_CONTENDED).await;
                contention().await;
            })
        });
        contended.as_mut().poll(cx).is_ready()
    }

    fn go_on(&mut self, bytes: usize) {
        *self.contended.get_mut() = None;
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
    use std::sync::Arc;
    use tokio::sync::Notify;
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
    async fn a_client_that_takes_nothing_is_given_up_as_soon_as_somebody_waits() {
        let mut stall = WriteStall::new(LIMIT);
        let waits = Arc::new(Notify::new());
        let waiting = waits.clone();
        stall.set_contention(Some(Arc::new(move || {
            let waiting = waiting.clone();
            Box::pin(async move { waiting.notified().await })
        })));
        assert!(!is_given_up(&mut stall, 5 * SECOND).await, "nobody waits");
        takes(&mut stall, 64 << 10).await;
        waits.notify_one();
        assert!(!is_given_up(&mut stall, SECOND).await, "it took something a moment ago");
        assert!(is_given_up(&mut stall, 2 * SECOND).await);
        stall.set_contention(None);
        takes(&mut stall, 64 << 10).await;
        assert!(!is_given_up(&mut stall, 5 * SECOND).await, "the next request holds nothing that others wait for");
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
