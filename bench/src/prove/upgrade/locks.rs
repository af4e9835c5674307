//! How long sessions wait for a table while a migration runs, as Postgres itself notes it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const LOOK_EVERY: Duration = Duration::from_millis(20);
const WAITS: &str = "SELECT l.relation::regclass::text, extract(epoch FROM clock_timestamp() - l.waitstart)::float8
                     FROM pg_locks l WHERE NOT l.granted AND l.relation IS NOT NULL AND l.waitstart IS NOT NULL
                     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

pub struct LockWatch {
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<LockWaits>>,
}

/// The longest wait seen for each table.
#[derive(Debug, Default)]
pub struct LockWaits {
    by_table: BTreeMap<String, Duration>,
}

impl LockWatch {
    pub fn start(client: Client) -> Self {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut waits = LockWaits::default();
            while !*stopped.borrow() {
                for row in client.query(WAITS, &[]).await? {
                    let waited = Duration::from_secs_f64(row.try_get::<_, f64>(1)?.max(0.0));
                    let longest = waits.by_table.entry(row.try_get(0)?).or_default();
                    *longest = waited.max(*longest);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(waits)
        });
        Self { stop, task }
    }

    pub async fn stop(self) -> anyhow::Result<LockWaits> {
        self.stop.send_replace(true);
        self.task.await?
    }
}

impl LockWaits {
    pub fn longest(&self) -> Duration {
        self.by_table.values().max().copied().unwrap_or_default()
    }
}

impl fmt::Display for LockWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_table.is_empty() {
            return write!(f, "none was seen");
        }
        let parts: Vec<String> =
            self.by_table.iter().map(|(table, wait)| format!("{table} {} ms", wait.as_millis())).collect();
        write!(f, "{}", parts.join(", "))
    }
}
