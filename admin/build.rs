//! Puts the console that `make console` built into the program: one line for each file of `console/dist`. Without them the
//! program still compiles, and its `/console` says what to type.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let dist = Path::new(&manifest).join("console/dist");
    println!("cargo:rerun-if-changed={}", dist.display());
    let files = built(&dist)?;
    if files.is_empty() {
        println!("cargo:warning=the console was not built and is not part of this program: make console");
    }
    let mut list = String::from("[\n");
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(list, "    ({name:?}, include_bytes!({:?}) as &[u8]),", file.display().to_string());
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("console_files.rs"), list)
}

/// The files in a stable order, without the one that keeps the folder in the repository.
fn built(dist: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if dist.is_dir() {
        for entry in fs::read_dir(dist)? {
            let path = entry?.path();
            let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
            if path.is_file() && !is_hidden {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
