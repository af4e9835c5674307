//! Configurations of other gateways as files of ours. What has a place here becomes an object; everything else is told with its
//! line and a sentence, so that nothing is lost in silence. It needs no gateway.

mod address;
mod bifrost;
mod bounds;
mod free_names;
mod json_text;
mod kong;
mod litellm;
mod portkey;
mod report;
mod result;
mod slug;
mod source;
mod variables;

pub use report::markdown;
pub use result::Import;

use crate::tree::yaml::{self, LineFault};
use clap::ValueEnum;
use source::Source;

/// Whose configuration it is.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Format {
    /// The proxy's config.yaml.
    Litellm,
    /// Saved configs as its API answers them, one or a list.
    Portkey,
    /// config.json.
    Bifrost,
    /// Its declarative configuration.
    Kong,
}

/// Reads a configuration into objects of one workspace.
pub fn read(format: Format, text: &str, workspace: &str) -> Result<Import, LineFault> {
    let read_variable = match format {
        Format::Litellm => variables::of_litellm,
        Format::Portkey => variables::of_nothing,
        Format::Bifrost => variables::of_bifrost,
        Format::Kong => variables::of_kong,
    };
    let mut import = Import::new(workspace, read_variable);
    let documents = yaml::documents(&json_text::readable(text))?;
    for document in &documents {
        import.reserve_variables(&document.value());
    }
    for document in documents {
        let root = Source::new(document);
        match format {
            Format::Litellm => litellm::read(root, &mut import),
            Format::Portkey => portkey::read(root, &mut import),
            Format::Bifrost => bifrost::read(root, &mut import),
            Format::Kong => kong::read(root, &mut import),
        }
    }
    Ok(import)
}

#[cfg(test)]
mod tests;
