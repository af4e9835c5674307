//! Places come back however a call ends, and waits end.

use super::*;
use prometheus::Registry;
use uuid::Uuid;

const INTEGRATION: IntegrationId = IntegrationId::new(Uuid::from_u128(7));

fn fairness() -> Fairness {
    Fairness::new(Arc::new(FairnessMeters::new(&Registry::new()).unwrap()))
}

fn asker(workspace: u128) -> QueuedCaller {
    QueuedCaller { workspace: Uuid::from_u128(workspace).into(), weight: 10, most: 1 }
}

const LONG: Duration = Duration::from_secs(3600);

/// In use, waiting.
fn counts(fairness: &Fairness) -> (i64, i64) {
    (fairness.meters.in_use.get(), fairness.meters.waiting.get())
}

#[tokio::test(start_paused = true)]
async fn a_place_that_comes_back_goes_to_who_waits() {
    let fairness = fairness();
    let first = fairness.pass(INTEGRATION, asker(1), Duration::ZERO).await.unwrap();
    let second = fairness.pass(INTEGRATION, asker(2), LONG);
    let mut second = std::pin::pin!(second);
    assert!(futures::poll!(&mut second).is_pending());
    assert_eq!(counts(&fairness), (1, 1));
    assert!(fairness.pass_now(INTEGRATION, asker(3)).is_none(), "a second call beside another waits for nothing");
    assert!(
        fairness.pass_now(Uuid::from_u128(8).into(), asker(3)).is_some(),
        "another integration's places are its own"
    );
    drop(first);
    let second = second.await.unwrap();
    assert_eq!(counts(&fairness), (1, 0));
    drop(second);
    assert_eq!(counts(&fairness), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_its_time_is_over() {
    let fairness = fairness();
    let held = fairness.pass(INTEGRATION, asker(1), LONG).await.unwrap();
    for longest in [Duration::ZERO, Duration::from_millis(500)] {
        assert_eq!(fairness.pass(INTEGRATION, asker(2), longest).await.err(), Some(Shed::Late));
    }
    assert_eq!(counts(&fairness), (1, 0));
    drop(held);
    assert!(fairness.pass_now(INTEGRATION, asker(2)).is_some());
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_it_waits_or_is_just_called_takes_nothing_along() {
    let fairness = fairness();
    let held = fairness.pass(INTEGRATION, asker(1), LONG).await.unwrap();
    let mut leaves = Box::pin(fairness.pass(INTEGRATION, asker(2), LONG));
    let mut called = Box::pin(fairness.pass(INTEGRATION, asker(2), LONG));
    assert!(futures::poll!(&mut leaves).is_pending() && futures::poll!(&mut called).is_pending());
    drop(leaves);
    assert_eq!(counts(&fairness), (1, 1));
    drop(held);
    // The place is its own now, but it never comes to know.
    drop(called);
    assert_eq!(counts(&fairness), (0, 0));
    assert!(fairness.pass_now(INTEGRATION, asker(3)).is_some());
}

#[tokio::test(start_paused = true)]
async fn who_is_displaced_is_told_at_once() {
    let fairness = fairness();
    let _held = fairness.pass(INTEGRATION, asker(9), LONG).await.unwrap();
    let mut crowd: Vec<_> = (0..10).map(|_| Box::pin(fairness.pass(INTEGRATION, asker(1), LONG))).collect();
    for one in &mut crowd {
        assert!(futures::poll!(one).is_pending());
    }
    assert_eq!(fairness.pass(INTEGRATION, asker(1), LONG).await.err(), Some(Shed::Full));
    let mut other = Box::pin(fairness.pass(INTEGRATION, asker(2), LONG));
    assert!(futures::poll!(&mut other).is_pending());
    assert_eq!(crowd.pop().unwrap().await.err(), Some(Shed::Displaced), "the youngest of the crowd");
    assert_eq!(counts(&fairness), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn lines_that_nobody_uses_are_not_kept() {
    let fairness = fairness();
    for integration in 0..100 {
        drop(fairness.pass_now(Uuid::from_u128(integration).into(), asker(1)));
    }
    assert_eq!(fairness.queues.read().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_several_who_could_yield_as_many_do_as_wait() {
    let fairness = fairness();
    let two = |workspace| QueuedCaller { most: 2, ..asker(workspace) };
    let held = [
        fairness.pass(INTEGRATION, two(1), LONG).await.unwrap(),
        fairness.pass(INTEGRATION, two(1), LONG).await.unwrap(),
    ];
    let mut contended = held.each_ref().map(|permit| permit.contention()());
    for contended in &mut contended {
        assert!(futures::poll!(contended).is_pending(), "nobody waits");
    }
    let mut waiting = Box::pin(fairness.pass(INTEGRATION, two(2), LONG));
    assert!(futures::poll!(&mut waiting).is_pending());
    let [first, second] = &mut contended;
    assert!(futures::poll!(first).is_ready());
    assert!(futures::poll!(&mut *second).is_pending(), "one place is given back already");
    let mut next = Box::pin(fairness.pass(INTEGRATION, two(3), LONG));
    assert!(futures::poll!(&mut next).is_pending());
    assert!(futures::poll!(second).is_ready(), "a second one waits");
    drop(held);
    let served = (waiting.await.unwrap(), next.await.unwrap());
    assert_eq!(counts(&fairness), (2, 0));
    drop(served);
    assert_eq!(counts(&fairness), (0, 0));
}
