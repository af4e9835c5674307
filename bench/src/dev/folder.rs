//! The run folder: one supervisor at a time, private files, and the list of processes to end if a supervisor is
//! killed. The lock is the kernel's, so it dies with its holder and can never be stale.

use crate::process::{self, Signal};
use anyhow::{Context as _, bail};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an orphan may take to leave by itself.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Takes the folder, or says who has it.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        // Postgres may run as another user: it may walk through, but not look around.
        fs::set_permissions(path, Permissions::from_mode(0o711))?;
        let file = path.join("lock");
        let mut lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&file)?;
        if lock.try_lock().is_err() {
            let mut holder = String::new();
            let _ = lock.read_to_string(&mut holder);
            bail!(
                "{} is in use by process {}: stop that one, or set RUN_DIR and other ports for a second copy",
                path.display(),
                holder.trim()
            );
        }
        lock.set_len(0)?;
        write!(lock, "{}", std::process::id())?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file for our eyes only, whole or not at all.
    pub fn write_private(&self, name: &str, content: &str) -> anyhow::Result<()> {
        let half = self.join(&format!("{name}.half"));
        let _ = fs::remove_file(&half);
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&half)?;
        file.write_all(content.as_bytes())?;
        fs::rename(&half, self.join(name)).with_context(|| format!("cannot write {}", self.join(name).display()))
    }

    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.join(name)).ok()
    }

    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.join(name));
    }

    /// Notes a process that must not outlive us.
    pub fn remember(&self, pid: u32) -> anyhow::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.join("pids"))?;
        writeln!(file, "{pid} {}", process::started_at(pid).unwrap_or_default())?;
        Ok(())
    }

    pub fn forget_all(&self) {
        self.remove("pids");
    }

    /// Ends what a killed supervisor left running; returns how many there were.
    pub fn end_orphans(&self) -> anyhow::Result<usize> {
        let noted = self.read("pids").unwrap_or_default();
        let orphans: Vec<u32> = noted.lines().filter_map(still_running).collect();
        for (signal, patience) in [(Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)] {
            let alive = || orphans.iter().filter(|pid| process::is_running(**pid)).collect::<Vec<_>>();
            for pid in alive() {
                process::signal(*pid, signal)?;
            }
            process::wait_until(patience, || alive().is_empty());
        }
        self.forget_all();
        Ok(orphans.len())
    }
}

/// A noted process that is still the same one.
fn still_running(line: &str) -> Option<u32> {
    let (pid, start) = line.split_once(' ')?;
    let pid = pid.parse().ok()?;
    (process::started_at(pid).as_deref() == Some(start) && process::is_running(pid)).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_second_taker_learns_who_holds_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let first = RunFolder::take(place.path()).unwrap();
        let refusal = RunFolder::take(place.path()).unwrap_err().to_string();
        assert!(refusal.contains(&std::process::id().to_string()), "{refusal}");
        drop(first);
        RunFolder::take(place.path()).unwrap();
    }

    #[test]
    fn private_files_are_closed_to_others() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::take(place.path()).unwrap();
        folder.write_private("env", "A=1\n").unwrap();
        folder.write_private("env", "A=2\n").unwrap();
        assert_eq!(folder.read("env").unwrap(), "A=2\n");
        assert_eq!(fs::metadata(folder.join("env")).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn orphans_are_ended_but_a_stranger_with_the_same_number_is_not() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::take(place.path()).unwrap();
        let mut orphan = Command::new("sleep").arg("600").spawn().unwrap();
        let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
        folder.remember(orphan.id()).unwrap();
        let mut noted = folder.read("pids").unwrap();
        noted += &format!("{} 1@another-boot\n4294967295 x\nnonsense\n", stranger.id());
        fs::write(folder.join("pids"), noted).unwrap();
        assert_eq!(folder.end_orphans().unwrap(), 1);
        assert!(orphan.try_wait().unwrap().is_some());
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_eq!(folder.read("pids"), None);
    }
}
