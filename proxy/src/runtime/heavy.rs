//! Work that takes long for a thread that carries requests, as judging a text of a megabyte: it is done beside them, by as many
//! threads as there are cores and no more, so that those who serve keep their share of the machine. One workspace has half of
//! them at most, so that others find some.
//!
//! Whoever leaves while it is done does not end it. What such work holds in memory must therefore go along with it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Longer texts are heavy.
pub const SMALL: usize = 32 << 10;

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(cores())));
static SHARES: LazyLock<Mutex<HashMap<Uuid, Arc<Semaphore>>>> = LazyLock::new(Mutex::default);
/// Workspaces whose shares are remembered although nobody uses them.
const MOST_REMEMBERED: usize = 1024;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn share_of(workspace: Uuid) -> Arc<Semaphore> {
    let mut shares = SHARES.lock();
    if shares.len() >= MOST_REMEMBERED {
        // Those that nobody holds are made anew when they are needed.
        shares.retain(|_, held| Arc::strong_count(held) > 1);
    }
    shares.entry(workspace).or_insert_with(|| Arc::new(Semaphore::new((cores() / 2).max(1)))).clone()
}

/// `None` if the work panicked. It is done for this workspace, where that is known.
pub async fn heavy<T: Send + 'static>(workspace: Option<Uuid>, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let share = match workspace {
        Some(workspace) => Some(share_of(workspace).acquire_owned().await.ok()?),
        None => None,
    };
    let place = PLACES.clone().acquire_owned().await.ok()?;
    let done = tokio::task::spawn_blocking(move || {
        let result = work();
        drop((place, share));
        result
    });
    done.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[tokio::test]
    async fn no_more_is_done_at_a_time_than_there_are_cores() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = || {
            let (now, most) = (now.clone(), most.clone());
            heavy(None, move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, SeqCst);
            })
        };
        let all = futures::future::join_all((0..64).map(|_| work())).await;
        assert!(all.iter().all(Option::is_some) && (1..=cores).contains(&most.load(SeqCst)), "{most:?}");
    }

    #[tokio::test]
    async fn whoever_leaves_ends_neither_the_work_nor_what_it_holds() {
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (done, is_done) = tokio::sync::oneshot::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(());
        let kept = held.clone();
        let task = tokio::spawn(heavy(None, move || {
            begun.send(()).unwrap();
            wait.recv().unwrap();
            drop(kept);
            done.send(()).unwrap();
        }));
        has_begun.await.unwrap();
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(Arc::strong_count(&held), 2);
        go.send(()).unwrap();
        is_done.await.unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_place_back() {
        for _ in 0..100 {
            assert!(heavy::<u8>(Some(Uuid::nil()), || panic!("as a fault of ours would")).await.is_none());
        }
        assert_eq!(heavy(Some(Uuid::nil()), || 1).await, Some(1));
    }

    #[tokio::test]
    async fn one_workspace_leaves_places_for_others() {
        let workspace = Uuid::from_u128(7);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = || {
            let (now, most) = (now.clone(), most.clone());
            heavy(Some(workspace), move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, SeqCst);
            })
        };
        let all = futures::future::join_all((0..64).map(|_| work())).await;
        assert!(all.iter().all(Option::is_some) && most.load(SeqCst) <= (cores() / 2).max(1), "{most:?}");
    }
}
