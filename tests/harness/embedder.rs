//! The static embeddings that tests use, as `make setup-embedder` fetches them.

use std::path::{Path, PathBuf};

/// Panics where they were not fetched: a test that could not run has not passed.
pub fn embedder_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.run/embedder");
    assert!(folder.join("model.safetensors").is_file(), "the embedder is missing; type: make setup-embedder");
    folder.canonicalize().expect("the folder is there")
}
