//! The prices of an installation as files: what is in use of each provider, and where an import is stored. A file is replaced as
//! a whole, and the one that it replaces stays under `editions/`, by the moment of the import.

use super::folder::PriceFolder;
use super::{Kind, bundled};
use crate::settings::{self, PriceSettings};
use anyhow::Context as _;

#[derive(Debug)]
pub struct PriceStore {
    /// In the order in which they are asked.
    folders: Vec<PriceFolder>,
}

impl PriceStore {
    pub fn open(settings: &PriceSettings, log_store: &settings::LogStoreSettings) -> anyhow::Result<Self> {
        let stored = settings.model_configs_pricing_log_store_path.as_deref();
        let stored =
            stored.map(|path| PriceFolder::in_log_store("MODEL_CONFIGS_PRICING_LOG_STORE_PATH", path, log_store));
        let local = settings.model_configs_pricing_local_path.clone().map(PriceFolder::Folder);
        Ok(Self { folders: stored.transpose()?.into_iter().chain(local).collect() })
    }

    /// The text of the provider's file that is in use, or the bundled one.
    pub async fn text(&self, provider: &str) -> anyhow::Result<Option<String>> {
        for folder in &self.folders {
            let text = folder.text(&file_name(provider)).await;
            if let Some(text) = text.with_context(|| format!("the prices of {provider} in {folder}"))? {
                return Ok(Some(text));
            }
        }
        Ok(bundled::text(Kind::Pricing, provider).map(str::to_owned))
    }

    /// Where imports are stored: the folder that is asked first.
    pub fn folder(&self) -> anyhow::Result<&PriceFolder> {
        self.folders.first().context(
            "there is no folder for imported prices: set MODEL_CONFIGS_PRICING_LOG_STORE_PATH or \
             MODEL_CONFIGS_PRICING_LOCAL_PATH, for this command and for the services",
        )
    }

    /// Replaces the file of a provider. `moment` names the edition that ends here.
    pub async fn replace(&self, provider: &str, text: String, moment: &str) -> anyhow::Result<()> {
        let (folder, name) = (self.folder()?, file_name(provider));
        if let Some(earlier) = folder.text(&name).await? {
            folder.put(&format!("editions/{moment}/{name}"), earlier).await?;
        }
        folder.put(&name, text).await
    }
}

fn file_name(provider: &str) -> String {
    format!("{provider}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(log_store: Option<&std::path::Path>, local: Option<&std::path::Path>) -> PriceStore {
        let folders = [log_store, local].into_iter().flatten();
        PriceStore { folders: folders.map(|path| PriceFolder::Folder(path.to_owned())).collect() }
    }

    #[tokio::test]
    async fn a_replaced_file_stays_as_an_edition_and_the_first_folder_is_the_one_in_use() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = store(Some(first.path()), Some(second.path()));
        assert!(store.text("openai").await.unwrap().unwrap().contains("gpt-4o"), "the bundled one");
        std::fs::write(second.path().join("openai.json"), "own").unwrap();
        assert_eq!(store.text("openai").await.unwrap().as_deref(), Some("own"));
        store.replace("openai", "one".into(), "2026-11-18T10-00-00Z").await.unwrap();
        store.replace("openai", "two".into(), "2026-11-19T10-00-00Z").await.unwrap();
        assert_eq!(store.text("openai").await.unwrap().as_deref(), Some("two"));
        let edition = first.path().join("editions/2026-11-19T10-00-00Z/openai.json");
        assert_eq!(std::fs::read_to_string(edition).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(second.path().join("openai.json")).unwrap(), "own");
        let names = std::fs::read_dir(first.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["editions", "openai.json"], "no draft is left");
    }

    #[tokio::test]
    async fn without_a_folder_nothing_can_be_stored() {
        let problem = store(None, None).replace("openai", String::new(), "now").await.unwrap_err().to_string();
        assert!(problem.contains("MODEL_CONFIGS_PRICING_LOCAL_PATH"), "{problem}");
    }
}
