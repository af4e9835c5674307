//! A Redis of a proof's own, that keeps what it counts when it is stopped and started again.

use crate::ports::Reservation;
use crate::process::{self, Signal};
use anyhow::{Context as _, ensure};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Redis {
    child: Child,
    port: Reservation,
    folder: TempDir,
}

impl Redis {
    pub async fn start() -> anyhow::Result<Self> {
        let (folder, port) = (TempDir::new()?, Reservation::any()?);
        let child = run(&port, &folder)?;
        let redis = Self { child, port, folder };
        redis.until_it_listens()?;
        Ok(redis)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port.port())
    }

    pub async fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.child.id() {
            process::signal(pid, Signal::TERM)?;
        }
        tokio::time::timeout(PATIENCE, self.child.wait()).await.context("Redis does not stop")??;
        Ok(())
    }

    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.child = run(&self.port, &self.folder)?;
        self.until_it_listens()
    }

    fn until_it_listens(&self) -> anyhow::Result<()> {
        let listens = || TcpStream::connect(("127.0.0.1", self.port.port())).is_ok();
        ensure!(process::wait_until(PATIENCE, listens), "Redis does not listen");
        Ok(())
    }
}

fn run(port: &Reservation, folder: &TempDir) -> anyhow::Result<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
    command.arg("--dir").arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    command.spawn().context("redis-server is not installed (make setup-test)")
}
