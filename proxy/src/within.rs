//! A time limit that costs nothing when there is nothing to wait for: the timer is made only once the work has to
//! pause. On the request path most of these are done at the first try.
//!
//! The caller pins the work where it stands: a future given away is kept twice in the state of the one that takes it,
//! and the state of a request is copied for each.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;
use tokio::time::error::Elapsed;

pub async fn within<F: Future + Unpin>(limit: Duration, mut work: F) -> Result<F::Output, Elapsed> {
    match futures::poll!(&mut work) {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout(limit, work).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    #[tokio::test(start_paused = true)]
    async fn work_that_pauses_is_limited_and_work_that_does_not_is_free() {
        assert_eq!(within(Duration::ZERO, pin!(async { 1 })).await.ok(), Some(1));
        let slow = tokio::time::sleep(Duration::from_secs(2));
        assert!(within(Duration::from_secs(1), pin!(slow)).await.is_err());
        let quick = tokio::time::sleep(Duration::from_secs(1));
        assert!(within(Duration::from_secs(2), pin!(quick)).await.is_ok());
    }
}
