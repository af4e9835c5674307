//! Memory for what is written to services: a question may be as long as the body that it is about, and waits as long as its
//! check does. So each has to find room before it is written, in its workspace's share and in all that there is.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Room is given in pieces of this many bytes.
const PIECE: usize = 1 << 10;
/// Pieces of one workspace, and of all.
const MOST_EACH: usize = 64 << 10;
const MOST: usize = 256 << 10;
/// What a question takes at least, with an answer of usual length.
const LEAST: usize = 64;
/// Workspaces whose shares are remembered although nobody uses them.
const MOST_REMEMBERED: usize = 1024;

static ALL: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MOST)));
static SHARES: LazyLock<Mutex<HashMap<Uuid, Arc<Semaphore>>>> = LazyLock::new(Mutex::default);

/// It is given back with this.
pub struct Room {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// Waits for room for about this many bytes. What is longer than a share takes all of it.
pub async fn room(workspace: Uuid, bytes: usize) -> Option<Room> {
    let pieces = u32::try_from((bytes / PIECE + LEAST).min(MOST_EACH)).ok()?;
    let own = share_of(workspace).acquire_many_owned(pieces).await.ok()?;
    let all = ALL.clone().acquire_many_owned(pieces).await.ok()?;
    Some(Room { _own: own, _all: all })
}

fn share_of(workspace: Uuid) -> Arc<Semaphore> {
    let mut shares = SHARES.lock();
    if shares.len() >= MOST_REMEMBERED {
        // Those that nobody holds are made anew when they are needed.
        shares.retain(|_, held| Arc::strong_count(held) > 1);
    }
    shares.entry(workspace).or_insert_with(|| Arc::new(Semaphore::new(MOST_EACH))).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn a_workspace_waits_for_its_own_questions_and_for_nobody_elses() {
        let (one, other) = (Uuid::from_u128(71), Uuid::from_u128(72));
        let held = room(one, usize::MAX).await.unwrap();
        assert!(room(one, 0).now_or_never().is_none(), "its share is used up");
        assert!(room(other, 1 << 20).now_or_never().flatten().is_some());
        drop(held);
        assert!(room(one, 0).now_or_never().flatten().is_some());
    }
}
