//! Leases from Postgres: no limit is passed, none is lost, and the dead leave theirs behind when all they spent is known.

use super::replica::{NANO_CENTS, PATIENCE, Replica, TOKENS, ask, limit, settings, until};
use harness::Database;
use proxy::limits::{LimitKind, Unit, Why, Window};
use shared::settings;
use shared::settings::limits::StoreAway;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

const STRICT: LimitKind = LimitKind::Budget { strict: true, since: 1_700_000_000_000_000 };
const LEASES: &str = "SELECT count(*) FROM limit_leases";
const VALUE: &str = "SELECT trim_scale(sum(value))::text FROM usage_counters WHERE scope = 'policy'";

fn organisation() -> Uuid {
    Uuid::new_v4()
}

#[tokio::test]
async fn three_uneven_replicas_use_a_rate_up_and_never_pass_it() {
    const CAP: u64 = 300;
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let rate = limit(organisation(), Unit::Requests, LimitKind::Rate(Window::Day), CAP);
    let passed = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + PATIENCE;
    let clients: Vec<_> = [40_usize, 8, 1]
        .into_iter()
        .enumerate()
        .flat_map(|(number, clients)| {
            let replica = Arc::new(Replica::start(&folder.path().join(number.to_string()), &database));
            (0..clients).map(move |_| replica.clone()).collect::<Vec<_>>()
        })
        .map(|replica| {
            let (rate, passed) = (rate.clone(), passed.clone());
            tokio::spawn(async move {
                while passed.load(Relaxed) < CAP * 99 / 100 && Instant::now() < end {
                    match replica.call(&[ask(&rate, 1)]).await {
                        Ok(()) => drop(passed.fetch_add(1, Relaxed)),
                        Err(refusal) => {
                            assert!(matches!(refusal.why, Why::Rate | Why::StoreAway), "{refusal:?}");
                            sleep(Duration::from_millis(20)).await;
                        }
                    }
                }
                // Whoever asks now finds the little that is left, and not more.
                for _ in 0..20 {
                    passed.fetch_add(u64::from(replica.call(&[ask(&rate, 1)]).await.is_ok()), Relaxed);
                }
                replica
            })
        })
        .collect();
    let mut replicas = Vec::new();
    for client in clients {
        replicas.push(client.await.unwrap());
    }
    let passed = passed.load(Relaxed);
    assert!((CAP * 99 / 100..=CAP).contains(&passed), "{passed} of {CAP}");
    until(&database, VALUE, Some(passed.to_string())).await;
}

#[tokio::test]
async fn a_strict_budget_is_spent_to_the_last_unit_and_all_leases_come_back() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let replicas = ["a", "b"].map(|name| Replica::start(&folder.path().join(name), &database));
    let home = organisation();
    let budget = limit(home, Unit::Cost, STRICT, 20 * NANO_CENTS);
    let end = Instant::now() + PATIENCE;
    let mut passed = 0;
    while passed < 20 {
        assert!(Instant::now() < end, "{passed} of 20 passed");
        for replica in &replicas {
            match replica.call(&[ask(&budget, NANO_CENTS)]).await {
                Ok(()) => passed += 1,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }
    assert_eq!(passed, 20);
    until(&database, LEASES, 0_i64).await;
    until(&database, VALUE, Some("7".to_owned())).await;
    for replica in &replicas {
        assert_eq!(replica.call(&[ask(&budget, 1)]).await.unwrap_err().why, Why::Budget);
    }
    // The same thing of another organisation is another thing.
    let other = limit(organisation(), Unit::Cost, STRICT, NANO_CENTS);
    assert!(replicas[0].call(&[ask(&other, NANO_CENTS)]).await.is_ok());
}

#[tokio::test]
async fn what_a_killed_replica_spent_stays_charged_until_its_journal_has_arrived() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let (home, dead_folder) = (organisation(), folder.path().join("dead"));
    let budget = limit(home, Unit::Tokens, STRICT, 10 * TOKENS);
    let mut dead = Replica::start(&dead_folder, &database);
    dead.stop_shipping();
    let first = dead.reserve(&[ask(&budget, 8 * TOKENS)]).await.unwrap();
    dead.finish(first, home);
    drop(dead);
    let other = Replica::start(&folder.path().join("other"), &database);
    let refusal = other.call(&[ask(&budget, 3 * TOKENS)]).await.unwrap_err();
    assert_eq!(refusal.why, Why::Budget, "eight may have been spent, for all anybody knows");
    let heir = Replica::start(&dead_folder, &database);
    until(&database, VALUE, Some(TOKENS.to_string())).await;
    let end = Instant::now() + PATIENCE;
    while let Err(refusal) = other.reserve(&[ask(&budget, 9 * TOKENS)]).await.map(drop) {
        assert!(Instant::now() < end, "{refusal:?}");
        sleep(Duration::from_millis(50)).await;
    }
    drop(heir);
}

#[tokio::test]
async fn without_the_store_calls_go_on_within_the_lease_and_then_as_the_setting_says() {
    let database = Database::fresh().await;
    for (setting, strict, passes) in
        [(StoreAway::Closed, false, false), (StoreAway::Open, false, true), (StoreAway::Open, true, false)]
    {
        let folder = TempDir::new().unwrap();
        let limits = settings::LimitSettings { limits_store_away: setting, ..settings().limits };
        let replica = Replica::start_with(folder.path(), database.settings(), limits);
        let kind = LimitKind::Budget { strict, since: 1_700_000_000_000_000 };
        let budget = limit(organisation(), Unit::Requests, kind, 100);
        let end = Instant::now() + PATIENCE;
        loop {
            match replica.reserve(&[ask(&budget, 10)]).await {
                Ok(taken) if taken.charges().all(|due| due.lease.is_some()) => break,
                _ => assert!(Instant::now() < end, "the store was never there"),
            }
        }
        replica.stop_asking();
        let mut kept = vec![replica.reserve(&[ask(&budget, 10)]).await.expect("there are ten in the lease")];
        let beyond = loop {
            match replica.reserve(&[ask(&budget, 10)]).await {
                Ok(more) if more.charges().all(|due| due.lease.is_some()) && kept.len() < 10 => kept.push(more),
                beyond => break beyond,
            }
        };
        assert_eq!(
            beyond.as_ref().err().map(|refusal| refusal.why),
            (!passes).then_some(Why::StoreAway),
            "{setting:?}"
        );
        if let Ok(beyond) = beyond {
            assert_eq!(beyond.charges().map(|due| due.lease).collect::<Vec<_>>(), [None]);
        }
        drop(kept);
    }
}
