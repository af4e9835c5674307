//! Postgres for tests. nextest runs each test in a process of its own, so the server belongs to the whole run:
//! `gateway-dev test` starts one, names it in `TEST_DATABASE_URL` and stops it afterwards. Without that variable (a
//! developer typed `cargo nextest run`) the first test starts one that stays, and later runs join it.

use super::{Options, Purpose, Server, template};
use anyhow::Context as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Where the test server is named: the URL of its `postgres` database.
pub const URL: &str = "TEST_DATABASE_URL";

/// Free memory without which a server for tests lies on disk. A run of the whole suite takes a quarter of it.
const MIN_FREE_MEMORY: u64 = 4 << 30;

/// A server for one run of the tests, stopped when dropped.
#[derive(Debug)]
pub struct Private {
    server: Server,
    is_in_memory: bool,
    _slot: File,
}

impl Private {
    /// Takes the first folder that no other run uses. Each test makes and drops a database of a thousand files: in memory
    /// that costs a fraction of what a disk's file system takes for it.
    pub fn start() -> anyhow::Result<Self> {
        let (folder, is_in_memory) = match memory_folder() {
            Some(folder) => (folder, true),
            None => (folder()?, false),
        };
        for number in 0..64 {
            let slot = File::create(folder.join(format!("run-{number}.lock")))?;
            if slot.try_lock().is_ok() {
                let server = Server::start(&Options::new(folder.join(format!("run-{number}")), Purpose::Test))?;
                return Ok(Self { server, is_in_memory, _slot: slot });
            }
        }
        anyhow::bail!("64 test runs at once in {}", folder.display())
    }

    pub fn url(&self) -> String {
        self.server.url("postgres")
    }

    /// On disk the files stay, so that the next run needs no initdb; memory is given back.
    pub fn stop(self) -> anyhow::Result<()> {
        if self.is_in_memory { self.server.remove() } else { self.server.stop() }
    }
}

/// The test server's URL, starting one to stay if none is named. Call it off the async threads: it may block.
pub fn url() -> anyhow::Result<String> {
    if let Ok(url) = std::env::var(URL)
        && !url.is_empty()
    {
        return Ok(url);
    }
    let (server, _) = Server::start_or_join(&Options::new(folder()?.join("shared"), Purpose::Test))?;
    Ok(server.detach().url("postgres"))
}

/// Makes the templates that test databases are cloned from, and clears away what killed runs left.
pub async fn prepare(url: &str) -> anyhow::Result<()> {
    template::clear_leftovers(url).await?;
    template::ensure(url, template::Content::Migrated).await?;
    template::ensure(url, template::Content::LogDays).await?;
    Ok(())
}

/// A folder of this user's in memory, where there is one with room.
fn memory_folder() -> Option<PathBuf> {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).ok().map(|found| found.f_bavail * found.f_frsize)?;
    let folder = memory.join(format!("portcullis-tests-{}", rustix::process::getuid().as_raw()));
    (free >= MIN_FREE_MEMORY && fs::create_dir_all(&folder).is_ok()).then_some(folder)
}

/// `target/test-postgres`, wherever `target` is.
fn folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let folder = target_of(&program).unwrap_or_else(std::env::temp_dir).join("test-postgres");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Cargo marks its target folder as a cache.
fn target_of(program: &Path) -> Option<PathBuf> {
    program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_owned)
}
