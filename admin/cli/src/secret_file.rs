//! Files that take new secrets. A secret is shown once, so its file is opened before the call that makes it.

use crate::outcome::{Failure, at_path};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Collects secrets, one a line.
pub struct SecretList {
    path: PathBuf,
    file: File,
}

impl SecretList {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = at_path(path, OpenOptions::new().create(true).append(true).mode(0o600).open(path))?;
        check_is_private(path, at_path(path, file.metadata())?.permissions().mode())?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub fn append(&mut self, text: &str) -> Result<(), Failure> {
        at_path(&self.path, self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all()))
    }
}

/// Takes one secret. The file itself appears, or is replaced, only with the secret in it.
pub struct SecretFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl SecretFile {
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        if path.exists() {
            let found = at_path(path, path.metadata())?;
            if !found.is_file() {
                return Err(Failure::new(format!("{} is no file", path.display())));
            }
            check_is_private(path, found.permissions().mode())?;
        }
        let folder = crate::tree::folder_of(path);
        let file = at_path(folder, NamedTempFile::new_in(folder))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub fn finish(mut self, secret: &str) -> Result<PathBuf, Failure> {
        at_path(&self.path, self.file.write_all(secret.as_bytes()).and_then(|()| self.file.as_file().sync_all()))?;
        match self.file.persist(&self.path) {
            Ok(_) => Ok(self.path),
            Err(error) => Err(Failure::new(format!("{}: {}", self.path.display(), error.error))),
        }
    }
}

fn check_is_private(path: &Path, mode: u32) -> Result<(), Failure> {
    let path = path.display();
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{path} would hold a secret and others can read it: chmod 600 {path}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_for_secrets_is_private_and_refused_before_anything_is_made_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        drop(SecretFile::prepare(&path).unwrap());
        assert!(!path.exists(), "nothing was made, so nothing is left");
        SecretFile::prepare(&path).unwrap().finish("one\n").unwrap();
        SecretList::open(&path).unwrap().append("two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(SecretFile::prepare(&path).is_err() && SecretList::open(&path).is_err());
        let nowhere = folder.path().join("none/secret");
        assert!(SecretFile::prepare(&nowhere).is_err() && SecretList::open(&nowhere).is_err());
        assert!(SecretFile::prepare(folder.path()).is_err());
    }
}
