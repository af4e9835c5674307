//! Which outcomes are tried again, and after which wait.

use super::*;

fn rules(attempts: u8) -> Retry {
    Retry { attempts, on_status_codes: None, use_retry_after_header: false, jitter: Jitter::None, budget_percent: 20.0 }
}

fn status(status: u16) -> AttemptResult {
    AttemptResult { status, ..AttemptResult::default() }
}

fn waits(rules: &Retry, outcomes: &[AttemptResult]) -> (Vec<Option<u64>>, i8) {
    let (budget, mut retries, now) = (Budget::new(100.0), Retries::default(), Instant::now());
    let waits = outcomes
        .iter()
        .map(|outcome| retries.next(rules, &budget, outcome, now, &mut || 0.25).map(|wait| wait.as_millis() as u64))
        .collect();
    (waits, retries.count())
}

#[test]
fn waits_double_until_the_attempts_are_used_up() {
    let failed: Vec<AttemptResult> = (0..6).map(|_| status(500)).collect();
    let expected = [Some(1000), Some(2000), Some(4000), Some(8000), Some(16000), None];
    assert_eq!(waits(&rules(5), &failed), (expected.to_vec(), -1));
    assert_eq!(waits(&rules(0), &failed[..1]), (vec![None], 0));
    let jitter = Retry { jitter: Jitter::Full, ..rules(2) };
    assert_eq!(waits(&jitter, &failed[..2]), (vec![Some(250), Some(500)], 2));
}

#[test]
fn only_what_is_worth_it_is_tried_again() {
    let listed = |codes: &[u16]| Retry { on_status_codes: Some(codes.to_vec()), ..rules(1) };
    let network = AttemptResult { status: 503, speaker: Speaker::Network, ..AttemptResult::default() };
    for (rules, outcome, again) in [
        (rules(1), status(429), true),
        (rules(1), status(529), true),
        (rules(1), status(400), false),
        (rules(1), status(408), false),
        (rules(1), status(200), false),
        (listed(&[408]), status(408), true),
        (listed(&[400]), status(500), false),
        (listed(&[]), status(500), false),
        (listed(&[]), network.clone(), true),
        (rules(1), AttemptResult { speaker: Speaker::Fault, ..network.clone() }, false),
        (rules(1), AttemptResult { speaker: Speaker::Gateway, ..status(429) }, false),
        (rules(1), AttemptResult { left: Duration::from_millis(900), ..status(500) }, false),
    ] {
        let (waits, _) = waits(&rules, std::slice::from_ref(&outcome));
        assert_eq!(waits[0].is_some(), again, "{rules:?} {outcome:?}");
    }
}

#[test]
fn a_provider_is_obeyed_on_429_as_long_as_it_asks_for_little() {
    let obedient = Retry { use_retry_after_header: true, ..rules(5) };
    let asks = |seconds| AttemptResult { retry_after: Some(Duration::from_secs(seconds)), ..status(429) };
    assert_eq!(waits(&obedient, &[asks(3), status(500), asks(0)]), (vec![Some(3000), Some(0), Some(0)], 3));
    assert_eq!(waits(&obedient, &[asks(60)]), (vec![None], -1));
    assert_eq!(waits(&obedient, &[asks(40), asks(21)]), (vec![Some(40_000), None], -1));
    let elsewhere = AttemptResult { retry_after: Some(Duration::from_secs(3)), ..status(503) };
    assert_eq!(waits(&obedient, &[elsewhere]), (vec![Some(1000)], 1));
    assert_eq!(waits(&rules(5), &[asks(3)]), (vec![Some(1000)], 1));
}

#[test]
fn a_target_whose_budget_is_used_up_is_not_tried_again() {
    let (budget, now) = (Budget::new(0.0), Instant::now());
    while budget.take(now) {}
    let mut retries = Retries::default();
    assert_eq!(retries.next(&rules(3), &budget, &status(500), now, &mut || 0.5), None);
    assert_eq!(retries.count(), -1);
}
