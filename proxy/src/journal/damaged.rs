//! Files of the journal that were set aside: nobody can send them, and they may hold logs of people who have been erased since.
//! So they go when they are old or too many, and one that holds anything of an organisation goes when that organisation
//! erases logs from before. Which person is in them is not asked: what cannot be read cannot be read for names either.

use super::segment::DAMAGED;
use memchr::memmem;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};
use uuid::Uuid;

/// As long as erasures of logs are repeated: nobody who was erased is in one for longer.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Clocks of Postgres and of the proxy differ, and a call may be noted a little after it was erased.
const MARGIN: Duration = Duration::from_secs(60);

/// When an organisation erased logs the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erasure {
    pub organisation: Uuid,
    pub asked_at: SystemTime,
}

/// For which erasures each file was searched in vain, so that none is read again and again.
#[derive(Debug, Default)]
pub struct SearchedFiles(Mutex<HashMap<PathBuf, Vec<Erasure>>>);

struct DamagedFile {
    path: PathBuf,
    /// Nothing in it came before this.
    created: SystemTime,
    modified: SystemTime,
    length: u64,
}

/// Deletes files that were set aside when they are old, and the oldest when they take more than so many bytes.
pub fn sweep(folder: &Path, most_bytes: u64) -> io::Result<()> {
    let mut found = damaged_files(folder)?;
    found.sort_by_key(|file| std::cmp::Reverse(file.modified));
    let mut bytes = 0_u64;
    for file in found {
        bytes = bytes.saturating_add(file.length);
        if bytes > most_bytes || file.modified.elapsed().is_ok_and(|age| age > MAX_AGE) {
            delete(&file.path, "it is old, or there are too many");
        }
    }
    Ok(())
}

/// Whether there is any.
pub fn is_any(folder: &Path) -> bool {
    damaged_files(folder).is_ok_and(|found| !found.is_empty())
}

impl SearchedFiles {
    /// Deletes the files that hold anything of an organisation from before its erasure.
    pub fn erase(&self, folder: &Path, erasures: &[Erasure]) -> io::Result<()> {
        let found = damaged_files(folder)?;
        let mut searched = self.0.lock();
        searched.retain(|path, _| found.iter().any(|file| file.path == *path));
        for file in found {
            let done = searched.entry(file.path.clone()).or_default();
            let concerns = |erasure: &&Erasure| !done.contains(erasure) && file.created <= erasure.asked_at + MARGIN;
            let due: Vec<Erasure> = erasures.iter().filter(concerns).copied().collect();
            if due.is_empty() {
                continue;
            }
            let bytes = fs::read(&file.path)?;
            match due.iter().any(|erasure| memmem::find(&bytes, erasure.organisation.as_bytes()).is_some()) {
                true => delete(&file.path, "its organisation erased logs"),
                false => {
                    done.retain(|known| due.iter().all(|erasure| erasure.organisation != known.organisation));
                    done.extend(due);
                }
            }
        }
        Ok(())
    }
}

fn damaged_files(folder: &Path) -> io::Result<Vec<DamagedFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == DAMAGED)
            && let Ok(metadata) = entry.metadata()
        {
            let modified = metadata.modified().unwrap_or_else(|_| SystemTime::now());
            // Where nobody knows when it was made, it may be of any time.
            let created = metadata.created().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push(DamagedFile { path, created, modified, length: metadata.len() });
        }
    }
    Ok(found)
}

fn delete(path: &Path, why: &str) {
    tracing::warn!(file = %path.display(), why, "a file of the journal that was set aside is deleted");
    // Another process may have been faster.
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_was_set_aside_goes_when_it_is_old_or_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let set_aside = |name: &str, days: u64| {
            let file = File::create(path(name)).unwrap();
            file.set_len(1000).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
        };
        for (name, days) in [("a.damaged", 1), ("b.damaged", 2), ("c.damaged", 31), ("d.seg", 400)] {
            set_aside(name, days);
        }
        let left = || ["a.damaged", "b.damaged", "c.damaged", "d.seg"].map(|name| path(name).exists());
        sweep(folder.path(), 10_000).unwrap();
        assert_eq!(left(), [true, true, false, true]);
        sweep(folder.path(), 1500).unwrap();
        assert_eq!(left(), [true, false, false, true]);
    }

    #[test]
    fn a_file_goes_with_the_first_erasure_of_an_organisation_that_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, others, nobodys] = [1, 2, 3].map(Uuid::from_u128);
        let hold = |name: &str, organisation: Uuid| {
            let path = folder.path().join(name);
            fs::write(&path, [b"\x80 damaged ", &organisation.as_bytes()[..], b" and more"].concat()).unwrap();
            path
        };
        let (own, other, open) = (hold("a.damaged", ours), hold("b.damaged", others), hold("c.seg", ours));
        let left = || [&own, &other, &open].map(|path| path.exists());
        let searched = SearchedFiles::default();
        let now = SystemTime::now();
        let by = |organisation, asked_at| [Erasure { organisation, asked_at }];
        searched.erase(folder.path(), &by(ours, now - Duration::from_secs(3600))).unwrap();
        assert_eq!(left(), [true, true, true], "what came after an erasure is not meant by it");
        searched.erase(folder.path(), &by(nobodys, now)).unwrap();
        assert_eq!(left(), [true, true, true]);
        // It has been searched for this one, whatever it holds now.
        fs::write(&other, nobodys.as_bytes()).unwrap();
        searched.erase(folder.path(), &by(nobodys, now)).unwrap();
        assert_eq!(left(), [true, true, true]);
        searched.erase(folder.path(), &by(ours, now)).unwrap();
        assert_eq!(left(), [false, true, true]);
        searched.erase(folder.path(), &by(nobodys, now + Duration::from_secs(1))).unwrap();
        assert_eq!(left(), [false, false, true], "a second erasure is looked for again");
    }
}
