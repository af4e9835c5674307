//! Runs the snapshot's follower in the background, as a Pingora service. The listeners wait for its first load, but not
//! for ever: a proxy without data answers 503 rather than refusing connections. In a hand-over somebody else answers
//! meanwhile, and there is time.

use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::ServiceReadyNotifier;
use pingora_core::services::background::BackgroundService;
use proxy::runtime::background::run_on;
use proxy::runtime::settings::Settings;
use proxy::snapshot::{Follower, Snapshot};
use shared::supervisor::Supervisor;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

const MAX_WAIT: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub struct Follow {
    snapshot: Arc<Snapshot>,
    database: shared::settings::Database,
    settings: shared::settings::Snapshot,
    background: Handle,
    longest_wait: Duration,
    supervisor: Arc<Supervisor>,
}

impl Follow {
    pub fn new(settings: &Settings, snapshot: Arc<Snapshot>, background: Handle, supervisor: Arc<Supervisor>) -> Self {
        let longest_wait = match settings.upgrade {
            true => Duration::from_secs(settings.process.upgrade_timeout_s),
            false => MAX_WAIT,
        };
        let (database, settings) = (settings.database.clone(), settings.snapshot.clone());
        Self { snapshot, database, settings, background, longest_wait, supervisor }
    }

    async fn first_load(&self) {
        while !self.snapshot.is_loaded() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

#[async_trait]
impl BackgroundService for Follow {
    async fn start_with_ready_notifier(&self, shutdown: ShutdownWatch, ready: ServiceReadyNotifier) {
        let (snapshot, database, settings) = (self.snapshot.clone(), self.database.clone(), self.settings.clone());
        let follow = move || Follower::new(snapshot.clone(), database.clone(), settings.clone()).run(shutdown.clone());
        let follow = self.supervisor.clone().keep(crate::gateway::tasks::SNAPSHOT, follow);
        let announce = async {
            let _ = tokio::time::timeout(self.longest_wait, self.first_load()).await;
            ready.notify_ready();
        };
        tokio::join!(run_on(&self.background, follow), announce);
    }
}
