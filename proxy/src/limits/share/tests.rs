//! Calls that use more than their lease had: the store is told by the journal, and what it lacks is counted once.

use super::super::counter::{Counter, Scope, Unit};
use super::leases::MARGIN;
use super::*;

const CAP: u64 = 1000;
const BEGIN: Micros = 1_700_000_000 * SECOND;

/// A share whose first lease of 10 was overdrawn by 290, and that limit.
fn overdrawn() -> (Share, Limit, Uuid) {
    let kind = LimitKind::Budget { strict: false, since: 1 };
    let counter = Counter::new(Uuid::nil().into(), Scope::Policy, "p/", Unit::Tokens, kind);
    let limit = Limit { counter, cap: CAP, kind, dry_run: false };
    let mut share = Share::new(BEGIN, &limit);
    let first = granted(&mut share, BEGIN, kind, LeaseAnswer { granted: 10, left: 990, others: false });
    assert_eq!(share.verdict(BEGIN, &limit, 300, 0), LimitVerdict::Pass);
    assert_eq!(share.take(BEGIN, 300), Some(first));
    share.settle(BEGIN, first, 300, 300);
    (share, limit, first)
}

/// Somebody waits, and the store grants so much.
fn granted(share: &mut Share, now: Micros, kind: LimitKind, answer: LeaseAnswer) -> Uuid {
    assert!(share.wait(now, kind, 1, 0));
    let question = share.ask(now, Uuid::new_v4(), 0);
    assert!(question.wish.need <= answer.granted, "{question:?}");
    share.answered(now, &question, answer);
    question.lease
}

#[test]
fn what_the_store_grants_in_ignorance_counts_less_and_goes_back_when_it_knows() {
    let (mut share, limit, first) = overdrawn();
    let later = BEGIN + 3 * SECOND;
    let answer = LeaseAnswer { granted: 400, left: CAP - 410, others: true };
    let second = granted(&mut share, later, limit.kind, answer);
    assert_ne!(second, first, "an overdrawn lease is exchanged");
    assert_eq!(share.remaining(), CAP - 300);
    assert_eq!(share.take(later, 50), Some(second));
    assert_eq!(share.sweep(later, BEGIN, 0), Swept::default(), "the journal is not that far");
    let swept = share.sweep(later, later, 0);
    assert_eq!((swept.shrink, &swept.release), (Some((second, 290)), &vec![first]));
    // Nobody heard of it: it is not given back twice.
    let again = share.sweep(later, later, 0);
    assert_eq!((again.shrink, &again.release), (None, &vec![first]));
    share.released(&again.release);
    assert_eq!(share.own(), 400 - 290 - 50);
}

#[test]
fn a_lease_that_is_overdrawn_when_the_store_knows_is_given_up_with_its_debt() {
    let (mut share, limit, first) = overdrawn();
    let later = BEGIN + MARGIN + SECOND / 2;
    let swept = share.sweep(later, later, 0);
    assert_eq!((swept.shrink, &swept.release), (None, &vec![first]), "nobody must stop asking for that");
    assert_eq!(share.own(), -290, "until the store has it back");
    share.released(&swept.release);
    granted(&mut share, later, limit.kind, LeaseAnswer { granted: 700, left: 0, others: false });
    assert_eq!(share.own(), 700);
}

/// Between the store's having charged a call and the exchange of its lease, what was overdrawn counts on both sides: too much is
/// refused for a moment, never too little.
#[test]
fn what_was_overdrawn_counts_here_and_in_the_store_for_two_seconds_at_most() {
    let (mut share, limit, first) = overdrawn();
    let soon = BEGIN + 2 * SECOND - 1;
    assert!(share.wait(soon, limit.kind, 1, 0));
    let question = share.ask(soon, Uuid::new_v4(), 0);
    assert_eq!(question.lease, first, "it is young");
    // The store has charged 300, and knows 700 to be left.
    share.answered(soon, &question, LeaseAnswer { granted: 400, left: 300, others: false });
    assert_eq!(share.own(), 400 - 290, "the store's 400, less what is charged already");
    assert_eq!(share.take(soon, 10), Some(first), "calls go on all the time");
    let old = BEGIN + 2 * SECOND;
    assert!(share.runs_low(old), "it is exchanged without waiting for anything");
    let question = share.ask(old, Uuid::new_v4(), 0);
    assert_ne!(question.lease, first);
    share.answered(old, &question, LeaseAnswer { granted: 300, left: 0, others: false });
    assert_eq!(share.own(), 300, "all that the store granted since");
    share.settle(old, first, 10, 10);
    let later = old + MARGIN + SECOND / 2;
    assert_eq!(share.sweep(later, later, 0).release, vec![first], "and what is left of the first goes back");
}

#[test]
fn what_running_calls_give_back_lessens_the_debt_of_a_lease_that_is_retired() {
    let (mut share, limit, first) = overdrawn();
    assert!(share.wait(BEGIN, limit.kind, 1, 0));
    let question = share.ask(BEGIN, Uuid::new_v4(), 0);
    assert_eq!(question.lease, first, "it is young");
    share.answered(BEGIN, &question, LeaseAnswer { granted: 300, left: CAP - 310, others: false });
    share.take(BEGIN, 100);
    assert_eq!(share.own(), -90);
    granted(&mut share, BEGIN + 3 * SECOND, limit.kind, LeaseAnswer { granted: 100, left: CAP - 410, others: true });
    assert_eq!(share.own(), 10);
    share.settle(BEGIN + 3 * SECOND, first, 100, 20);
    assert_eq!(share.own(), 90);
    let reset = Limit { kind: LimitKind::Budget { strict: false, since: 2 }, ..limit };
    share.turn(BEGIN + 3 * SECOND, &reset);
    assert_eq!(share.own(), 0, "a period that is over owes nothing to the next");
}

#[test]
fn a_clock_that_was_ahead_leaves_no_share_in_a_window_to_come() {
    const HOUR: Micros = 3600 * SECOND;
    let kind = LimitKind::Rate(super::super::counter::Window::Minute);
    let counter = Counter::new(Uuid::nil().into(), Scope::Policy, "p/", Unit::Requests, kind);
    let limit = Limit { counter, cap: CAP, kind, dry_run: false };
    let ahead = BEGIN + HOUR;
    let mut share = Share::new(ahead, &limit);
    let lost = share_granted(&mut share, ahead, kind, 0);
    assert_eq!(share.verdict(ahead, &limit, 1, Micros::MAX), LimitVerdict::Refuse, "there was nothing left");
    // A request that began shortly before a window is no clock that was set back.
    let early = kind.starts_at(ahead) - SECOND;
    share.turn(early, &limit);
    assert_eq!(share.starts_at(), kind.starts_at(ahead));
    share.turn(BEGIN, &limit);
    assert_eq!((share.starts_at(), share.ends_at()), (kind.starts_at(BEGIN), kind.ends_at(BEGIN)));
    assert_eq!(
        share.verdict(BEGIN, &limit, 1, Micros::MAX),
        LimitVerdict::Wait,
        "the store is asked about the present one"
    );
    assert!(share.sweep(BEGIN, BEGIN, Micros::MAX).release.is_empty(), "the journal is not that far");
    let later = BEGIN + 2 * MARGIN;
    let swept = share.sweep(later, later, Micros::MAX);
    assert_eq!(swept.release, lost.into_iter().collect::<Vec<_>>(), "what was leased ahead goes back");
}

/// As `granted`, when the store may have nothing; none is noted of a lease without anything.
fn share_granted(share: &mut Share, now: Micros, kind: LimitKind, left: u64) -> Option<Uuid> {
    assert!(share.wait(now, kind, 1, Micros::MAX));
    let question = share.ask(now, Uuid::new_v4(), Micros::MAX);
    share.answered(now, &question, LeaseAnswer { granted: 1, left, others: false });
    share.take(now, 1).inspect(|lease| share.settle(now, *lease, 1, 1))
}

#[test]
fn a_budget_that_was_dry_by_a_clock_ahead_is_asked_about_again() {
    let kind = LimitKind::Budget { strict: true, since: 1 };
    let counter = Counter::new(Uuid::nil().into(), Scope::Policy, "p/", Unit::Tokens, kind);
    let limit = Limit { counter, cap: CAP, kind, dry_run: false };
    let ahead = BEGIN + 3600 * SECOND;
    let mut share = Share::new(ahead, &limit);
    assert!(share.wait(ahead, kind, 50, 0));
    let question = share.ask(ahead, Uuid::new_v4(), 0);
    share.answered(ahead, &question, LeaseAnswer { granted: 0, left: 0, others: false });
    assert_eq!(share.verdict(ahead, &limit, 50, 0), LimitVerdict::Refuse);
    share.turn(BEGIN, &limit);
    assert_eq!(share.verdict(BEGIN, &limit, 50, 0), LimitVerdict::Wait);
    share.wait(BEGIN, kind, 50, 0);
    let question = share.ask(ahead, Uuid::new_v4(), 0);
    share.unanswered(ahead, &question);
    share.turn(BEGIN, &limit);
    assert_eq!(share.verdict(BEGIN, &limit, 50, 0), LimitVerdict::Wait, "nor is it away for an hour");
}

/// What this replica and the store count differently is put right under steady traffic, and not only when nobody calls.
#[test]
fn an_old_lease_is_given_up_although_much_is_left_of_it_and_the_store_grants_nothing() {
    for strict in [false, true] {
        let kind = LimitKind::Budget { strict, since: 1 };
        let counter = Counter::new(Uuid::nil().into(), Scope::Policy, "p/", Unit::Cost, kind);
        let limit = Limit { counter, cap: CAP, kind, dry_run: false };
        let mut share = Share::new(BEGIN, &limit);
        let first = granted(&mut share, BEGIN, kind, LeaseAnswer { granted: 100, left: 900, others: false });
        let mut now = BEGIN;
        // Each call uses nothing here; the store counts what it really cost.
        let asked = (0..80).find(|_| {
            now += SECOND;
            assert_eq!(share.verdict(now, &limit, 10, 0), LimitVerdict::Pass);
            let lease = share.take(now, 10).unwrap();
            share.settle(now, lease, 10, 0);
            share.runs_low(now)
        });
        assert_eq!(asked, Some(59), "the store is asked after a minute, though nobody waits");
        let question = share.ask(now, Uuid::new_v4(), 0);
        assert_ne!(question.lease, first);
        share.answered(now, &question, LeaseAnswer { granted: 0, left: 0, others: false });
        assert_eq!(share.verdict(now, &limit, 10, 0), LimitVerdict::Refuse, "strict {strict}");
        let later = now + 2 * MARGIN;
        assert_eq!(share.sweep(later, later, 0).release, [first]);
    }
}
