//! Connections that wait for a request.

use super::*;
use std::future::poll_fn;
use tokio::time::{advance, timeout};

const LIMIT: Duration = Duration::from_secs(10);
const HEAD_LIMIT: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn opened() -> IdleTimeout {
    IdleTimeout { opened: now(), ..IdleTimeout::new(LIMIT, HEAD_LIMIT) }
}

async fn is_over(idle: &mut IdleTimeout, within: Duration) -> bool {
    timeout(within, poll_fn(|cx| idle.poll_over(cx))).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn only_a_wait_ends_and_it_counts_from_its_own_beginning() {
    let mut idle = opened();
    assert!(!is_over(&mut idle, LIMIT - SECOND).await);
    idle.end();
    advance(9 * LIMIT).await;
    assert!(!is_over(&mut idle, LIMIT).await, "a request is under way");
    idle.begin(now());
    assert!(!is_over(&mut idle, LIMIT - SECOND).await, "the timer of the first wait is long over");
    assert!(is_over(&mut idle, 2 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn the_first_request_is_not_waited_for_longer_than_another() {
    let mut idle = opened();
    assert!(!is_over(&mut idle, LIMIT - SECOND).await);
    assert!(is_over(&mut idle, 2 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_slowly_has_a_limit_from_its_first_byte() {
    let mut idle = opened();
    assert!(!is_over(&mut idle, 5 * SECOND).await);
    for _ in 0..2 {
        idle.hear();
        assert!(!is_over(&mut idle, SECOND).await);
    }
    idle.hear();
    assert!(is_over(&mut idle, 2 * SECOND).await, "every byte would prolong it");
    idle.end();
    idle.begin(now());
    assert!(!is_over(&mut idle, LIMIT - SECOND).await, "what came before the wait says nothing");
    idle.hear();
    assert!(!is_over(&mut idle, HEAD_LIMIT - SECOND).await, "nor does the limit of another head");
    assert!(is_over(&mut idle, 2 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_came_in_part_at_once_is_waited_for_anew_each_time() {
    let mut idle = opened();
    for _ in 0..3 {
        idle.hear();
        assert!(!is_over(&mut idle, HEAD_LIMIT - SECOND).await);
        idle.end();
        advance(LIMIT).await;
        idle.begin(now());
    }
}
