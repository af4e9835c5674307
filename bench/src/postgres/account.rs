//! Which user Postgres runs as, and where its files can lie. `initdb` and `postgres` refuse to run as root, so root
//! hands over to `postgres` or `nobody`; that user must be able to walk to its folder, which it cannot below a
//! private home such as `/root`. Then the files lie in `/var/tmp`, and the run folder remembers where.

use anyhow::{Context as _, bail};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user to become, if we are root; otherwise ourselves.
#[derive(Debug, Clone, Copy)]
pub struct Account(Option<Ids>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ids {
    uid: u32,
    gid: u32,
}

impl Account {
    pub fn for_server() -> anyhow::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let ids = ["postgres", "nobody"].iter().find_map(|name| ids_of(name, &users));
        Ok(Self(Some(
            ids.context("Postgres cannot run as root, and there is no user `postgres` or `nobody` to become")?,
        )))
    }

    /// A command that runs as this user. The standard library drops root's other groups together with the uid.
    pub fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder);
        for name in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGOPTIONS", "PGSERVICE"] {
            command.env_remove(name);
        }
        if let Some(ids) = self.0 {
            command.uid(ids.uid).gid(ids.gid);
        }
        command
    }

    /// The folder the server's files lie in: `folder` itself if the server can walk there.
    pub fn home(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let Some(ids) = self.0 else {
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            return Ok(folder);
        };
        if folder.ancestors().skip(1).all(is_open_to_all) {
            self.own(&folder, 0o700)?;
            return Ok(folder);
        }
        let note = folder.join("location");
        let home = match fs::read_to_string(&note) {
            Ok(home) => PathBuf::from(home.trim()),
            Err(_) => {
                let home = PathBuf::from(format!("/var/tmp/portcullis-{}", uuid::Uuid::new_v4().simple()));
                fs::create_dir(&home)?;
                self.own(&home, 0o700)?;
                fs::write(&note, home.as_os_str().as_encoded_bytes())?;
                home
            }
        };
        // Anyone may write in /var/tmp: a folder that is not ours any more is not to be trusted.
        let found = fs::symlink_metadata(&home).with_context(|| format!("{} is gone", home.display()))?;
        if !found.is_dir() || found.uid() != ids.uid || found.mode() & 0o077 != 0 {
            bail!("{} is not the private folder it was; remove {} to start afresh", home.display(), note.display());
        }
        Ok(home)
    }

    /// Writes a file that only the server's user (and root) can read.
    pub fn write_private(&self, path: &Path, content: &[u8]) -> anyhow::Result<()> {
        let saying = || format!("cannot write {}", path.display());
        let mut file = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .with_context(saying)?;
        file.write_all(content).with_context(saying)?;
        self.own(path, 0o600)
    }

    /// Hands a whole tree to the server's user.
    pub fn own_tree(&self, root: &Path) -> anyhow::Result<()> {
        let Some(ids) = self.0 else { return Ok(()) };
        let mut pending = vec![root.to_owned()];
        while let Some(path) = pending.pop() {
            if fs::symlink_metadata(&path)?.is_dir() {
                pending.extend(
                    fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?,
                );
            }
            std::os::unix::fs::lchown(&path, Some(ids.uid), Some(ids.gid))?;
        }
        Ok(())
    }

    fn own(&self, path: &Path, mode: u32) -> anyhow::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        if let Some(ids) = self.0 {
            chown(path, Some(ids.uid), Some(ids.gid))
                .with_context(|| format!("cannot hand over {}", path.display()))?;
        }
        Ok(())
    }
}

fn is_open_to_all(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.mode() & 0o001 != 0)
}

fn ids_of(name: &str, users: &str) -> Option<Ids> {
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some(Ids { uid: fields.get(2)?.parse().ok()?, gid: fields.get(3)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\npostgres-old:x:7:8::/:\npostgres:x:101:104:,,,:/var:/bin/sh\nbroken\n";
        assert_eq!(ids_of("postgres", users), Some(Ids { uid: 101, gid: 104 }));
        assert_eq!(ids_of("nobody", users), None);
        assert_eq!(ids_of("broken", users), None);
    }
}
