//! `import`: another gateway's configuration as files of ours, with a report of what has no place here.

use crate::context::replace_privately;
use crate::global::Global;
use crate::import::{self, Format};
use crate::outcome::{Exit, Failure, at_path};
use crate::output::{self, yaml};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Read another gateway's configuration and write files for `portcullis apply`. Without a folder everything goes to stdout.
///
/// What has no place here is told with its line. Credentials are not copied: they become variables. The objects are of the
/// workspace `default`, or of the one that `--workspace` names.
#[derive(clap::Args)]
pub struct ImportCommand {
    /// Whose configuration it is.
    format: Format,
    file: PathBuf,
    /// An empty folder, or one that does not exist.
    #[arg(short = 'f', long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Write the report to this file, as Markdown; otherwise it goes to stderr.
    #[arg(long, value_name = "REPORT.md")]
    report: Option<PathBuf>,
}

pub fn run(global: &Global, arguments: &ImportCommand) -> Result<Exit, Failure> {
    let text = read(&arguments.file)?;
    if let Some(folder) = &arguments.files
        && folder.exists()
        && at_path(folder, std::fs::read_dir(folder))?.next().is_some()
    {
        return Err(Failure::new(format!("{} is not empty", folder.display())));
    }
    let workspace = global.workspace.as_deref().unwrap_or("default");
    let import = import::read(arguments.format, &text, workspace)
        .map_err(|(line, message)| Failure::new(format!("{}:{line}: {message}", arguments.file.display())))?;
    let documents: String = import.documents.iter().map(|document| format!("---\n{}", yaml::text(document))).collect();
    // The report first: files without it would be applied without having been looked at.
    let report = import::markdown(&import);
    match &arguments.report {
        Some(path) => replace_privately(path, report.as_bytes())?,
        None => eprint!("{}", output::printable_lines(&report)),
    }
    match &arguments.files {
        None => output::write(&documents)?,
        Some(folder) => {
            at_path(folder, std::fs::create_dir_all(folder))?;
            replace_privately(&folder.join("imported.yaml"), documents.as_bytes())?;
        }
    }
    Ok(Exit::Fine)
}

/// The text of a file that is not larger than may be read, whatever kind of file it is.
fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let file = at_path(path, File::open(path))?;
    at_path(path, file.take(MAX_FILE + 1).read_to_string(&mut text))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::new(format!("{} is larger than {MAX_FILE} bytes", path.display())));
    }
    Ok(text)
}
