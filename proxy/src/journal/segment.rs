//! A file of the journal. One process writes it and holds its lock; a file whose lock is free belongs to nobody any
//! more, and whoever takes the lock ships it. So a crash, a hand-over and a restart are the same case.

use super::reader::Reader;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, IoSlice, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

const ENDING: &str = "seg";
/// Its records are in Postgres; its bodies are not in the log store yet.
const BODIES: &str = "bodies";
/// While it has no lock yet nobody may take it for abandoned.
const UNBORN: &str = "new";
/// What cannot be read is kept under this ending for somebody to look at.
pub(super) const DAMAGED: &str = "damaged";
/// A file is set aside when sending it has panicked so often: what stands behind it must not wait for ever.
pub const MAX_PANICS: u32 = 3;
/// Of a process, not of records.
const MARK: &str = "boot";

/// A file that is being written.
#[derive(Debug)]
pub struct Segment {
    held: ClosedSegment,
}

/// A file that nobody writes any more.
#[derive(Debug)]
pub struct ClosedSegment {
    file: File,
    path: PathBuf,
    length: u64,
    /// So much of it is known to survive a loss of power.
    synced: u64,
    since: SystemTime,
    /// Nothing in it came before this; none when another process made it.
    created: Option<Instant>,
    /// Up to here its records are in Postgres. Known to this process only: another begins anew, which stores none twice.
    pub shipped: u64,
    /// Bodies stand behind some of those.
    pub has_bodies: bool,
    /// Up to here its bodies are in the log store.
    pub uploaded: u64,
    /// When it was closed; none when another process made it.
    pub closed: Option<Instant>,
    /// How often sending it has panicked.
    pub panics: u32,
    /// Holds nothing but promises to calls, which are never dropped.
    pub has_only_intents: bool,
}

impl Segment {
    /// `is_durable` when its name is to survive a loss of power.
    pub fn create(folder: &Path, name: &str, is_durable: bool) -> io::Result<Self> {
        let (file, path) = locked(folder, name, ENDING, is_durable)?;
        let mut held = ClosedSegment::new(file, path, 0, SystemTime::now());
        held.created = Some(Instant::now());
        Ok(Self { held })
    }

    /// All of it or nothing: half a frame in the middle would hide what comes after.
    pub fn append(&mut self, bytes: &mut [IoSlice<'_>]) -> io::Result<()> {
        let held = &mut self.held;
        let length: usize = bytes.iter().map(|slice| slice.len()).sum();
        match write_all(&mut held.file, bytes) {
            Ok(()) => {
                held.length += length as u64;
                Ok(())
            }
            Err(error) => {
                held.file.set_len(held.length)?;
                Err(error)
            }
        }
    }

    pub fn length(&self) -> u64 {
        self.held.length
    }

    pub fn since(&self) -> SystemTime {
        self.held.since
    }

    pub fn created(&self) -> Option<Instant> {
        self.held.created
    }

    /// What is in it came from this moment on, although it was made later.
    pub fn holds_from(&mut self, since: Instant) {
        self.held.created = self.held.created.map(|created| created.min(since));
    }

    pub fn sync(&mut self) -> io::Result<()> {
        self.held.file.sync_data()?;
        self.held.synced = self.held.length;
        Ok(())
    }

    /// A second handle, to sync without keeping the writer waiting.
    pub fn handle(&self) -> io::Result<File> {
        self.held.file.try_clone()
    }

    pub fn close(mut self) -> ClosedSegment {
        self.held.closed = Some(Instant::now());
        self.held
    }
}

/// Whether a file can be made, written and synced in this folder now. It has the name of one that has no lock yet, so that
/// nobody takes it for a segment and whoever finds it later sweeps it away.
pub fn probe(folder: &Path, name: &str) -> io::Result<()> {
    const ENOUGH: [u8; 4096] = [0; 4096];
    let path = folder.join(name).with_extension(UNBORN);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    let written = file.write_all(&ENOUGH).and_then(|()| file.sync_data());
    fs::remove_file(&path)?;
    written
}

/// Makes the names of a folder survive a loss of power.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes a file that nobody else can hold before we do.
fn locked(folder: &Path, name: &str, ending: &str, is_durable: bool) -> io::Result<(File, PathBuf)> {
    let unborn = folder.join(name).with_extension(UNBORN);
    let path = unborn.with_extension(ending);
    let file = OpenOptions::new().append(true).read(true).create_new(true).mode(0o600).open(&unborn)?;
    file.try_lock()?;
    fs::rename(&unborn, &path)?;
    if is_durable {
        sync_folder(folder)?;
    }
    Ok((file, path))
}

/// A process lives as long as the lock of its mark is held. What it held of limits may be given to others when it is
/// dead and nothing it wrote is left to be shipped: then all it spent is known.
#[derive(Debug)]
pub struct Mark {
    _file: File,
    path: PathBuf,
    pub boot: Uuid,
}

impl Mark {
    pub fn create(folder: &Path, boot: Uuid, is_durable: bool) -> io::Result<Self> {
        let (file, path) = locked(folder, &boot.simple().to_string(), MARK, is_durable)?;
        Ok(Self { _file: file, path, boot })
    }

    /// Those of processes that are gone with everything they wrote.
    pub fn dead(folder: &Path) -> io::Result<Vec<Self>> {
        let names: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
        let ends_in = |path: &Path, ending: &str| path.extension().is_some_and(|found| found == ending);
        let mut dead = Vec::new();
        for path in names.iter().filter(|path| ends_in(path, MARK)) {
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            let is_of = |file: &&PathBuf| {
                (ends_in(file, ENDING) || ends_in(file, UNBORN))
                    && file.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(name))
            };
            let Ok(boot) = name.parse() else { continue };
            if names.iter().any(|file| is_of(&file)) {
                continue;
            }
            let Ok(file) = OpenOptions::new().write(true).open(path) else { continue };
            if file.try_lock().is_ok() && path.exists() {
                dead.push(Self { _file: file, path: path.clone(), boot });
            }
        }
        Ok(dead)
    }

    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Almost always with one call.
fn write_all(file: &mut File, mut bytes: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut bytes, 0);
    while !bytes.is_empty() {
        match file.write_vectored(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut bytes, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl ClosedSegment {
    /// Takes a file over unless another process has it.
    pub fn adopt(path: &Path) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its owner may have shipped and removed it while we waited for the lock.
        if !path.exists() {
            return Ok(None);
        }
        let metadata = file.metadata()?;
        let since = metadata.created().or_else(|_| metadata.modified())?;
        Ok(Some(Self::new(file, path.to_owned(), metadata.len(), since)))
    }

    fn new(file: File, path: PathBuf, length: u64, since: SystemTime) -> Self {
        Self {
            file,
            path,
            length,
            synced: 0,
            since,
            created: None,
            shipped: 0,
            has_bodies: false,
            uploaded: 0,
            closed: None,
            panics: 0,
            has_only_intents: false,
        }
    }

    pub fn name(&self) -> String {
        self.path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn since(&self) -> SystemTime {
        self.since
    }

    pub fn created(&self) -> Option<Instant> {
        self.created
    }

    pub fn is_synced(&self) -> bool {
        self.synced >= self.length
    }

    /// A second handle to sync it by, if that is still to be done; it is taken as done then.
    pub fn unsynced(&mut self) -> Option<File> {
        if self.is_synced() {
            return None;
        }
        self.synced = self.length;
        self.file.try_clone().ok()
    }

    /// What stands in it from here on.
    pub fn reader(&self, at: u64) -> io::Result<Reader<BufReader<File>>> {
        /// Read at once from the disk.
        const WINDOW: usize = 64 << 10;
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(at))?;
        Ok(Reader::new(BufReader::with_capacity(WINDOW, file), at, length))
    }

    /// Whether only its bodies are still to be sent.
    pub fn has_only_bodies(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending == BODIES)
    }

    /// Its records are stored: from now on it is kept for its bodies.
    pub fn keep_for_bodies(&mut self) -> io::Result<()> {
        let path = self.path.with_extension(BODIES);
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }

    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// Keeps what could not be read out of the way.
    pub fn set_aside(self) -> io::Result<PathBuf> {
        let aside = self.path.with_extension(DAMAGED);
        fs::rename(&self.path, &aside)?;
        Ok(aside)
    }
}

/// The files of a folder that may be anybody's, the oldest first. What never got its lock is swept away.
pub fn found(folder: &Path) -> io::Result<Vec<PathBuf>> {
    const STILLBORN: Duration = Duration::from_secs(60);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or_else(|_| SystemTime::now());
        match path.extension().and_then(|ending| ending.to_str()) {
            Some(ENDING | BODIES) => found.push((modified, path)),
            Some(UNBORN) if modified.elapsed().is_ok_and(|age| age > STILLBORN) => drop(fs::remove_file(&path)),
            _ => {}
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_adopted_only_when_its_writer_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = Segment::create(folder.path(), "boot-0-0", false).unwrap();
        segment.append(&mut [IoSlice::new(b"a"), IoSlice::new(b""), IoSlice::new(b"bc")]).unwrap();
        let paths = found(folder.path()).unwrap();
        assert_eq!(paths.len(), 1);
        assert!(ClosedSegment::adopt(&paths[0]).unwrap().is_none());
        drop(segment);
        let held = ClosedSegment::adopt(&paths[0]).unwrap().unwrap();
        assert_eq!((fs::read(&paths[0]).unwrap(), held.name()), (b"abc".to_vec(), "boot-0-0".into()));
        assert!(ClosedSegment::adopt(&paths[0]).unwrap().is_none());
        held.remove().unwrap();
        assert!(ClosedSegment::adopt(&paths[0]).unwrap().is_none());
        assert!(found(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn what_is_kept_for_its_bodies_is_found_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = Segment::create(folder.path(), "boot-0-0", false).unwrap().close();
        assert!(!held.has_only_bodies());
        held.keep_for_bodies().unwrap();
        let paths = found(folder.path()).unwrap();
        assert!(ClosedSegment::adopt(&paths[0]).unwrap().is_none(), "it is still held");
        drop(held);
        let held = ClosedSegment::adopt(&paths[0]).unwrap().unwrap();
        assert!(held.has_only_bodies() && held.name() == "boot-0-0");
    }

    #[test]
    fn a_process_is_dead_when_its_mark_is_free_and_its_files_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let boot = Uuid::from_u128(7);
        let mark = Mark::create(folder.path(), boot, false).unwrap();
        let segment = Segment::create(folder.path(), &format!("{}-0-0", boot.simple()), true).unwrap();
        let dead = || Mark::dead(folder.path()).unwrap().into_iter().map(|mark| mark.boot).collect::<Vec<_>>();
        assert!(dead().is_empty(), "it lives");
        drop(mark);
        assert!(dead().is_empty(), "it has left something");
        segment.close().remove().unwrap();
        assert_eq!(dead(), [boot]);
        Mark::dead(folder.path()).unwrap().remove(0).remove().unwrap();
        assert!(dead().is_empty(), "it is buried");
        assert!(found(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn what_is_set_aside_is_not_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let held = Segment::create(folder.path(), "boot-0-0", false).unwrap().close();
        let aside = held.set_aside().unwrap();
        assert!(aside.exists() && found(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn a_folder_is_probed_without_leaving_anything_behind() {
        let folder = tempfile::tempdir().unwrap();
        probe(folder.path(), "boot-probe").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(probe(&folder.path().join("gone"), "boot-probe").is_err());
    }
}
