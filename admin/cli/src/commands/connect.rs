//! `connect`: points a coding agent at the gateway, by the files that the agent reads, and takes it back.
//!
//! It writes only what nobody else has set: a value that stands there already is a refusal, not something to overwrite.

mod agents;
mod edits;

use crate::context::{self, replace_privately};
use crate::global::Global;
use crate::http::Call;
use crate::outcome::{Exit, Failure, at_path};
use crate::output;
use crate::session::Session;
use agents::Agent;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Point a coding agent at the gateway: claude-code, codex, gemini-cli, opencode, aider, qwen-code.
#[derive(clap::Args)]
pub struct Connect {
    #[arg(value_parser = agents::names())]
    agent: String,
    /// The model to use.
    #[arg(short, long)]
    model: Option<String>,
    /// Print the files as they would be, with the key left out.
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Take out what an earlier connect wrote, and nothing else.
    #[arg(long)]
    undo: bool,
}

pub async fn run(global: &Global, connect: Connect) -> Result<Exit, Failure> {
    let agent = agents::find(&connect.agent)?;
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.ok_or_else(|| Failure::new("HOME is not set"))?;
    if connect.undo {
        return undo(agent, &home);
    }
    let session = Session::open(global)?;
    let own = session.client.look_up(Call::get("/api-keys/self")).await?.body;
    if own["workspace_id"].is_null() {
        return Err(Failure::new(
            "an agent gets a key of a workspace, not one of the organisation: portcullis keys create NAME",
        ));
    }
    let model = connect.model.as_deref().unwrap_or(agent.model);
    let key = session.client.key().unwrap_or_default();
    let shown_key = if connect.dry_run { "KEY" } else { key };
    // Everything is made before anything is written, so that a refusal leaves all files as they are.
    let mut files = Vec::new();
    let record = record_path()?;
    let mut ownership = read_record(&record)?;
    for file in agent.files {
        let path = home.join(file.path);
        let before = if path.exists() { at_path(&path, std::fs::read_to_string(&path))? } else { String::new() };
        let filled = agents::filled(file, &session.url, shown_key, model);
        let after = edits::put(file.form, &before, &filled, ownership.entry(path.clone()).or_default())
            .map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
        files.push((path, after));
    }
    if !connect.dry_run {
        write_record(&record, &ownership)?;
    }
    for (path, text) in &files {
        if connect.dry_run {
            output::write(&format!("# {}\n{text}", path.display()))?;
        } else {
            replace_privately(&target(path)?, text.as_bytes())?;
            eprintln!("Wrote {}.", path.display());
        }
    }
    if !agent.also.is_empty() {
        eprintln!("{}", agent.also);
    }
    session.output.hint(&agent.start.replace("{model}", model));
    Ok(Exit::Fine)
}

fn undo(agent: &Agent, home: &Path) -> Result<Exit, Failure> {
    let record = record_path()?;
    let mut ownership = read_record(&record)?;
    for file in agent.files {
        let path = home.join(file.path);
        let owned = ownership.remove(&path).unwrap_or_default();
        if !path.exists() {
            continue;
        }
        let before = at_path(&path, std::fs::read_to_string(&path))?;
        let after = edits::take_out(file.form, &before, &owned)
            .map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
        match after {
            Some(text) if text == before => {}
            Some(text) => {
                replace_privately(&target(&path)?, text.as_bytes())?;
                eprintln!("Took it out of {}.", path.display());
            }
            None => {
                at_path(&path, std::fs::remove_file(&path))?;
                eprintln!("Removed {}, which held nothing else.", path.display());
            }
        }
    }
    write_record(&record, &ownership)?;
    Ok(Exit::Fine)
}

/// Where a file really is: one that is kept elsewhere and linked to stays a link.
fn target(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_symlink() { at_path(path, path.canonicalize()) } else { Ok(path.to_owned()) }
}

/// Which fields of which files are ours.
type Record = BTreeMap<PathBuf, edits::Ownership>;

fn record_path() -> Result<PathBuf, Failure> {
    Ok(context::path()?.with_file_name("connected.json"))
}

fn read_record(path: &Path) -> Result<Record, Failure> {
    if !path.exists() {
        return Ok(Record::new());
    }
    let text = at_path(path, std::fs::read_to_string(path))?;
    serde_json::from_str(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn write_record(path: &Path, record: &Record) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(record).map_err(|error| Failure::new(error.to_string()))?;
    replace_privately(path, (text + "\n").as_bytes())
}
