//! Where an operator keeps files of model configurations: a folder of this machine, or one in the log store, which may be
//! a bucket.

use crate::log_store::LogStore;
use crate::settings;
use anyhow::Context as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The longest file that is read.
const MAX_FILE: usize = 32 << 20;

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
                let Some(bytes) = store.get(&path, MAX_FILE).await? else { return Ok(None) };
                Ok(Some(String::from_utf8(bytes.into()).context("it is not UTF-8")?))
            }
        }
    }

    /// Stores or replaces a file; nobody ever sees half of it.
    pub async fn put(&self, name: &str, text: String) -> anyhow::Result<()> {
        anyhow::ensure!(text.len() <= MAX_FILE, "{name} would have more than {MAX_FILE} bytes");
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                let put = tokio::task::spawn_blocking(move || replace(&path, &text)).await?;
                put.with_context(|| format!("{name} in {}", folder.display()))
            }
            Self::Stored { store, folder } => {
                let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                Ok(store.put(&path, text.into()).await?)
            }
        }
    }
}

/// A crash leaves either the old file or the new one. Each writer has a draft of its own.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let draft = folder.join(format!(".{}.draft", Uuid::new_v4()));
    let written = std::fs::File::create_new(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    });
    if written.is_err() {
        // The problem that matters is the first one.
        let _ = std::fs::remove_file(&draft);
    }
    written?;
    std::fs::File::open(folder)?.sync_all()
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
