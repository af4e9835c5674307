//! `import`: another gateway's configuration as files of ours, with a report of what has no place here.

use crate::context::replace_privately;
use crate::global::Global;
use crate::import::{self, Format};
use crate::outcome::{Exit, Failure, at_path};
use crate::output::{self, yaml};
use std::path::PathBuf;

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
    let size = at_path(&arguments.file, std::fs::metadata(&arguments.file))?.len();
    if size > MAX_FILE {
        return Err(Failure::new(format!("{} is larger than {MAX_FILE} bytes", arguments.file.display())));
    }
    let text = at_path(&arguments.file, std::fs::read_to_string(&arguments.file))?;
    let workspace = global.workspace.as_deref().unwrap_or("default");
    let import = import::read(arguments.format, &text, workspace)
        .map_err(|(line, message)| Failure::new(format!("{}:{line}: {message}", arguments.file.display())))?;
    let documents: String = import.documents.iter().map(|document| format!("---\n{}", yaml::text(document))).collect();
    match &arguments.files {
        None => output::write(&documents)?,
        Some(folder) => {
            if folder.exists() && at_path(folder, std::fs::read_dir(folder))?.next().is_some() {
                return Err(Failure::new(format!("{} is not empty", folder.display())));
            }
            at_path(folder, std::fs::create_dir_all(folder))?;
            replace_privately(&folder.join("imported.yaml"), documents.as_bytes())?;
        }
    }
    let report = import::markdown(&import);
    match &arguments.report {
        Some(path) => replace_privately(path, report.as_bytes())?,
        None => eprint!("{}", output::printable_lines(&report)),
    }
    Ok(Exit::Fine)
}
