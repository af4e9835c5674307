//! What the supervisor knows of one task: when it was last polled, and how often it panicked.

use super::Task;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// A task that has run for so long after a panic has recovered.
const STEADY: Duration = Duration::from_secs(60);
/// After so many panics without a recovery a task counts as dead, also while it runs between two of them.
const PANICS_OF_DEAD: u32 = 3;
/// No poll takes this long unless the task blocks its thread.
const MAX_POLL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct TaskState {
    pub task: Task,
    facts: Mutex<TaskFacts>,
}

#[derive(Debug)]
struct TaskFacts {
    phase: Phase,
    since: Instant,
    /// When the last poll began, or ended if it has.
    polled_at: Instant,
    is_polled: bool,
    /// In a row.
    panics: u32,
    restarts: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// It panicked and waits for its next start.
    Waiting,
    Ended,
}

/// How a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    Running,
    /// It panicked and was, or will be, restarted.
    Restarting,
    /// It panics again and again.
    Failing,
    /// It waits for longer than it ever should.
    Silent,
    /// It blocks its thread.
    Stuck,
    /// It returned and should not have.
    Ended,
    /// It returned, which it may.
    Done,
}

impl TaskStatus {
    /// It does no work, and nothing outside it (a store that is away) is the reason.
    pub fn is_dead(self) -> bool {
        matches!(self, Self::Failing | Self::Stuck | Self::Ended)
    }

    /// For the gauge that alerts look at.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Running | Self::Done)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskReport {
    pub task: Task,
    pub status: TaskStatus,
    pub restarts: u64,
    /// How long it has done nothing although it should have.
    pub lag: Duration,
}

impl TaskReport {
    /// One line for people, if there is something to say.
    pub(super) fn problem(&self) -> Option<String> {
        let seconds = self.lag.as_secs();
        let what = match self.status {
            TaskStatus::Running | TaskStatus::Done => return None,
            TaskStatus::Restarting => "panicked and is restarted".into(),
            TaskStatus::Failing => format!("panics again and again ({} restarts)", self.restarts),
            TaskStatus::Silent => format!("has waited for {seconds} s"),
            TaskStatus::Stuck => format!("has blocked its thread for {seconds} s"),
            TaskStatus::Ended => "has ended".into(),
        };
        Some(format!("the task `{}` {what}", self.task.name))
    }
}

impl TaskState {
    pub fn new(task: Task, now: Instant) -> Self {
        let phase = Phase::Running;
        let facts = TaskFacts { phase, since: now, polled_at: now, is_polled: false, panics: 0, restarts: 0 };
        Self { task, facts: Mutex::new(facts) }
    }

    pub fn started(&self, now: Instant) {
        self.enter(Phase::Running, now);
    }

    pub fn ended(&self, now: Instant) {
        self.enter(Phase::Ended, now);
    }

    /// Answers how many panics there were in a row.
    pub fn panicked(&self, now: Instant) -> u32 {
        let mut facts = self.facts.lock();
        if facts.phase == Phase::Running && now.saturating_duration_since(facts.since) >= STEADY {
            facts.panics = 0;
        }
        facts.panics = facts.panics.saturating_add(1);
        facts.restarts += 1;
        let panics = facts.panics;
        drop(facts);
        self.enter(Phase::Waiting, now);
        panics
    }

    fn enter(&self, phase: Phase, now: Instant) {
        let mut facts = self.facts.lock();
        (facts.phase, facts.since, facts.polled_at, facts.is_polled) = (phase, now, now, false);
    }

    pub(super) fn note_poll(&self, is_polled: bool) {
        let mut facts = self.facts.lock();
        (facts.polled_at, facts.is_polled) = (Instant::now(), is_polled);
    }

    pub fn report(&self, now: Instant, is_leaving: bool) -> TaskReport {
        let facts = self.facts.lock();
        let (since, polled) =
            (now.saturating_duration_since(facts.since), now.saturating_duration_since(facts.polled_at));
        let is_recovering = facts.panics > 0 && since < STEADY;
        let limit = if facts.is_polled { Some(MAX_POLL) } else { self.task.max_silence };
        let is_late = limit.is_some_and(|limit| polled > limit);
        let status = match facts.phase {
            Phase::Ended if is_leaving || self.task.may_end => TaskStatus::Done,
            Phase::Ended => TaskStatus::Ended,
            Phase::Running if is_late && facts.is_polled => TaskStatus::Stuck,
            Phase::Running if is_late => TaskStatus::Silent,
            Phase::Running if !is_recovering => TaskStatus::Running,
            _ if facts.panics >= PANICS_OF_DEAD => TaskStatus::Failing,
            Phase::Running => TaskStatus::Running,
            Phase::Waiting => TaskStatus::Restarting,
        };
        let lag = match facts.phase {
            Phase::Running if limit.is_some() => polled,
            Phase::Running => Duration::ZERO,
            Phase::Ended if status == TaskStatus::Done => Duration::ZERO,
            Phase::Waiting | Phase::Ended => since,
        };
        TaskReport { task: self.task, status, restarts: facts.restarts, lag }
    }
}

/// The future of a task, which notes each poll of it.
pub struct WatchedTask<'t, F> {
    future: Pin<Box<F>>,
    state: &'t Arc<TaskState>,
    panic_at: Option<BoxFuture<'static, ()>>,
}

impl<'t, F> WatchedTask<'t, F> {
    pub fn new(future: F, state: &'t Arc<TaskState>, panic_after: Option<Duration>) -> Self {
        let panic_at = panic_after.map(|after| -> BoxFuture<'static, ()> { Box::pin(tokio::time::sleep(after)) });
        Self { future: Box::pin(future), state, panic_at }
    }
}

impl<F: Future<Output = ()>> Future for WatchedTask<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let is_time = self.panic_at.as_mut().is_some_and(|at| at.as_mut().poll(context).is_ready());
        assert!(!is_time, "a test asks every task to panic once");
        self.state.note_poll(true);
        let polled = self.future.as_mut().poll(context);
        self.state.note_poll(false);
        polled
    }
}
