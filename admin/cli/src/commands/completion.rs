//! `completion` and `man`: what a shell and `man` read, made from the arguments themselves.

use crate::outcome::{Exit, Failure, at_path};
use crate::output;
use clap::Command;
use std::path::PathBuf;

/// Write the completion of a shell: source <(portcullis completion bash)
#[derive(clap::Args)]
pub struct Completion {
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Write manual pages: one to stdout, or one for each command to a folder.
#[derive(clap::Args)]
pub struct Man {
    /// The folder.
    #[arg(long)]
    folder: Option<PathBuf>,
}

pub fn run(completion: &Completion, mut command: Command) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(completion.shell, &mut command, "portcullis", &mut text);
    output::write(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Fine)
}

pub fn man(man: &Man, command: Command) -> Result<Exit, Failure> {
    match &man.folder {
        Some(folder) => {
            at_path(folder, std::fs::create_dir_all(folder))?;
            at_path(folder, clap_mangen::generate_to(command, folder))?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text)?;
            output::write(&String::from_utf8_lossy(&text))?;
        }
    }
    Ok(Exit::Fine)
}
