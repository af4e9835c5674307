//! The runtime of work that no request waits for: a few threads, of lower priority than those that serve.
//!
//! Here belongs what comes in bursts and may take a moment longer: shipping the journal with its prices, traces and
//! counted tokens, compressing and storing bodies, reading the snapshot and copying it to the disk. Work that a request
//! may wait for does not: names, leases of limits, secrets and keys of tokens are fetched at ordinary priority.
//!
//! Blocking calls share one thread, so whoever makes many of them waits in line instead of taking the cores from the
//! threads that serve. Nothing here may hold a lock for longer than it takes to move a value: a thread of low priority
//! that is interrupted while it holds one keeps a request waiting.

use std::future::Future;
use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

/// The name of every thread of this runtime.
pub const THREAD_NAME: &str = "background";
/// Two, so that a long step of one task (a batch of the journal) does not hold another up (a revoked key).
const WORKERS: usize = 2;
const BLOCKING_THREADS: usize = 1;
/// What the scheduler is told; 0 is ordinary, 19 the least. Enough to give way at once, and still a share of about a
/// tenth when requests take all there is: otherwise a long peak would fill the disk with logs nobody sends.
const NICENESS: i32 = 10;

/// Ends its tasks when it is dropped, without waiting for them.
pub struct Background {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Background {
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name(THREAD_NAME)
            .on_thread_start(lower_priority)
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// For services that start their own work here.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs `work` on another runtime until it ends.
pub async fn run_on(handle: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    if let Err(error) = handle.spawn(work).await {
        tracing::error!(%error, "work in the background ended early");
    }
}

/// Of the present thread alone: Linux has a priority for each thread, others have one for the whole process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS) {
        tracing::warn!(%error, "the threads in the background keep the priority of those that serve");
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[test]
    fn workers_and_blocking_threads_give_way_and_the_starter_does_not() {
        let before = niceness();
        let background = Background::start().unwrap();
        let found = background.handle().block_on(async {
            let worker = tokio::spawn(async { niceness() }).await.unwrap();
            (worker, tokio::task::spawn_blocking(niceness).await.unwrap())
        });
        assert_eq!(found, (NICENESS.max(before), NICENESS.max(before)));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn blocking_calls_wait_in_line_for_one_thread() {
        let background = Background::start().unwrap();
        let threads = background.handle().block_on(async {
            let calls = (0..50).map(|_| tokio::task::spawn_blocking(|| std::thread::current().id()));
            let threads = futures::future::join_all(calls.collect::<Vec<_>>()).await;
            threads.into_iter().map(Result::unwrap).collect::<std::collections::HashSet<_>>()
        });
        assert_eq!(threads.len(), BLOCKING_THREADS);
    }
}
