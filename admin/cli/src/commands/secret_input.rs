//! Where secrets come from: stdin, the environment or a file, never an argument, which other people of the machine can read.

use crate::outcome::{Failure, at_path};
use std::io::{IsTerminal, Read};
use std::path::Path;

/// The first line of stdin.
pub fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::new(
            "--key-stdin reads the key from a pipe or a file: portcullis login URL --key-stdin < key",
        ));
    }
    stdin.read_to_string(&mut text)?;
    match text.trim() {
        "" => Err(Failure::new("stdin is empty")),
        key => Ok(key.to_owned()),
    }
}

/// `env:NAME`, `file:PATH`, or `-` for stdin.
pub fn from_source(source: &str) -> Result<String, Failure> {
    if source == "-" {
        return from_stdin();
    }
    if let Some(name) = source.strip_prefix("env:") {
        return std::env::var(name).map_err(|_| Failure::new(format!("{name} is not set")));
    }
    if let Some(path) = source.strip_prefix("file:") {
        let text = at_path(Path::new(path), std::fs::read_to_string(path))?;
        return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
    }
    Err(Failure::new("a secret is given as env:NAME, file:PATH or - for stdin, never as it is"))
}
