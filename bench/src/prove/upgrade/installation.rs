//! One database and the programs of any release on it.

use super::objects::{Callers, Names};
use super::release::Release;
use crate::mock::{Mock, Options};
use crate::ports::Reservation;
use crate::postgres::{self, Purpose, Server, template};
use crate::process::Signal;
use crate::prove::client::Caller;
use crate::prove::stack::{Program, application, environment, executable};
use anyhow::{Context as _, ensure};
use chrono::NaiveDate;
use shared::bootstrap;
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::secrets::seal::Keyring;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;
use tokio_postgres::Client;
use uuid::Uuid;

const DATABASE: &str = "gateway";
const PREFIX: &str = "pk_";
/// Known beforehand, so that every release has the same.
const ADMIN_KEY: &str = "pk_upgrade_0123456789abcdefghijklmnopqrstuvwxyz";
const STOP_WITHIN: Duration = Duration::from_secs(60);

pub struct Installation {
    server: Server,
    mock: Mock,
    place: TempDir,
}

pub enum Programs<'r> {
    Of(&'r Release),
    Current,
}

/// A proxy and an admin.
pub struct Running {
    proxy: Program,
    admin: Program,
    ports: [Reservation; 3],
}

/// Who calls and administers.
pub struct Tenant {
    pub organisation: Uuid,
    pub workspace: Uuid,
    owner: Uuid,
    key: String,
    provider: String,
    mcp: String,
}

impl Installation {
    pub async fn start() -> anyhow::Result<Self> {
        let place = tempfile::Builder::new().prefix("portcullis-upgrade-").tempdir()?;
        fs::set_permissions(place.path(), Permissions::from_mode(0o711))?;
        let options = postgres::Options::new(place.path().join("postgres"), Purpose::Run);
        fs::write(place.path().join("keyring"), Keyring::generate("upgrade")?)?;
        let server = tokio::task::spawn_blocking(move || Server::start(&options)).await??;
        server.create_database(DATABASE).await?;
        Ok(Self { server, mock: Mock::try_start(Options::default())?, place })
    }

    /// Starts the programs in a folder of their own, by this number.
    pub async fn run(&self, programs: Programs<'_>, number: u32) -> anyhow::Result<Running> {
        let folder = self.place.path().join(number.to_string());
        fs::create_dir_all(&folder)?;
        let ports = [Reservation::any()?, Reservation::any()?, Reservation::any()?];
        let mut settings = environment(&self.server.url(DATABASE), &ports);
        settings.push(("BOOTSTRAP_ADMIN_KEY", ADMIN_KEY.to_owned()));
        // What is sealed or stored by one program is there for all that follow.
        let shared = |name: &str| self.place.path().join(name).display().to_string();
        settings.push(("GATEWAY_MASTER_KEY_FILE", shared("keyring")));
        settings.push(("LOG_STORE_URL", format!("file://{}", shared("logs"))));
        let path = |name: &str| -> anyhow::Result<PathBuf> {
            match programs {
                Programs::Of(release) => Ok(release.program(name)),
                Programs::Current => executable(name),
            }
        };
        let mut admin = Program::start_at(&path("gateway-admin")?, &[], &settings, &folder)?;
        admin.until_ready(&ports[1], "/readyz").await?;
        let mut proxy = Program::start_at(&path("gateway-proxy")?, &[], &settings, &folder)?;
        proxy.until_ready(&ports[2], "/readyz").await?;
        proxy.until_ready(&ports[0], "/").await?;
        Ok(Running { proxy, admin, ports })
    }

    /// The first organisation, with a key that the running proxy knows.
    pub async fn tenant(&self, running: &Running) -> anyhow::Result<Tenant> {
        let client = self.database().await?;
        let workspace = bootstrap::first_workspace(&client).await?.context("there is no workspace")?;
        let row = client.query_one("SELECT organisation_id FROM workspaces WHERE id = $1", &[&workspace]).await?;
        let all = scopes::all_for(KeyKind::WorkspaceService);
        let key = bootstrap::create_workspace_key(&client, workspace, "Calls", &all, PREFIX).await?.key;
        let organisation: Uuid = row.try_get(0)?;
        let owner = "SELECT id FROM users WHERE organisation_id = $1 ORDER BY created_at LIMIT 1";
        let owner = client.query_one(owner, &[&organisation]).await?.try_get(0)?;
        let mcp = format!("{}/mcp/json", self.mock.origin());
        let tenant = Tenant { organisation, workspace, owner, key, provider: self.mock.url(), mcp };
        let caller = tenant.caller_at(running)?;
        while caller.status(caller.chat(&serde_json::json!({}), false)).await? != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(tenant)
    }

    pub async fn database(&self) -> anyhow::Result<Client> {
        template::connect(&self.server.url("postgres"), DATABASE).await
    }

    /// Brings the schema to that of this release.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        ensure!(self.admin_command(&["migrate"]).await? == Some(0), "the migration failed");
        Ok(())
    }

    /// How the command ended that compares figures with logs.
    pub async fn verify_figures(&self, from: NaiveDate) -> anyhow::Result<Option<i32>> {
        self.admin_command(&["analytics", "verify", "--from", &from.to_string()]).await
    }

    async fn admin_command(&self, arguments: &[&str]) -> anyhow::Result<Option<i32>> {
        let mut command = Command::new(executable("gateway-admin")?);
        command.args(arguments).env_clear().env("DATABASE_URL", self.server.url(DATABASE));
        command.current_dir(self.place.path()).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        Ok(command.status().await?.code())
    }

    pub fn remove(self) -> anyhow::Result<()> {
        drop(self.mock);
        self.server.remove()
    }
}

impl Running {
    /// Lets both end their work.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        for program in [&mut self.proxy, &mut self.admin] {
            program.signal(Signal::TERM)?;
            program.ended_within(STOP_WITHIN).await?.with_context(|| program.last_words())?;
        }
        Ok(())
    }
}

impl Tenant {
    pub fn caller_at(&self, running: &Running) -> anyhow::Result<Caller> {
        application(running.ports[0].port(), &self.key, &self.provider)
    }

    pub fn administrator_at(&self, running: &Running) -> anyhow::Result<Caller> {
        Caller::at(running.ports[1].port()).with("x-gateway-api-key", ADMIN_KEY)
    }

    /// Those who make objects and read them, by these programs.
    pub fn callers_at(&self, running: &Running) -> anyhow::Result<Callers> {
        let application = Caller::at(running.ports[0].port()).with("x-gateway-api-key", &self.key)?;
        Ok(Callers { administrator: self.administrator_at(running)?, application })
    }

    /// An application with a key that was made before the upgrade, which calls by what this header names.
    pub fn caller_with(&self, running: &Running, key: &str, header: (&'static str, &str)) -> anyhow::Result<Caller> {
        Caller::at(running.ports[0].port()).with("x-gateway-api-key", key)?.with(header.0, header.1)
    }

    /// What steps that make objects may refer to.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        names.set("organisation", self.organisation.to_string());
        names.set("workspace", self.workspace.to_string());
        names.set("owner", self.owner.to_string());
        names.set("provider", self.provider.as_str());
        names.set("mcp", self.mcp.as_str());
        names
    }
}
