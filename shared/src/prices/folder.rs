//! Where an operator keeps files of model configurations: a folder of this machine, or one in the log store, which may be
//! a bucket.

use crate::log_store::LogStore;
use crate::settings;
use anyhow::Context as _;
use std::path::PathBuf;

/// The longest file that is read.
const LONGEST: usize = 32 << 20;

/// A folder with one `{provider}.json` each.
#[derive(Debug)]
pub enum PriceFolder {
    Folder(PathBuf),
    Stored { store: LogStore, folder: String },
}

impl PriceFolder {
    /// A path is a folder of the log store; a URL is a place of its own, and so is a path that begins with `/`.
    pub fn in_log_store(setting: &str, path: &str, log_store: &settings::LogStoreSettings) -> anyhow::Result<Self> {
        let path = path.trim();
        if let Some(folder) = path.strip_prefix("file://").or(path.starts_with('/').then_some(path)) {
            return Ok(Self::Folder(folder.into()));
        }
        let (url, folder) = match path.contains("://") {
            true => (path.to_owned(), String::new()),
            false => (log_store.log_store_url.clone(), path.trim_matches('/').to_owned()),
        };
        let store = LogStore::open(&settings::LogStoreSettings { log_store_url: url, ..log_store.clone() });
        Ok(Self::Stored { store: store.with_context(|| setting.to_owned())?, folder })
    }

    /// The text of a file; none when it is not there.
    pub async fn text(&self, name: &str) -> anyhow::Result<Option<String>> {
        match self {
            Self::Folder(folder) => match tokio::fs::read_to_string(folder.join(name)).await {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error.into()),
            },
            Self::Stored { store, folder } => {
                let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                let Some(bytes) = store.get(&path, LONGEST).await? else { return Ok(None) };
                Ok(Some(String::from_utf8(bytes.into()).context("it is not UTF-8")?))
            }
        }
    }
}

/// For messages.
impl std::fmt::Display for PriceFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Stored { folder, .. } => write!(f, "the log store, {folder}"),
        }
    }
}
