//! Work that takes long for a thread that carries requests, as judging a text of a megabyte: it is done beside them, by as many
//! threads as there are cores and no more, so that those who serve keep their share of the machine. Tenants share the threads
//! (`tenant_share`): an organisation has half of them at most, and whoever has least is next.
//!
//! Whoever leaves while it is done does not end it. What such work holds in memory must therefore go along with it.

use super::tenant_share::{ShareRule, Tenant, TenantShare};
use std::sync::{Arc, LazyLock};

/// Longer texts are heavy.
pub const SMALL: usize = 32 << 10;

static PLACES: LazyLock<Arc<TenantShare>> = LazyLock::new(|| places(cores()));

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn places(cores: usize) -> Arc<TenantShare> {
    TenantShare::new(cores, ShareRule::WAITING)
}

/// `None` if the work panicked.
pub async fn heavy<T: Send + 'static>(tenant: Tenant, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let place = PLACES.acquire(tenant, 1).await;
    let done = tokio::task::spawn_blocking(move || {
        let result = work();
        drop(place);
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
            heavy(Tenant::GATEWAY, move || {
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
        let task = tokio::spawn(heavy(Tenant::GATEWAY, move || {
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
            assert!(heavy::<u8>(Tenant::test(6, 6), || panic!("as a fault of ours would")).await.is_none());
        }
        assert_eq!(heavy(Tenant::test(6, 6), || 1).await, Some(1));
    }

    #[tokio::test]
    async fn an_organisation_leaves_places_for_others_however_many_workspaces_it_has() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = |workspace: u128| {
            let (now, most) = (now.clone(), most.clone());
            heavy(Tenant::test(7, workspace), move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, SeqCst);
            })
        };
        let all = futures::future::join_all((0..64).map(work)).await;
        assert!(all.iter().all(Option::is_some) && most.load(SeqCst) <= (cores() / 2).max(1), "{most:?}");
    }
}
