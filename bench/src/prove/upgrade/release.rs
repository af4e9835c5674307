//! The releases that can be upgraded from, as `bench/releases.tsv` lists them, and where `make setup-upgrade` put their programs.

use anyhow::{Context as _, ensure};
use std::path::PathBuf;

const LIST: &str = include_str!("../../../releases.tsv");

#[derive(Debug)]
pub struct Release {
    pub version: String,
    /// Whether its programs run on the schema of this release.
    pub runs_on_newer_schema: bool,
    /// How many kinds of objects it can make.
    pub kinds: usize,
    folder: PathBuf,
}

impl Release {
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

pub fn all() -> anyhow::Result<Vec<Release>> {
    let programs = std::env::current_exe()?;
    let target = programs.parent().and_then(|folder| folder.parent()).context("the program has no folder")?;
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| read(line, target.join("upgrade"))).collect()
}

fn read(line: &str, programs: PathBuf) -> anyhow::Result<Release> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [version, _commit, _migration, side_by_side, kinds] = fields[..] else {
        anyhow::bail!("`{line}` is no release")
    };
    let folder = programs.join(version);
    ensure!(folder.join("gateway-proxy").exists(), "{version} is not built: make setup-upgrade");
    Ok(Release {
        version: version.to_owned(),
        runs_on_newer_schema: side_by_side == "yes",
        kinds: kinds.parse()?,
        folder,
    })
}
