//! Batches in trouble and under weight: proxies killed again and again and Postgres away for a minute, one that is cancelled in the
//! middle, an input as large as may be, and live traffic beside it all.

mod cancelled;
mod client;
mod crew;
mod killed;
mod large;
mod live;

use super::report::Report;
use shared::secrets::seal::Keyring;
use std::time::Duration;
use tempfile::TempDir;

pub async fn prove(rows: u32, kills: u32, away: Duration, bytes: u64, report: &mut Report) -> anyhow::Result<()> {
    killed::prove(rows, kills, away, report).await?;
    cancelled::prove(report).await?;
    large::prove(bytes, report).await?;
    live::prove(report).await
}

/// A store that all proxies of a stack share, and a key to seal with.
struct SharedSettings {
    store: TempDir,
    master_key: String,
}

impl SharedSettings {
    fn new() -> anyhow::Result<Self> {
        let master_key = Keyring::generate("proof")?.trim().to_owned();
        Ok(Self { store: tempfile::Builder::new().prefix("portcullis-files-").tempdir()?, master_key })
    }

    fn store_url(&self) -> String {
        format!("file://{}", self.store.path().display())
    }
}
