//! From the URL in the settings to a store. The operator chose the address and the credentials, so no guard stands
//! before them; certificates are always verified, and plain HTTP needs the cloud's own permission (`AWS_ALLOW_HTTP`).

use super::crypto::OpenSsl;
use super::{FOLDER_PUTS, LogStore};
use crate::settings;
use anyhow::Context as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

impl LogStore {
    /// Makes the folder, or checks that the URL and the credentials have the right form. No bucket is asked yet: it may
    /// be away for a while without keeping a service from starting.
    pub fn open(settings: &settings::LogStoreSettings) -> anyhow::Result<Self> {
        let url = settings.log_store_url.trim();
        let (scheme, rest) =
            url.split_once("://").context("LOG_STORE_URL: it must begin with file://, s3://, gs:// or az://")?;
        match scheme {
            "file" => folder(rest).context("LOG_STORE_URL"),
            "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" => {
                anyhow::ensure!(!rest.contains('?'), "LOG_STORE_URL: credentials belong in the environment");
                let bucket = rest.split('/').next().unwrap_or_default();
                anyhow::ensure!(!bucket.is_empty() && !bucket.contains(':'), "LOG_STORE_URL: it must name a bucket");
                let root = rest.get(bucket.len()..).unwrap_or_default().trim_matches('/');
                let root = Path::parse(root).context("LOG_STORE_URL: its folder")?;
                let store = cloud(scheme, url).with_context(|| format!("LOG_STORE_URL: {scheme}://{bucket}"))?;
                Ok(Self { store, root, is_folder: false, folder_places: Arc::new(Semaphore::new(FOLDER_PUTS)) })
            }
            other => anyhow::bail!("LOG_STORE_URL: `{other}://` is not known; there are file, s3, gs and az"),
        }
    }
}

/// Relative folders are meant from where the process was started.
fn folder(path: &str) -> anyhow::Result<LogStore> {
    anyhow::ensure!(!path.is_empty(), "it must name a folder");
    DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(|| path.to_owned())?;
    let store = LocalFileSystem::new_with_prefix(path).with_context(|| path.to_owned())?;
    let folder_places = Arc::new(Semaphore::new(FOLDER_PUTS));
    let store = Arc::new(store.with_automatic_cleanup(true));
    Ok(LogStore { store, root: Path::default(), is_folder: true, folder_places })
}

fn cloud(scheme: &str, url: &str) -> Result<Arc<dyn ObjectStore>, Unusable> {
    let (retry, crypto) = (retry(), Arc::new(OpenSsl));
    match scheme {
        "s3" | "s3a" => {
            let builder = AmazonS3Builder::from_env().with_url(url).with_retry(retry).with_crypto_provider(crypto);
            builder.build().map(|store| Arc::new(store) as _)
        }
        "gs" => {
            let builder =
                GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry).with_crypto_provider(crypto);
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => {
            let builder =
                MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry).with_crypto_provider(crypto);
            builder.build().map(|store| Arc::new(store) as _)
        }
    }
    .map_err(|_| Unusable)
}

/// What the client says about it may quote a key.
#[derive(Debug, thiserror::Error)]
#[error("the address or the credentials in the environment cannot be used")]
struct Unusable;

/// Few and quick: whoever stores something has a queue of its own and comes back.
fn retry() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(2), base: 2.0 };
    RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(20) }
}
