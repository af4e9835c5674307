//! The names that a config may use for a provider: the bundled table's and those of the operator's own file. The
//! gateway's own name stands for files and batches it manages.

use super::object;
use crate::providers::Providers;
use std::sync::LazyLock;

/// The table is part of the program, and its own tests read it.
static BUNDLED: LazyLock<Option<Providers>> = LazyLock::new(|| Providers::bundled().ok());

pub fn is_known(name: &str, further: &[String]) -> bool {
    name == "gateway"
        || BUNDLED.as_ref().is_some_and(|bundled| bundled.get(name).is_some())
        || further.iter().any(|other| other == name)
}

/// What follows a message about a name that is none of theirs.
pub fn guess(name: &str, further: &[String]) -> String {
    let bundled = BUNDLED.iter().flat_map(Providers::iter).map(|entry| &*entry.slug);
    object::guess(name, bundled.chain(further.iter().map(String::as_str)))
}
