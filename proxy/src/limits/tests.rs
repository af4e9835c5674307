//! The interface, in a process that shares its limits with nobody.

use super::*;
use prometheus::Registry;
use uuid::Uuid;

const NOW: Micros = 1_700_000_000 * counter::SECOND;

fn settings() -> settings::LimitSettings {
    settings::LimitSettings {
        redis_url: None,
        limits_store_away: StoreAway::Closed,
        limits_wait_ms: 50,
        limits_lease_ttl_ms: 10_000,
        limits_max_counters: 10_000,
        unknown_price: settings::limits::UnknownPrice::Allow,
    }
}

fn limits(settings: settings::LimitSettings) -> Arc<Limits> {
    Limits::alone(settings, Arc::new(LimitMeters::new(&Registry::new()).unwrap()))
}

fn limit(id: &str, unit: Unit, kind: LimitKind, cap: u64) -> Arc<Limit> {
    let counter = Counter::new(Uuid::nil().into(), Scope::Policy, id, unit, kind);
    Arc::new(Limit { counter, cap, kind, dry_run: false })
}

fn ask(limit: &Arc<Limit>, amount: u64) -> LimitAsk<'_> {
    LimitAsk { limit, amount, found: None }
}

const MINUTE: LimitKind = LimitKind::Rate(Window::Minute);
const STRICT: LimitKind = LimitKind::Budget { strict: true, since: 1 };
const DEFAULT: LimitKind = LimitKind::Budget { strict: false, since: 1 };

fn tokens(tokens: u64) -> Spent {
    Spent { requests: 1, tokens, nano_cents: 0 }
}

#[tokio::test]
async fn nothing_is_taken_when_one_limit_refuses() {
    let limits = limits(settings());
    let (wide, narrow) = (limit("a", Unit::Requests, MINUTE, 10), limit("b", Unit::Requests, MINUTE, 0));
    for _ in 0..50 {
        let refusal = limits.reserve(NOW, &[ask(&wide, 1), ask(&narrow, 1)]).await.err().unwrap();
        assert_eq!((refusal.index, refusal.why), (1, Why::Rate));
        assert_eq!(refusal.resets_at, MINUTE.ends_at(NOW));
    }
    let mut taken = Vec::new();
    while let Ok(more) = limits.reserve(NOW, &[ask(&wide, 1)]).await {
        taken.push(more);
    }
    assert_eq!(taken.len(), 10);
}

#[tokio::test]
async fn a_rate_of_zero_refuses_whether_or_not_redis_can_be_asked() {
    let settings = settings::LimitSettings {
        redis_url: Some("redis://nowhere".into()),
        limits_store_away: StoreAway::Open,
        ..settings()
    };
    let limits = Limits::shared(settings, Arc::new(LimitMeters::new(&Registry::new()).unwrap()));
    let (wide, none) = (limit("a", Unit::Requests, MINUTE, 10), limit("b", Unit::Tokens, MINUTE, 0));
    assert!(limits.reserve(NOW, &[ask(&wide, 1)]).await.is_ok(), "the setting lets calls pass");
    let refusal = limits.reserve(NOW, &[ask(&wide, 1), ask(&none, 1)]).await.err().unwrap();
    assert_eq!((refusal.index, refusal.why), (1, Why::Rate));
    let dry = Arc::new(Limit { dry_run: true, ..(*none).clone() });
    assert!(limits.reserve(NOW, &[ask(&dry, 1)]).await.is_ok());
}

#[tokio::test]
async fn what_is_settled_stays_used_and_what_is_dropped_comes_back() {
    let limits = limits(settings());
    let budget = limit("a", Unit::Tokens, STRICT, 100);
    drop(limits.reserve(NOW, &[ask(&budget, 100)]).await.unwrap());
    limits.reserve(NOW, &[ask(&budget, 100)]).await.unwrap().settle(tokens(30));
    let refusal = limits.reserve(NOW, &[ask(&budget, 71)]).await.err().unwrap();
    assert_eq!((refusal.remaining, refusal.why, refusal.resets_at), (70, Why::Budget, None));
    let last = limits.reserve(NOW, &[ask(&budget, 70)]).await.unwrap();
    assert_eq!(last.standings().next().unwrap().remaining, 0);
    last.settle(tokens(70));
    assert!(limits.reserve(NOW, &[ask(&budget, 1)]).await.is_err());
}

#[tokio::test]
async fn strict_budgets_want_the_worst_case_and_default_ones_pass_while_anything_is_left() {
    let limits = limits(settings());
    for (kind, amount, why) in [
        (STRICT, 101, Some(Why::Budget)),
        (STRICT, u64::MAX, Some(Why::Unbounded)),
        (STRICT, 100, None),
        (DEFAULT, 101, None),
        (DEFAULT, u64::MAX, None),
        (MINUTE, 1_000_000, None),
    ] {
        let budget = limit(&format!("{kind:?}{amount}"), Unit::Tokens, kind, 100);
        let passed = limits.reserve(NOW, &[ask(&budget, amount)]).await;
        assert_eq!(passed.err().map(|refusal| refusal.why), why, "{kind:?} {amount}");
    }
    let budget = limit("overspent", Unit::Tokens, DEFAULT, 100);
    limits.reserve(NOW, &[ask(&budget, 10)]).await.unwrap().settle(tokens(150));
    assert!(limits.reserve(NOW, &[ask(&budget, 1)]).await.is_err());
}

#[tokio::test]
async fn another_window_or_a_reset_or_a_higher_cap_begins_anew_at_once() {
    let limits = limits(settings());
    let rate = limit("rate", Unit::Requests, MINUTE, 1);
    limits.reserve(NOW, &[ask(&rate, 1)]).await.unwrap().settle(tokens(0));
    assert!(limits.reserve(NOW, &[ask(&rate, 1)]).await.is_err());
    assert!(limits.reserve(NOW + Window::Minute.length(), &[ask(&rate, 1)]).await.is_ok());
    let budget = |since, cap| limit("budget", Unit::Tokens, LimitKind::Budget { strict: false, since }, cap);
    limits.reserve(NOW, &[ask(&budget(1, 10), 10)]).await.unwrap().settle(tokens(10));
    assert!(limits.reserve(NOW, &[ask(&budget(1, 10), 1)]).await.is_err());
    limits.reserve(NOW, &[ask(&budget(1, 12), 2)]).await.unwrap().settle(tokens(2));
    assert!(limits.reserve(NOW, &[ask(&budget(1, 12), 1)]).await.is_err());
    assert!(limits.reserve(NOW, &[ask(&budget(2, 12), 12)]).await.is_ok());
}

#[tokio::test]
async fn a_dry_run_says_that_it_is_over_and_refuses_nobody() {
    let limits = limits(settings());
    let dry = Arc::new(Limit { dry_run: true, ..(*limit("dry", Unit::Requests, MINUTE, 1)).clone() });
    for is_over in [false, true, true] {
        let passed = limits.reserve(NOW, &[ask(&dry, 1)]).await.unwrap();
        let standing = passed.standings().next().unwrap();
        assert_eq!((standing.is_dry_run, standing.is_over), (true, is_over));
        passed.settle(Spent { requests: 1, ..Spent::default() });
    }
    let told = |kind: bool| limits.meters.would_have_refused_so_far(kind);
    assert_eq!((told(true), told(false)), (2, 0));
}

#[tokio::test]
async fn a_look_says_what_a_request_would_meet_and_takes_nothing() {
    let limits = limits(settings());
    let (rate, strict) = (limit("rate", Unit::Requests, MINUTE, 2), limit("strict", Unit::Tokens, STRICT, 10));
    let met = |limit: &Arc<Limit>, amount| {
        let look = limits.status(NOW, &ask(limit, amount));
        (look.remaining, look.refusal)
    };
    assert_eq!(met(&rate, 1), (Some(2), None));
    assert_eq!((met(&strict, 10), met(&strict, 11).1), ((Some(10), None), Some(Why::Budget)));
    assert_eq!(met(&strict, u64::MAX).1, Some(Why::Unbounded));
    assert_eq!(limits.shares.len(), 0, "nobody looked for the first time");
    let first = limits.reserve(NOW, &[ask(&rate, 1), ask(&strict, 4)]).await.unwrap();
    assert_eq!((met(&rate, 1), met(&strict, 6)), ((Some(1), None), (Some(6), None)));
    let second = limits.reserve(NOW, &[ask(&rate, 1)]).await.unwrap();
    for _ in 0..3 {
        assert_eq!(met(&rate, 1), (Some(0), Some(Why::Rate)));
    }
    drop((first, second));
    assert_eq!((met(&rate, 1), met(&strict, 10)), ((Some(2), None), (Some(10), None)));
    let shared = Limits::shared(settings(), Arc::new(LimitMeters::new(&Registry::new()).unwrap()));
    let look = shared.status(NOW, &ask(&rate, 1));
    assert_eq!((look.remaining, look.refusal), (None, None), "only the store could say");
}

#[tokio::test]
async fn many_limits_of_one_request_are_decided_together() {
    let limits = limits(settings());
    let many: Vec<_> = (0..40).map(|n| limit(&n.to_string(), Unit::Requests, MINUTE, 1)).collect();
    let asks: Vec<_> = many.iter().map(|limit| ask(limit, 1)).collect();
    let passed = limits.reserve(NOW, &asks).await.unwrap();
    assert_eq!(passed.charges().count(), 40);
    assert_eq!(limits.reserve(NOW, &asks[39..]).await.err().unwrap().index, 0);
    drop(passed);
    assert!(limits.reserve(NOW, &asks).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_together_take_no_more_than_there_is() {
    let limits = limits(settings());
    let (one, other) = (limit("one", Unit::Requests, MINUTE, 1000), limit("other", Unit::Requests, MINUTE, 5000));
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (limits, one, other) = (limits.clone(), one.clone(), other.clone());
            tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..500 {
                    let asks =
                        if task % 2 == 0 { [ask(&one, 1), ask(&other, 1)] } else { [ask(&other, 1), ask(&one, 1)] };
                    if let Ok(taken) = limits.reserve(NOW, &asks).await {
                        taken.settle(Spent { requests: 1, ..Spent::default() });
                        passed += 1;
                    }
                }
                passed
            })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += task.await.unwrap();
    }
    assert_eq!(passed, 1000);
}

#[tokio::test]
async fn groups_beyond_the_room_for_them_push_out_those_of_windows_that_are_over() {
    let limits = limits(settings::LimitSettings { limits_max_counters: 2560, ..settings() });
    let reserve = |n: u32, now| {
        let (limits, group) = (limits.clone(), limit(&n.to_string(), Unit::Requests, MINUTE, 1));
        async move { limits.reserve(now, &[ask(&group, 1)]).await.map(|taken| taken.settle(Spent::default())) }
    };
    let mut refused = 0;
    for n in 0..20_000 {
        refused += u32::from(reserve(n, NOW).await.is_err());
    }
    assert_eq!(refused, 20_000 - 2560, "so many as there is room for, wherever they fall");
    for n in 30_000..30_100 {
        assert!(reserve(n, NOW + Window::Minute.length()).await.is_ok());
    }
}

#[tokio::test]
async fn a_request_does_not_push_out_its_own_limits() {
    let meters = Arc::new(LimitMeters::new(&Registry::new()).unwrap());
    let room_for_one = settings::LimitSettings { limits_max_counters: 1, ..settings() };
    let limits = Limits::shared(room_for_one, meters.clone());
    let groups: Vec<_> = (0..300).map(|n| limit(&n.to_string(), Unit::Requests, MINUTE, 1)).collect();
    let shard = |limit: &Limit| shards::shard_of(&limit.counter);
    let pairs = groups.iter().flat_map(|one| groups.iter().map(move |other| (one, other)));
    let mut neighbours = pairs.filter(|(one, other)| one.counter != other.counter && shard(one) == shard(other));
    let (one, other) = neighbours.next().expect("there are more of them than shards");
    let refusal = limits.reserve(NOW, &[ask(one, 1), ask(other, 1)]).await.err().unwrap();
    assert_eq!((refusal.index, refusal.why), (1, Why::StoreAway), "there is no room for the second");
    assert_eq!(meters.waited.get(), 0, "which is known at once");
}

#[tokio::test]
async fn whoever_waits_sees_the_answer_though_the_clock_was_set_back_meanwhile() {
    let patient = settings::LimitSettings { limits_wait_ms: 5_000, ..settings() };
    let limits = Limits::shared(patient, Arc::new(LimitMeters::new(&Registry::new()).unwrap()));
    let budget = limit("budget", Unit::Requests, STRICT, 2);
    let (waiting, counter) = (limits.clone(), budget.counter.clone());
    let waiter = tokio::spawn(async move { waiting.reserve(waiting.now(), &[ask(&budget, 1)]).await.err() });
    while limits.queue.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    limits.offset.fetch_sub(10 * counter::SECOND, Relaxed);
    limits.shares.with(&counter, |entry| {
        let question = entry.share.ask(limits.now(), Uuid::now_v7(), 0);
        entry.share.answered(limits.now(), &question, share::LeaseAnswer { granted: 0, left: 0, others: false });
        entry.waiting = None;
    });
    assert_eq!(waiter.await.unwrap().map(|refusal| refusal.why), Some(Why::Budget));
}
