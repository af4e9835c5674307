//! When a circuit opens, and when it closes again.

use super::*;

fn rules() -> Rules {
    Rules {
        failure_threshold: Some(3),
        failure_threshold_percentage: None,
        minimum_requests: None,
        cooldown_interval_ms: 30_000,
        failure_status_codes: None,
    }
}

#[test]
fn it_opens_at_the_threshold_and_closes_after_its_cooldown_with_a_clean_slate() {
    let breaker = Breaker::new(rules());
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    for (second, status, is_open) in [
        (0, 500, false),
        (1, 404, false),
        (2, 503, false),
        (3, 200, false),
        (4, 529, true),
        (5, 200, true),
        (33, 200, true),
        (34, 500, false),
        (35, 500, false),
        (36, 500, true),
    ] {
        breaker.record(status, after(second));
        assert_eq!(breaker.is_open(after(second)), is_open, "{second}");
    }
    assert!(!breaker.is_open(after(66)));
}

#[test]
fn failures_long_ago_do_not_count() {
    let breaker = Breaker::new(rules());
    let start = Instant::now();
    breaker.record(500, start);
    breaker.record(500, start + Duration::from_secs(1));
    breaker.record(500, start + Duration::from_secs(31));
    assert!(!breaker.is_open(start + Duration::from_secs(31)));
}

#[test]
fn a_share_of_failures_counts_only_among_enough_requests() {
    let share = Rules {
        failure_threshold: None,
        failure_threshold_percentage: Some(50.0),
        minimum_requests: Some(4),
        failure_status_codes: Some(vec![429]),
        ..rules()
    };
    let breaker = Breaker::new(share);
    let now = Instant::now();
    for (status, is_open) in [(429, false), (429, false), (500, false), (200, false), (429, true)] {
        breaker.record(status, now);
        assert_eq!(breaker.is_open(now), is_open, "{status}");
    }
}
