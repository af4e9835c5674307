//! Starts every long-lived background task, restarts one that panics, and measures all of them from outside.
//!
//! A task cannot report its own death or its own hang, so nothing here depends on what a task says: the supervisor
//! wraps the task's future, notes when it is polled, and catches its panics. Readiness, metrics and alerts read the
//! reports. A source scan (`tests/dev/tasks.rs`) keeps long-lived tasks from being spawned anywhere else.

mod backoff;
mod state;

pub use state::{TaskReport, TaskStatus};

use backoff::restart_delay;
use futures::FutureExt as _;
use parking_lot::Mutex;
use state::{TaskState, WatchedTask};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// In debug builds, every task panics once after so many milliseconds. The tests of the programs use it.
const PANIC_ONCE: &str = "TASKS_PANIC_ONCE_AFTER_MS";

/// The facts of a task that do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// A label of metrics, so it is one of a closed set.
    pub name: &'static str,
    /// Calls are lost or judged wrongly without it: the process is not ready while it is dead.
    pub is_vital: bool,
    /// The longest that a healthy task goes without being polled. None where it waits for events alone.
    pub max_silence: Option<Duration>,
    /// It may return, because its settings give it nothing to do or because its work is done.
    pub may_end: bool,
}

impl Task {
    /// A task whose loop takes a turn at least this often, however slow what it waits for is.
    pub const fn periodic(name: &'static str, max_silence: Duration) -> Self {
        Self { name, is_vital: false, max_silence: Some(max_silence), may_end: false }
    }

    /// A task that sleeps until there is something to do.
    pub const fn waiting(name: &'static str) -> Self {
        Self { name, is_vital: false, max_silence: None, may_end: false }
    }

    #[must_use]
    pub const fn vital(mut self) -> Self {
        self.is_vital = true;
        self
    }

    #[must_use]
    pub const fn may_end(mut self) -> Self {
        self.may_end = true;
        self
    }
}

/// One for each process.
#[derive(Debug, Default)]
pub struct Supervisor {
    tasks: Mutex<Vec<Arc<TaskState>>>,
    is_leaving: AtomicBool,
    panic_once_after: Option<Duration>,
}

impl Supervisor {
    pub fn new() -> Arc<Self> {
        let millis = cfg!(debug_assertions).then(|| std::env::var(PANIC_ONCE).ok()).flatten();
        let panic_once_after = millis.and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
        Arc::new(Self { panic_once_after, ..Self::default() })
    }

    /// A supervisor whose tasks each panic once, so long after their start.
    pub fn with_panics_after(delay: Duration) -> Arc<Self> {
        Arc::new(Self { panic_once_after: Some(delay), ..Self::default() })
    }

    /// Runs a task until it returns, and starts it anew whenever it panics. `start` makes the task's future; what must
    /// survive a panic is held outside that future.
    pub async fn keep<F>(self: Arc<Self>, task: Task, mut start: impl FnMut() -> F)
    where
        F: Future<Output = ()>,
    {
        let state = self.register(task);
        let dropped = MarkEnded(state.clone());
        let mut panic_after = self.panic_once_after;
        loop {
            state.started(Instant::now());
            let run = async {
                // Also what makes the future may panic.
                let future = start();
                WatchedTask::new(future, &state, panic_after).await;
            };
            if AssertUnwindSafe(run).catch_unwind().await.is_ok() {
                drop(dropped);
                return;
            }
            panic_after = None;
            let delay = restart_delay(state.panicked(Instant::now()));
            let delay_ms = delay.as_millis() as u64;
            tracing::error!(
                task = task.name,
                delay_ms,
                "a background task panicked and is restarted; the panic's own message stands above"
            );
            tokio::time::sleep(delay).await;
        }
    }

    /// The same as a task of this runtime.
    pub fn spawn_on<F>(
        self: &Arc<Self>,
        runtime: &Handle,
        task: Task,
        start: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        runtime.spawn(self.clone().keep(task, start))
    }

    /// The same as a thread of its own, for work that blocks.
    pub fn spawn_thread(
        self: &Arc<Self>,
        task: Task,
        mut work: impl FnMut(&Pulse) + Send + 'static,
    ) -> std::io::Result<std::thread::JoinHandle<()>> {
        let state = self.register(task);
        let mut panics = self.panic_once_after.is_some();
        std::thread::Builder::new().name(task.name.into()).spawn(move || {
            let _ended = MarkEnded(state.clone());
            let pulse = Pulse(state.clone());
            loop {
                state.started(Instant::now());
                let run = || {
                    assert!(!std::mem::take(&mut panics), "a test asks every task to panic once");
                    work(&pulse);
                };
                if std::panic::catch_unwind(AssertUnwindSafe(run)).is_ok() {
                    return;
                }
                tracing::error!(task = task.name, "a background thread panicked and goes on");
                std::thread::sleep(restart_delay(state.panicked(Instant::now())));
            }
        })
    }

    /// From now on tasks may end.
    pub fn leave(&self) {
        self.is_leaving.store(true, Relaxed);
    }

    /// All tasks that were started, in the order of their start.
    pub fn reports(&self) -> Vec<TaskReport> {
        let (now, is_leaving) = (Instant::now(), self.is_leaving.load(Relaxed));
        self.tasks.lock().iter().map(|state| state.report(now, is_leaving)).collect()
    }

    /// The tasks that do not do their work, each as one line for people.
    pub fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        for report in self.reports() {
            let Some(line) = report.problem() else { continue };
            problems.is_ready &= !(report.task.is_vital && report.status.is_dead());
            problems.lines.push(line);
        }
        problems
    }

    /// A task that is started a second time, for another runtime or after its end, has a new state.
    fn register(&self, task: Task) -> Arc<TaskState> {
        let state = Arc::new(TaskState::new(task, Instant::now()));
        let mut tasks = self.tasks.lock();
        tasks.retain(|known| known.task.name != task.name);
        tasks.push(state.clone());
        state
    }
}

/// By which a thread shows that it goes on: nobody polls it.
#[derive(Debug)]
pub struct Pulse(Arc<TaskState>);

impl Pulse {
    pub fn beat(&self) {
        self.0.note_poll(false);
    }
}

/// What readiness has to know of the tasks.
#[derive(Debug, PartialEq, Eq)]
pub struct Problems {
    /// False when a task is dead without which calls are lost or judged wrongly.
    pub is_ready: bool,
    pub lines: Vec<String>,
}

impl Default for Problems {
    fn default() -> Self {
        Self { is_ready: true, lines: Vec::new() }
    }
}

/// A task whose future is dropped has ended, too: nobody polls it any more.
struct MarkEnded(Arc<TaskState>);

impl Drop for MarkEnded {
    fn drop(&mut self) {
        self.0.ended(Instant::now());
    }
}

#[cfg(test)]
mod tests;
