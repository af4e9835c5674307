//! A supervised task as one of Pingora's background services, which alone would drop a task that panics without a word.

use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::{BackgroundService, GenBackgroundService, background_service};
use proxy::runtime::background::run_on;
use shared::supervisor::{Supervisor, Task};
use std::sync::Arc;
use tokio::runtime::Handle;

pub struct SupervisedService<S> {
    supervisor: Arc<Supervisor>,
    task: Task,
    /// Where it runs; none for the runtime that Pingora makes for it.
    on: Option<Handle>,
    start: Arc<S>,
}

/// A service whose task is restarted when it panics. `start` makes the task anew each time.
pub fn supervised<S, F>(
    supervisor: &Arc<Supervisor>,
    task: Task,
    start: S,
) -> GenBackgroundService<SupervisedService<S>>
where
    S: Fn(ShutdownWatch) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let service = SupervisedService { supervisor: supervisor.clone(), task, on: None, start: Arc::new(start) };
    background_service(task.name, service)
}

/// The same on the runtime of work in the background.
pub fn supervised_on<S, F>(
    handle: Handle,
    supervisor: &Arc<Supervisor>,
    task: Task,
    start: S,
) -> GenBackgroundService<SupervisedService<S>>
where
    S: Fn(ShutdownWatch) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let service = SupervisedService { supervisor: supervisor.clone(), task, on: Some(handle), start: Arc::new(start) };
    background_service(task.name, service)
}

#[async_trait::async_trait]
impl<S, F> BackgroundService for SupervisedService<S>
where
    S: Fn(ShutdownWatch) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    async fn start(&self, shutdown: ShutdownWatch) {
        let start = self.start.clone();
        let supervised = self.supervisor.clone().keep(self.task, move || start(shutdown.clone()));
        match &self.on {
            Some(handle) => run_on(handle, supervised).await,
            None => supervised.await,
        }
    }
}
