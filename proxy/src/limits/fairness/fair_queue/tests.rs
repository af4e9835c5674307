//! Who is served, who waits and who has to go.

use super::*;
use proptest::prelude::*;
use uuid::Uuid;

const A: WorkspaceId = WorkspaceId::new(Uuid::from_u128(1));
const B: WorkspaceId = WorkspaceId::new(Uuid::from_u128(2));
const C: WorkspaceId = WorkspaceId::new(Uuid::from_u128(3));

fn asker(workspace: WorkspaceId, weight: u8, most: u32) -> QueuedCaller {
    QueuedCaller { workspace, weight, most }
}

/// Brings so many of a workspace; each is known by it.
fn bring(line: &mut FairQueue<WorkspaceId>, asker: QueuedCaller, times: usize) -> usize {
    (0..times).filter(|_| line.enter(asker, || asker.workspace).0 == Entered::Passes).count()
}

#[test]
fn as_many_pass_as_may_and_the_rest_wait_in_order() {
    let mut line: FairQueue<u32> = FairQueue::default();
    let a = asker(A, 10, 2);
    for (who, entered) in [Entered::Passes, Entered::Passes, Entered::Waits(1), Entered::Waits(2)].iter().enumerate() {
        assert_eq!(&line.enter(a, || who as u32).0, entered);
    }
    assert!(!line.pass(a), "nobody overtakes");
    assert_eq!((line.under_way(), line.waiting()), (2, 2));
    assert_eq!(line.leave(A), [2]);
    assert_eq!(line.give_up(A, 2).map(|passing| passing.len()), Some(0));
    assert_eq!(line.give_up(A, 2).map(|passing| passing.len()), None, "it does not wait any more");
    assert!(line.leave(A).is_empty() && line.leave(A).is_empty());
    assert!(line.lanes.is_empty(), "nothing is remembered of nobody");
}

#[test]
fn workspaces_that_always_wait_are_served_by_their_priority() {
    for (weights, expected) in [((30, 10), (75, 25)), ((10, 10), (50, 50)), ((100, 25), (80, 20)), ((1, 99), (1, 99))] {
        let mut line = FairQueue::default();
        let (a, b) = (asker(A, weights.0, 1), asker(B, weights.1, 1));
        assert!(line.pass(a));
        bring(&mut line, a, 5);
        bring(&mut line, b, 5);
        let (mut served, mut holder) = (HashMap::new(), A);
        for _ in 0..100 {
            holder = line.leave(holder)[0];
            *served.entry(holder).or_insert(0) += 1;
            // Whoever was served comes again.
            bring(&mut line, if holder == A { a } else { b }, 1);
        }
        let of = |workspace: WorkspaceId| served.get(&workspace).copied().unwrap_or(0i32);
        let (a, b) = (of(A), of(B));
        assert!((a - expected.0).abs() <= 1 && (b - expected.1).abs() <= 1, "{weights:?}: {a} and {b}");
    }
}

#[test]
fn who_holds_every_place_gives_them_up_until_each_has_its_share() {
    let mut line = FairQueue::default();
    let (a, b) = (asker(A, 10, 10), asker(B, 10, 10));
    assert_eq!(bring(&mut line, a, 40), 10);
    bring(&mut line, b, 40);
    let mut held = HashMap::from([(A, 10), (B, 0)]);
    for _ in 0..5 {
        assert_eq!(line.leave(A), [B], "as long as it has less than its half");
        *held.entry(A).or_default() -= 1;
        *held.entry(B).or_default() += 1;
    }
    // From here on each gets what it gives back, however short B's calls are.
    for workspace in [B, B, B, A, B, A] {
        assert_eq!(line.leave(workspace), [workspace]);
    }
    assert_eq!(held, HashMap::from([(A, 5), (B, 5)]));
}

#[test]
fn the_first_call_of_another_is_next_however_many_wait() {
    let mut line = FairQueue::default();
    let a = asker(A, 10, 1);
    bring(&mut line, a, 9);
    bring(&mut line, asker(B, 10, 1), 1);
    assert_eq!(line.leave(A), [B]);
}

#[test]
fn of_two_whose_turn_it_is_the_higher_priority_goes_first() {
    for (a, b, first) in [(1, 100, B), (100, 1, A)] {
        let mut line = FairQueue::default();
        assert!(line.pass(asker(C, 10, 1)));
        bring(&mut line, asker(A, a, 1), 1);
        bring(&mut line, asker(B, b, 1), 1);
        assert_eq!(line.leave(C), [first]);
    }
}

#[test]
fn rows_of_batches_go_after_whoever_waits_for_an_answer() {
    let mut line = FairQueue::default();
    let (rows, live) = (QueuedCaller::batch(1), asker(A, 10, 1));
    assert!(line.pass(rows));
    bring(&mut line, rows, 5);
    bring(&mut line, live, 5);
    let mut holder = rows.workspace;
    let served: Vec<WorkspaceId> = (0..6)
        .map(|_| {
            holder = line.leave(holder)[0];
            holder
        })
        .collect();
    assert_eq!(served.iter().take(5).filter(|workspace| **workspace == A).count(), 5, "{served:?}");
    assert_eq!(served[5], rows.workspace, "and then they go on");
}

#[test]
fn coming_and_going_does_not_wipe_out_what_was_served() {
    // A leaves nothing behind, and comes again at once: among equals it is served every other time, not every time, and
    // not at all while it owes more than others.
    for (weights, expected) in [((10, 10), 4), ((1, 10), 0)] {
        let mut line = FairQueue::default();
        let (a, b) = (asker(A, weights.0, 1), asker(B, weights.1, 1));
        assert!(line.pass(a));
        bring(&mut line, b, 8);
        let (mut holder, mut served) = (A, 0);
        for _ in 0..8 {
            let came_back = holder == A;
            holder = line.leave(holder)[0];
            if came_back {
                bring(&mut line, a, 1);
            }
            served += usize::from(holder == A);
        }
        assert_eq!(served, expected, "{weights:?}");
    }
}

#[test]
fn the_largest_number_is_shared_and_nobody_passes_its_own() {
    let mut line = FairQueue::default();
    let (a, b) = (asker(A, 10, 2), asker(B, 10, 5));
    assert_eq!(bring(&mut line, a, 4), 2, "as long as it is alone, its own number");
    let (entered, called) = line.enter(b, || B);
    assert_eq!((entered, called.passing), (Entered::Waits(3), vec![B]), "two of A wait for A's sake alone");
    bring(&mut line, b, 3);
    assert_eq!((line.lanes[&A].under_way, line.lanes[&B].under_way, line.waiting()), (2, 3, 3));
}

#[test]
fn when_no_more_can_wait_the_lowest_priority_goes_first() {
    let full = || {
        let mut line = FairQueue::default();
        assert!(line.pass(asker(C, 10, 1)));
        line
    };
    // Ten wait for the one place.
    let mut line = full();
    bring(&mut line, asker(A, 1, 1), 10);
    let (entered, called) = line.enter(asker(B, 100, 1), || B);
    assert_eq!((entered, called.displaced), (Entered::Waits(11), Some(A)), "a higher one takes its place");
    let mut line = full();
    bring(&mut line, asker(B, 100, 1), 10);
    let (entered, called) = line.enter(asker(A, 1, 1), || A);
    assert_eq!((entered, called.displaced), (Entered::Full, None), "a lower one finds none");
    let mut line = full();
    bring(&mut line, asker(A, 50, 1), 9);
    bring(&mut line, asker(C, 10, 1), 1);
    let (_, called) = line.enter(asker(B, 50, 1), || B);
    assert_eq!(called.displaced, Some(A), "but nobody loses what is less than its part to a crowd");
    let mut line = full();
    bring(&mut line, asker(A, 10, 1), 10);
    let (entered, called) = line.enter(asker(B, 10, 1), || B);
    assert_eq!((entered, called.displaced), (Entered::Waits(11), Some(A)), "among equals, who has the most");
    assert_eq!(line.enter(asker(A, 10, 1), || A).0, Entered::Full, "a crowd does not displace itself");
}

#[derive(Debug, Clone)]
enum Step {
    Enter(usize),
    Leave(usize),
    GiveUp(usize),
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0usize..4).prop_map(Step::Enter),
        2 => (0usize..64).prop_map(Step::Leave),
        1 => (0usize..64).prop_map(Step::GiveUp),
    ]
}

proptest! {
    #[test]
    fn no_place_is_lost_given_twice_or_kept_from_those_who_may_have_it(
        lanes in prop::collection::vec((1u8..=100, 1u32..6), 4),
        steps in prop::collection::vec(a_step(), 1..300),
    ) {
        let askers: Vec<QueuedCaller> = lanes.iter().enumerate()
            .map(|(index, (weight, most))| asker(Uuid::from_u128(index as u128).into(), *weight, *most)).collect();
        let mut line: FairQueue<(usize, u64)> = FairQueue::default();
        let (mut running, mut waiting): (Vec<usize>, Vec<(usize, u64)>) = (Vec::new(), Vec::new());
        let mut count = 0;
        for step in &steps {
            let passing = match step {
                Step::Enter(who) => {
                    let (entered, called) = line.enter(askers[*who], || { count += 1; (*who, count) });
                    if let Some(displaced) = called.displaced {
                        let place = waiting.iter().position(|one| *one == displaced);
                        prop_assert!(place.is_some(), "{displaced:?} did not wait");
                        waiting.remove(place.unwrap());
                    }
                    match entered {
                        Entered::Passes => running.push(*who),
                        Entered::Waits(number) => {
                            prop_assert_eq!(number, count);
                            waiting.push((*who, number));
                        }
                        Entered::Full => {}
                    }
                    called.passing
                }
                Step::Leave(index) if !running.is_empty() => {
                    let who = running.swap_remove(index % running.len());
                    line.leave(askers[who].workspace)
                }
                Step::GiveUp(index) if !waiting.is_empty() => {
                    let (who, number) = waiting.swap_remove(index % waiting.len());
                    let passing = line.give_up(askers[who].workspace, number);
                    prop_assert!(passing.is_some());
                    passing.unwrap()
                }
                _ => Vec::new(),
            };
            for passed in passing {
                let place = waiting.iter().position(|one| *one == passed);
                prop_assert!(place.is_some(), "{passed:?} did not wait");
                waiting.remove(place.unwrap());
                running.push(passed.0);
            }
            prop_assert_eq!((line.under_way(), line.waiting()), (running.len(), waiting.len()));
            let places = line.places();
            let most = askers.iter().map(|asker| asker.most as usize).max().unwrap();
            prop_assert!(running.len() <= most && waiting.len() <= line.room().max(most * WAITING_PER_PLACE));
            for (who, asker) in askers.iter().enumerate() {
                let own = running.iter().filter(|one| **one == who).count();
                prop_assert!(own <= asker.most as usize);
                let waits = waiting.iter().any(|(one, _)| *one == who);
                prop_assert!(!waits || running.len() >= places || own >= asker.most as usize, "a place is kept from {who}");
            }
        }
        for who in std::mem::take(&mut running) {
            for passed in line.leave(askers[who].workspace) {
                running.push(passed.0);
            }
        }
        while let Some(who) = running.pop() {
            running.extend(line.leave(askers[who].workspace).into_iter().map(|passed| passed.0));
        }
        prop_assert_eq!((line.under_way(), line.waiting(), line.lanes.len()), (0, 0, 0));
    }
}
