//! Tasks come back from panics, and what is wrong with one is seen from outside it.

use super::*;
use std::sync::atomic::AtomicU32;
use tokio::sync::mpsc;

const PERIOD: Duration = Duration::from_secs(1);
const TICKER: Task = Task::periodic("ticker", Duration::from_secs(10));

fn status(supervisor: &Supervisor) -> TaskStatus {
    supervisor.reports()[0].status
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_restarted_with_what_it_held_outside() {
    let supervisor = Supervisor::with_panics_after(PERIOD);
    let (ask, asked) = mpsc::unbounded_channel::<u32>();
    let (answer, mut answered) = mpsc::unbounded_channel();
    let asked = Arc::new(tokio::sync::Mutex::new(asked));
    let starts = Arc::new(AtomicU32::new(0));
    let counted = starts.clone();
    supervisor.spawn_on(&Handle::current(), Task::waiting("echo"), move || {
        counted.fetch_add(1, Relaxed);
        let (asked, answer) = (asked.clone(), answer.clone());
        async move {
            let mut asked = asked.lock().await;
            while let Some(word) = asked.recv().await {
                let _ = answer.send(word);
            }
        }
    });
    ask.send(1).unwrap();
    assert_eq!(answered.recv().await, Some(1));
    tokio::time::sleep(2 * PERIOD).await;
    ask.send(2).unwrap();
    assert_eq!(answered.recv().await, Some(2));
    let report = supervisor.reports()[0];
    assert_eq!((starts.load(Relaxed), report.restarts, report.status), (2, 1, TaskStatus::Running));
    drop(ask);
    tokio::task::yield_now().await;
    tokio::time::sleep(PERIOD).await;
    assert_eq!(status(&supervisor), TaskStatus::Ended);
    supervisor.leave();
    assert_eq!((status(&supervisor), supervisor.problems()), (TaskStatus::Done, Problems::default()));
}

#[tokio::test(start_paused = true)]
async fn only_a_vital_task_that_does_not_recover_costs_readiness() {
    for (task, is_ready) in [(TICKER, true), (TICKER.vital(), false)] {
        let supervisor = Supervisor::new();
        supervisor.spawn_on(&Handle::current(), task, || async {
            tokio::time::sleep(PERIOD).await;
            panic!("always");
        });
        tokio::time::sleep(PERIOD + Duration::from_millis(100)).await;
        let problems = supervisor.problems();
        assert_eq!(
            (problems.is_ready, &problems.lines[..]),
            (true, &["the task `ticker` panicked and is restarted".to_owned()][..])
        );
        tokio::time::sleep(20 * PERIOD).await;
        assert_eq!((status(&supervisor), supervisor.problems().is_ready), (TaskStatus::Failing, is_ready));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_recovers_is_well_again() {
    let supervisor = Supervisor::new();
    let left = Arc::new(AtomicU32::new(3));
    supervisor.spawn_on(&Handle::current(), TICKER.vital(), move || {
        let left = left.clone();
        async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                assert!(left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err(), "some more");
            }
        }
    });
    tokio::time::sleep(10 * PERIOD).await;
    assert!(!supervisor.problems().is_ready);
    tokio::time::sleep(70 * PERIOD).await;
    assert_eq!((status(&supervisor), supervisor.problems()), (TaskStatus::Running, Problems::default()));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_hangs_is_seen_and_a_store_that_is_away_does_not_cost_readiness() {
    let supervisor = Supervisor::new();
    supervisor.spawn_on(&Handle::current(), TICKER.vital(), || async {
        tokio::time::sleep(PERIOD).await;
        std::future::pending::<()>().await;
    });
    tokio::time::sleep(5 * PERIOD).await;
    assert_eq!(supervisor.problems(), Problems::default());
    tokio::time::sleep(10 * PERIOD).await;
    let report = supervisor.reports()[0];
    assert_eq!((report.status, report.status.is_up(), report.lag.as_secs()), (TaskStatus::Silent, false, 14));
    assert!(supervisor.problems().is_ready);
}

#[test]
fn a_poll_that_does_not_end_is_told_from_a_wait() {
    let state = TaskState::new(Task::waiting("x").vital(), Instant::now());
    let report = |seconds| state.report(Instant::now() + Duration::from_secs(seconds), false).status;
    assert_eq!(report(3600), TaskStatus::Running, "it waits for events");
    state.note_poll(true);
    assert_eq!((report(30), report(61)), (TaskStatus::Running, TaskStatus::Stuck));
}

#[test]
fn a_thread_goes_on_after_a_panic() {
    let supervisor = Supervisor::with_panics_after(Duration::ZERO);
    let (send, receive) = std::sync::mpsc::channel();
    let thread = supervisor.spawn_thread(Task::waiting("thread").may_end(), move |_| send.send(()).unwrap()).unwrap();
    receive.recv().unwrap();
    thread.join().unwrap();
    let report = supervisor.reports()[0];
    assert_eq!((report.status, report.restarts), (TaskStatus::Done, 1));
}

#[test]
fn restarts_come_soon_at_first_and_then_seldom() {
    let delays = [1, 2, 3, 8, 9, u32::MAX].map(|panics| restart_delay(panics).as_millis());
    assert_eq!(delays, [200, 400, 800, 25_600, 30_000, 30_000]);
}
