//! Where the keyring comes from: a file, which is read again when it changes so that a rotation needs no restart, or
//! one key in the environment. A file that became unreadable keeps the keys that it had.

use super::Keyring;
use crate::settings;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Debug)]
pub struct MasterKeys {
    file: Option<PathBuf>,
    current: RwLock<Option<Arc<Keyring>>>,
}

impl MasterKeys {
    /// No keys at all is no error: then nothing can be sealed, and whoever tries is told so.
    pub fn load(settings: &settings::Sealing) -> anyhow::Result<Self> {
        let file = settings.gateway_master_key_file.clone();
        let ring = match (&file, &settings.gateway_master_key) {
            (Some(_), Some(_)) => anyhow::bail!("set GATEWAY_MASTER_KEY_FILE or GATEWAY_MASTER_KEY, not both"),
            (Some(path), None) => {
                Some(load_keyring(path).map_err(anyhow::Error::msg).context("GATEWAY_MASTER_KEY_FILE")?)
            }
            (None, Some(key)) => Some(Keyring::single(key).map_err(anyhow::Error::msg).context("GATEWAY_MASTER_KEY")?),
            (None, None) => None,
        };
        Ok(Self { file, current: RwLock::new(ring.map(Arc::new)) })
    }

    pub fn current(&self) -> Option<Arc<Keyring>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again. True when the keys or their order are others now.
    pub fn reload(&self) -> Result<bool, String> {
        let Some(path) = &self.file else { return Ok(false) };
        let ring = load_keyring(path)?;
        let is_same = self.current().is_some_and(|old| old.is_same(&ring));
        if !is_same {
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ring));
        }
        Ok(!is_same)
    }
}

fn load_keyring(path: &Path) -> Result<Keyring, String> {
    let text = std::fs::read_to_string(path).map(zeroize::Zeroizing::new);
    let text = text.map_err(|error| format!("the keyring {} cannot be read: {error}", path.display()))?;
    Keyring::parse(&text).map_err(|problem| format!("the keyring {}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(file: Option<&Path>, key: Option<&str>) -> settings::Sealing {
        settings::Sealing {
            gateway_master_key_file: file.map(Path::to_owned),
            gateway_master_key: key.map(str::to_owned),
        }
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keyring");
        let (one, two) = (Keyring::generate("one").unwrap(), Keyring::generate("two").unwrap());
        std::fs::write(&path, &one).unwrap();
        let keys = MasterKeys::load(&settings(Some(&path), None)).unwrap();
        assert_eq!(keys.reload(), Ok(false));
        std::fs::write(&path, format!("{two}{one}")).unwrap();
        assert_eq!(keys.reload(), Ok(true));
        assert_eq!(keys.current().unwrap().ids(), ["two", "one"]);
        for broken in ["", "nonsense"] {
            std::fs::write(&path, broken).unwrap();
            assert!(keys.reload().is_err());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(keys.reload().is_err());
        assert_eq!(keys.current().unwrap().ids(), ["two", "one"]);
        // The same id with other bytes is another key.
        std::fs::write(&path, format!("{}{one}", Keyring::generate("two").unwrap())).unwrap();
        assert_eq!(keys.reload(), Ok(true));
    }

    #[test]
    fn keys_come_from_a_file_or_the_environment_or_not_at_all() {
        assert!(MasterKeys::load(&settings(None, None)).unwrap().current().is_none());
        let text = Keyring::generate("mine").unwrap();
        let keys = MasterKeys::load(&settings(None, Some(&text))).unwrap();
        assert_eq!(keys.current().unwrap().ids(), ["mine"]);
        assert_eq!(keys.reload(), Ok(false));
        let missing = Path::new("/nowhere/keyring");
        for (file, key) in [(Some(missing), None), (Some(missing), Some("x")), (None, Some("hunter2"))] {
            let error = format!("{:#}", MasterKeys::load(&settings(file, key)).unwrap_err());
            assert!(error.contains("GATEWAY_MASTER_KEY") && !error.contains("hunter"), "{error}");
        }
    }
}
