//! A timeout that costs nothing when nothing has to wait: the timer is made only once the work has to pause. On the
//! request path most of these are done at the first poll.
//!
//! The caller pins the work where it stands: a future that is passed by value is kept twice in the state of the one
//! that takes it, and the state of a request is copied for each.

use std::future::Future;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::error::Elapsed;

pub async fn with_timeout<F: Future + Unpin>(limit: Duration, mut work: F) -> Result<F::Output, Elapsed> {
    match futures::poll!(&mut work) {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout(limit, work).await,
    }
}

/// The same up to a moment; the clock is not read either.
pub async fn with_deadline<F: Future + Unpin>(limit: Instant, mut work: F) -> Result<F::Output, Elapsed> {
    match futures::poll!(&mut work) {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout_at(limit.into(), work).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    #[tokio::test(start_paused = true)]
    async fn work_that_pauses_is_limited_and_work_that_does_not_is_free() {
        assert_eq!(with_timeout(Duration::ZERO, pin!(async { 1 })).await.ok(), Some(1));
        let slow = tokio::time::sleep(Duration::from_secs(2));
        assert!(with_timeout(Duration::from_secs(1), pin!(slow)).await.is_err());
        let quick = tokio::time::sleep(Duration::from_secs(1));
        assert!(with_timeout(Duration::from_secs(2), pin!(quick)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_limits_as_a_duration_does() {
        let now = tokio::time::Instant::now().into_std();
        assert_eq!(with_deadline(now, pin!(async { 1 })).await.ok(), Some(1));
        let slow = tokio::time::sleep(Duration::from_secs(2));
        assert!(with_deadline(now + Duration::from_secs(1), pin!(slow)).await.is_err());
        let quick = tokio::time::sleep(Duration::from_secs(1));
        assert!(with_deadline(now + Duration::from_secs(3), pin!(quick)).await.is_ok());
    }
}
