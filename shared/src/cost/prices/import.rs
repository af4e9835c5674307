//! Public price lists, read in their own formats and turned into ours: what `gateway-admin prices import` stores.
//!
//! - `bounded_json`: reading a file of strangers, with bounds and without floats
//! - `litellm`, `models_dev`: the formats of the public lists → `listed` models and their rates
//! - `provider_names`, `model_name`: what providers and models are called there and here
//! - `draft`: rates of one model, collected by our units, and what is refused of them
//! - `convert`: listed models → entries of our price lists; the same rules as `conf/models/generate.py`
//! - `by_hand`: what public lists lack or have wrong
//! - `plan`: what would change in an installation, and the files that would hold it
//! - `rate_changes`: which rates differ between two entries
//!
//! All of it is pure: files and time belong to the caller.

mod bounded_json;
mod by_hand;
mod convert;
mod draft;
mod listed;
mod litellm;
mod model_name;
mod models_dev;
mod plan;
mod provider_names;
mod rate_changes;

pub use bounded_json::{MAX_FILE_BYTES, MAX_ROWS, UnreadableList};
pub use listed::{ListedModel, ListedModels, ListedRate, Refusal};
pub use plan::{ImportPlan, ProviderPlan, RowChange};
pub use rate_changes::RateChange;

use bounded_json::RawRows;
use std::collections::BTreeMap;

/// Whose format a price list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ListFormat {
    /// LiteLLM's model_prices_and_context_window.json.
    #[value(name = "litellm")]
    LiteLlm,
    /// api.json of models.dev.
    #[value(name = "models.dev")]
    ModelsDev,
    /// {provider}.json, as in conf/models/pricing.
    #[value(name = "ours")]
    Ours,
}

/// A price list, read.
#[derive(Debug)]
pub enum SourceList {
    Public {
        format: ListFormat,
        models: ListedModels,
    },
    /// Rows by provider and model, as they are written.
    Ours(BTreeMap<String, RawRows>),
}

impl ListFormat {
    pub const fn name(self) -> &'static str {
        match self {
            Self::LiteLlm => "litellm",
            Self::ModelsDev => "models.dev",
            Self::Ours => "ours",
        }
    }

    /// By what the rows of a list have: LiteLLM's name their provider, those of models.dev have models, ours a price.
    fn detect(rows: &RawRows) -> Option<Self> {
        rows.values().find_map(|row| {
            let fields = bounded_json::fields(row)?;
            let marks =
                [("litellm_provider", Self::LiteLlm), ("models", Self::ModelsDev), ("pricing_config", Self::Ours)];
            marks.into_iter().find(|(mark, _)| fields.contains_key(*mark)).map(|(_, format)| format)
        })
    }
}

impl SourceList {
    /// Reads a file. `file_stem` is its name without `.json`: a file of ours is about the provider that it is named after.
    pub fn read(text: &str, format: Option<ListFormat>, file_stem: &str) -> Result<Self, UnreadableList> {
        let rows = bounded_json::rows(text)?;
        let format = format.or_else(|| ListFormat::detect(&rows)).ok_or(UnreadableList::UnknownFormat)?;
        let models = match format {
            ListFormat::LiteLlm => litellm::models(&rows),
            ListFormat::ModelsDev => models_dev::models(&rows)?,
            ListFormat::Ours => return Ok(Self::Ours(BTreeMap::from([(file_stem.to_owned(), rows)]))),
        };
        if models.listed.is_empty() {
            return Err(UnreadableList::Empty(format.name()));
        }
        Ok(Self::Public { format, models })
    }

    /// Files of ours, by provider.
    pub fn ours(texts: &BTreeMap<String, String>) -> Result<Self, UnreadableList> {
        let read = |(provider, text): (&String, &String)| Ok((provider.clone(), bounded_json::rows(text)?));
        texts.iter().map(read).collect::<Result<_, _>>().map(Self::Ours)
    }

    /// Our names of the providers that it may change.
    pub fn providers(&self) -> Vec<&str> {
        match self {
            Self::Public { format, .. } => provider_names::table(*format).iter().map(|(ours, _)| *ours).collect(),
            Self::Ours(providers) => providers.keys().map(String::as_str).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
