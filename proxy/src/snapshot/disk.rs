//! The copy on disk, by which a proxy starts while Postgres is away: one header line, one line per row, one end line.
//!
//! How old a copy is counts from the last time Postgres vouched for exactly these rows, not from the file's date: a
//! copy that is too old, or from the future, could revive a revoked key and is not used. Confirmations between two
//! writes go to a small file beside it, which names the copy it belongs to. It holds key hashes and no secrets.

use super::collection::Frozen;
use super::{Confirmed, FeedProgress, Snapshot};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// Raised whenever the meaning of a line changes.
const VERSION: u32 = 2;

/// Clocks of one machine differ by less; beyond it, a date from the future says that some clock was wrong.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(60);

/// The rows of one moment, for the disk copy. Taking it costs the number of shards, not of rows.
pub struct SnapshotView {
    pub progress: FeedProgress,
    pub tables: Vec<Box<dyn Frozen>>,
}

pub struct Folder(PathBuf);

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    copy: Uuid,
    /// All tables of the copy. A table that is missing would look empty, and empty policies allow everything.
    tables: Vec<String>,
    cursor: u64,
    confirmed_at: DateTime<Utc>,
}

#[derive(Serialize, Deserialize)]
struct Confirmation {
    copy: Uuid,
    at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum UnusableCopy {
    #[error("there is none")]
    Missing,
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it was written by another version")]
    Foreign,
    #[error("Postgres last confirmed it {} s ago, and at most {} s are allowed", age.as_secs(), most.as_secs())]
    TooOld { age: Duration, most: Duration },
    #[error("it says that it was confirmed in the future; the clock has been wrong")]
    FromTheFuture,
}

/// The age of what was confirmed then, if that is young enough to be trusted.
pub fn trusted_age(confirmed_at: DateTime<Utc>, now: DateTime<Utc>, most: Duration) -> Result<Duration, UnusableCopy> {
    if confirmed_at > now + CLOCK_TOLERANCE {
        return Err(UnusableCopy::FromTheFuture);
    }
    let age = (now - confirmed_at).to_std().unwrap_or_default();
    if age > most { Err(UnusableCopy::TooOld { age, most }) } else { Ok(age) }
}

impl Folder {
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Fills the snapshot from the copy, wholly or not at all. Returns the age of what was loaded.
    pub fn load(&self, snapshot: &Snapshot, now: DateTime<Utc>, most: Duration) -> Result<Duration, UnusableCopy> {
        let mut lines = match File::open(self.copy_path()) {
            Ok(file) => BufReader::with_capacity(1 << 16, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(UnusableCopy::Missing),
            Err(error) => return Err(error.into()),
        };
        let mut line = String::new();
        let header = read_header(&mut lines, &mut line)?;
        let followed = snapshot.collections();
        if header.version != VERSION || !followed.iter().map(|table| table.table()).eq(header.tables.iter()) {
            return Err(UnusableCopy::Foreign);
        }
        let confirmed_at =
            self.confirmation_of(header.copy).map_or(header.confirmed_at, |at| at.max(header.confirmed_at));
        let age = trusted_age(confirmed_at, now, most)?;

        let mut world: Vec<_> = followed.iter().map(|table| table.incoming()).collect();
        let mut rows = 0_usize;
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Err(UnusableCopy::Damaged("it ends too early".into()));
            }
            let (table, rest) = line.trim_end().split_once(' ').ok_or_else(|| damaged_at(rows))?;
            if table == "end" {
                break if rest != rows.to_string() { Err(damaged_at(rows)) } else { Ok(()) };
            }
            let place =
                followed.iter().position(|followed| followed.table() == table).ok_or_else(|| damaged_at(rows))?;
            world[place].line(rest).map_err(|_| damaged_at(rows))?;
            rows += 1;
        }?;
        snapshot.restore(world, header.cursor, Confirmed::aged(confirmed_at, age));
        Ok(age)
    }

    /// Writes a whole new copy and returns its name; None when another process is writing one at this moment.
    pub fn save(&self, view: &SnapshotView, confirmed_at: DateTime<Utc>) -> io::Result<Option<Uuid>> {
        let Some(_lock) = self.lock()? else { return Ok(None) };
        let header = Header {
            version: VERSION,
            copy: Uuid::new_v4(),
            tables: view.tables.iter().map(|table| table.table().to_owned()).collect(),
            cursor: view.progress.cursor,
            confirmed_at,
        };
        self.replace(&self.copy_path(), |out| {
            serde_json::to_writer(&mut *out, &header)?;
            out.write_all(b"\n")?;
            let mut rows = 0;
            for table in &view.tables {
                rows += table.write(out)?;
            }
            writeln!(out, "end {rows}")
        })?;
        Ok(Some(header.copy))
    }

    /// Notes that Postgres still vouches for this copy; false when the file is another one, or gone, and must be
    /// written anew: during an upgrade two processes share the folder.
    pub fn confirm(&self, copy: Uuid, at: DateTime<Utc>) -> io::Result<bool> {
        let Some(_lock) = self.lock()? else { return Ok(true) };
        let header = File::open(self.copy_path())
            .ok()
            .and_then(|f| read_header(&mut BufReader::new(f), &mut String::new()).ok());
        if header.is_none_or(|header| header.copy != copy) {
            return Ok(false);
        }
        self.replace(&self.confirmation_path(), |out| Ok(serde_json::to_writer(out, &Confirmation { copy, at })?))?;
        Ok(true)
    }

    fn confirmation_of(&self, copy: Uuid) -> Option<DateTime<Utc>> {
        let text = std::fs::read(self.confirmation_path()).ok()?;
        let confirmation: Confirmation = serde_json::from_slice(&text).ok()?;
        (confirmation.copy == copy).then_some(confirmation.at)
    }

    /// A crash leaves either the old file or the new one, never a part of either.
    fn replace(&self, path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let draft = path.with_extension("draft");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&draft, path)?;
        File::open(&self.0)?.sync_all()
    }

    /// Held while writing, since all writers share the names of the drafts.
    fn lock(&self) -> io::Result<Option<File>> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.0.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn copy_path(&self) -> PathBuf {
        self.0.join("rows.jsonl")
    }

    fn confirmation_path(&self) -> PathBuf {
        self.0.join("confirmed.json")
    }
}

fn read_header(lines: &mut BufReader<File>, line: &mut String) -> Result<Header, UnusableCopy> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    lines.read_line(line)?;
    match serde_json::from_str(line) {
        Ok(header) => Ok(header),
        Err(_) if serde_json::from_str::<Versioned>(line).is_ok_and(|v| v.version != VERSION) => {
            Err(UnusableCopy::Foreign)
        }
        Err(error) => Err(UnusableCopy::Damaged(format!("its first line: {error}"))),
    }
}

/// Says where, and not what: the line names a customer's key.
fn damaged_at(rows: usize) -> UnusableCopy {
    UnusableCopy::Damaged(format!("line {}", rows + 2))
}

#[cfg(test)]
mod tests;
