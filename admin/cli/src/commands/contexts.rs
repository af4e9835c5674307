//! `context`: the gateways that were signed in to.

use crate::context;
use crate::global::Global;
use crate::outcome::{Exit, Failure};
use crate::output::{Column, Output};
use serde_json::json;

/// Choose between the gateways that were signed in to.
#[derive(clap::Subcommand)]
pub enum Contexts {
    /// List them; the current one has a star.
    List,
    /// Make one the current one.
    Use { name: String },
    /// Forget one and its key.
    Rm { name: String },
}

const COLUMNS: &[Column] = &[
    Column::new("", "current"),
    Column::new("name", "name"),
    Column::new("url", "url"),
    Column::new("workspace", "workspace"),
];

pub fn run(global: &Global, command: Contexts) -> Result<Exit, Failure> {
    let path = context::path()?;
    let mut contexts = context::read(&path)?;
    let output = Output::new(global.output, global.quiet);
    match command {
        Contexts::List => {
            let row = |(name, context): (&String, &context::Context)| {
                let star = if contexts.current.as_ref() == Some(name) { "*" } else { "" };
                json!({ "current": star, "name": name, "url": context.url, "workspace": context.workspace })
            };
            output.rows(&contexts.contexts.iter().map(row).collect::<Vec<_>>(), COLUMNS)?;
            output.hint("portcullis context use NAME");
            return Ok(Exit::Fine);
        }
        Contexts::Use { name } => {
            if !contexts.contexts.contains_key(&name) {
                return Err(Failure::new(format!("there is no context `{name}`")));
            }
            contexts.current = Some(name);
            output.hint("portcullis whoami");
        }
        Contexts::Rm { name } => {
            if contexts.contexts.remove(&name).is_none() {
                return Err(Failure::new(format!("there is no context `{name}`")));
            }
            contexts.current = contexts.current.filter(|current| *current != name);
            output.hint("portcullis context list");
        }
    }
    context::write(&path, &contexts)?;
    Ok(Exit::Fine)
}
