//! The names that a config may use for a provider: the bundled table's and those of the operator's own file. The
//! gateway's own name stands for files and batches it manages.

use crate::providers::Providers;
use std::sync::LazyLock;

pub fn is_known(name: &str, further: &[String]) -> bool {
    // The table is part of the program, and its own tests read it.
    static BUNDLED: LazyLock<Option<Providers>> = LazyLock::new(|| Providers::bundled().ok());
    name == "gateway"
        || BUNDLED.as_ref().is_some_and(|bundled| bundled.get(name).is_some())
        || further.iter().any(|other| other == name)
}
