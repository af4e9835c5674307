//! The runtime of work that no request waits for: a few threads, of lower priority than those that serve.
//!
//! Here belongs what comes in bursts and may take a moment longer: shipping the journal with its prices, traces and
//! counted tokens, compressing and storing bodies, reading the snapshot and copying it to the disk. Work that a request
//! may wait for does not: names, leases of limits, secrets and keys of tokens are fetched at ordinary priority.
//!
//! Work that computes or writes this machine's own files (`compute`) shares one thread, so whoever has much of it waits
//! in line instead of taking the cores from the threads that serve. Operations of a folder as log store have another one:
//! a mounted folder can hang, and then nothing but the log store may hang with it. Nothing here may hold a lock for longer than it takes to move a value: a thread of low priority
//! that is interrupted while it holds one keeps a request waiting.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinError, JoinHandle};

/// The name of every thread of this runtime.
pub const THREAD_NAME: &str = "background";
/// Two, so that a long step of one task (a batch of the journal) does not hold another up (a revoked key).
const WORKERS: usize = 2;
/// For operations of a folder as log store, which take a thread each while they last.
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

/// Computes on the one thread of low priority for that, which never waits for a store. Else an error when it panicked.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    spawn_compute(work).await
}

fn spawn_compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    static COMPUTE: OnceLock<Option<Runtime>> = OnceLock::new();
    let start = || {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .thread_name(THREAD_NAME)
            .on_thread_start(lower_priority)
            .build();
        runtime.inspect_err(|error| tracing::error!(%error, "there is no thread for computing in the background")).ok()
    };
    match COMPUTE.get_or_init(start) {
        Some(runtime) => runtime.spawn_blocking(work),
        // Slower, and still right.
        None => tokio::task::spawn_blocking(work),
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
    fn computing_waits_in_line_for_one_thread_and_a_hung_store_does_not_hold_it_up() {
        let background = Background::start().unwrap();
        let (let_go, hangs) = std::sync::mpsc::channel::<()>();
        let threads = background.handle().block_on(async {
            // What an operation of a mounted folder that hangs does to its thread.
            let hung = tokio::task::spawn_blocking(move || hangs.recv());
            let calls = (0..50).map(|_| spawn_compute(|| (std::thread::current().id(), niceness())));
            let threads = futures::future::join_all(calls.collect::<Vec<_>>()).await;
            let_go.send(()).unwrap();
            hung.await.unwrap().unwrap();
            threads.into_iter().map(Result::unwrap).collect::<std::collections::HashSet<_>>()
        });
        assert_eq!(threads.len(), 1);
        assert!(threads.iter().all(|(_, nice)| *nice == NICENESS.max(niceness())));
    }
}
