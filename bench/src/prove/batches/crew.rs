//! Some proxies that share a batch at a pace of their own, and a provider that remembers all it was asked.

use super::SharedSettings;
use super::client::{begin, results, until_over, upload};
use crate::prove::client::Caller;
use crate::prove::report::Report;
use crate::prove::stack::{Replica, Stack};
use futures::stream;
use serde_json::Value;
use std::time::Duration;

/// Requests that the provider remembers: more than any run makes.
const REMEMBERED: usize = 1_000_000;

pub struct Crew {
    pub stack: Stack,
    pub replicas: Vec<Replica>,
    /// One to each of them.
    pub callers: Vec<Caller>,
    /// The store is gone with it.
    _shared: SharedSettings,
}

/// A batch that is over, and the lines of its files.
pub struct EndedBatch {
    pub object: Value,
    pub output: Vec<Value>,
    pub errors: Vec<Value>,
}

impl Crew {
    /// `pace` is in rows a second.
    pub async fn start(proxies: usize, pace: &str) -> anyhow::Result<Self> {
        let shared = SharedSettings::new()?;
        let store = shared.store_url();
        let settings = [
            ("GATEWAY_MASTER_KEY", shared.master_key.as_str()),
            ("LOG_STORE_URL", store.as_str()),
            ("BATCH_ROWS", pace),
            ("BATCH_EVERY_SECONDS", "1"),
            ("JOURNAL_SHIP_MS", "200"),
        ];
        let mut stack = Stack::remembering(&settings, REMEMBERED).await?;
        let replicas = stack.replicas(proxies).await?;
        let callers = replicas.iter().map(|replica| stack.bare_at(replica)).collect::<Result<_, _>>()?;
        Ok(Self { stack, replicas, callers, _shared: shared })
    }

    /// The id of a new batch over these lines.
    pub async fn begin(&self, lines: impl Iterator<Item = String> + Send + Sync + 'static) -> anyhow::Result<String> {
        let file = upload(&self.callers[0], stream::iter(lines)).await?;
        begin(&self.callers[0], &file, &self.stack.mock.url()).await
    }

    pub async fn until_over(&self, batch: &str, longest: Duration) -> anyhow::Result<EndedBatch> {
        let object = until_over(&self.callers, batch, longest).await?;
        let output = results(&self.callers[0], &object["output_file_id"]).await?;
        let errors = results(&self.callers[0], &object["error_file_id"]).await?;
        Ok(EndedBatch { object, output, errors })
    }

    pub fn stop(self, report: &mut Report) -> anyhow::Result<()> {
        drop(self.replicas);
        self.stack.stop(report)
    }
}
