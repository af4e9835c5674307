//! Contexts: which gateway, with which key, in which workspace. They lie in one file that only its owner can read.

use crate::outcome::{Failure, at_path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Contexts {
    /// The name of the one that is used unless another is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Context {
    pub url: String,
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// `$XDG_CONFIG_HOME` or `~/.config`, then `portcullis/config.toml`.
pub fn path() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let folder = folder.ok_or_else(|| Failure::new("neither HOME nor XDG_CONFIG_HOME is set"))?;
    Ok(folder.join("portcullis/config.toml"))
}

pub fn read(path: &Path) -> Result<Contexts, Failure> {
    if !path.exists() {
        return Ok(Contexts::default());
    }
    let mode = at_path(path, fs::metadata(path))?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(Failure::new(format!("{path} holds keys and others can read it: chmod 600 {path}")));
    }
    let text = at_path(path, fs::read_to_string(path))?;
    toml::from_str(&text).map_err(|error| Failure::new(format!("{}: {}", path.display(), error.message())))
}

/// Replaces the file in one step, so that an interrupted command leaves the old one.
pub fn write(path: &Path, contexts: &Contexts) -> Result<(), Failure> {
    let text = toml::to_string(contexts).map_err(|error| Failure::new(error.to_string()))?;
    replace_privately(path, text.as_bytes())
}

/// Writes a file that only its owner can read. A temporary file has these rights from its first moment.
pub fn replace_privately(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    at_path(folder, fs::create_dir_all(folder))?;
    let mut file = at_path(folder, tempfile::NamedTempFile::new_in(folder))?;
    at_path(path, file.write_all(content))?;
    file.persist(path).map_err(|error| Failure::new(format!("{}: {}", path.display(), error.error)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portcullis/config.toml");
        let context = Context { url: "https://gw.test".into(), key: "pk_x".into(), workspace: None };
        let contexts =
            Contexts { current: Some("gw.test".into()), contexts: BTreeMap::from([("gw.test".into(), context)]) };
        write(&path, &contexts).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap().contexts["gw.test"].key, "pk_x");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("chmod 600"));
    }
}
