//! Proxies of equal standing beside one another: the settings of their stack, and ports, journal and snapshot of their own.

use super::{Program, Stack};
use crate::ports::Reservation;
use crate::process::Signal;
use crate::prove::client::Caller;
use anyhow::ensure;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Replica {
    pub program: Program,
    environment: Vec<(&'static str, String)>,
    /// For requests, and for metrics.
    ports: [Reservation; 2],
    folder: PathBuf,
}

impl Stack {
    /// The proxy of the stack leaves; so many take its place.
    pub async fn replicas(&mut self, count: usize) -> anyhow::Result<Vec<Replica>> {
        self.proxy.signal(Signal::TERM)?;
        ensure!(self.proxy.ended_within(PATIENCE).await?.is_some(), "the proxy does not leave");
        let mut replicas = Vec::new();
        for number in 0..count {
            replicas.push(self.replica(&format!("replica-{number}"), &[]).await?);
        }
        Ok(replicas)
    }

    /// One more beside what is there; `settings` replace the stack's.
    pub async fn replica(&self, name: &str, settings: &[(&'static str, &str)]) -> anyhow::Result<Replica> {
        // Folders are given relative to where a program runs, so another place is another journal.
        let folder = self.place.path().join(name);
        fs::create_dir_all(&folder)?;
        let ports = [Reservation::any()?, Reservation::any()?];
        let mut environment = self.environment.clone();
        environment.push(("PROXY_PORT", ports[0].port().to_string()));
        environment.push(("METRICS_PORT", ports[1].port().to_string()));
        environment.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let program = Program::start("gateway-proxy", &[], &environment, &folder)?;
        let mut replica = Replica { program, environment, ports, folder };
        replica.until_ready().await?;
        Ok(replica)
    }

    /// An application with a known key at one of them, whose provider is the mock.
    pub fn caller_at(&self, replica: &Replica) -> anyhow::Result<Caller> {
        self.application(replica.ports[0].port(), &self.key)
    }

    /// The same with another key.
    pub fn caller_with_at(&self, replica: &Replica, key: &str) -> anyhow::Result<Caller> {
        self.application(replica.ports[0].port(), key)
    }

    /// The same without a provider, for what the gateway keeps itself.
    pub fn bare_at(&self, replica: &Replica) -> anyhow::Result<Caller> {
        Caller::at(replica.ports[0].port()).with("x-gateway-api-key", &self.key)
    }
}

impl Replica {
    /// As if the machine had lost power, as far as the process goes.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.program.signal(Signal::KILL)?;
        ensure!(self.program.ended_within(PATIENCE).await?.is_some(), "the proxy does not end");
        Ok(())
    }

    /// In the same place, so that it finds the journal of the one before.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.program = Program::start("gateway-proxy", &[], &self.environment, &self.folder)?;
        self.until_ready().await
    }

    /// Metrics, health and readiness.
    pub fn health(&self) -> Caller {
        Caller::at(self.ports[1].port())
    }

    async fn until_ready(&mut self) -> anyhow::Result<()> {
        self.program.until_ready(&self.ports[1], "/readyz").await?;
        self.program.until_ready(&self.ports[0], "/").await
    }
}
