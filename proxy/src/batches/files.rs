//! Files that the gateway keeps itself (`gwf-…`): a row in Postgres, and bytes in the log store, cut into parts. Nothing here
//! is on the way of inference, so here the proxy may ask Postgres, through a few connections of its own and for a bounded
//! time.
//!
//! - `managed`: ids, paths and pages, of batches too
//! - `object`: a file as the API shows it, and its id
//! - `query`: what a list asks for
//! - `range`: which bytes of a file are asked for
//! - `rows`: the rows, always of one workspace
//! - `intake`, `reader`: bytes on their way into the store, and out of it
//!
//! An upload has its row before its first byte; deleting a row notes its folder for the control plane's `delete_objects`, in
//! one statement. So whatever dies half way, one of the two is found and swept.

mod intake;
pub mod managed;
mod object;
mod query;
mod range;
mod reader;
pub(crate) mod rows;

pub use intake::{Intake, PART_BYTES};
pub use object::{FilePath, ManagedFile, PREFIX, deleted, list};
pub use query::ListQuery;
pub use range::{AskedRange, asked_range};
pub use reader::FileReader;
pub use rows::{FileRows, Finish, FinishedUpload};

use crate::request::refusal::Refusal;
use crate::runtime::small_pool::PostgresAway;
use crate::runtime::tenant_share::Tenant;
use shared::log_store::LogStore;
use shared::settings::{Database, FileSettings};
use shared::telemetry::{Brief, LogLimit};
use uuid::Uuid;

/// Whose files they are.
#[derive(Debug, Clone, Copy)]
pub struct FileOwner {
    pub organisation: Uuid,
    pub workspace: Uuid,
}

impl FileOwner {
    pub fn tenant(self) -> Tenant {
        Tenant { organisation: self.organisation, workspace: self.workspace }
    }
}

/// Postgres or the log store does not answer, or not in time. What it was is in the process's own log lines.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the store of files is away")]
pub struct FilesAway;

impl FilesAway {
    fn because(error: impl std::fmt::Display) -> Self {
        static AWAY: LogLimit = LogLimit::new();
        if let Some(skipped) = AWAY.pass() {
            tracing::warn!(error = %Brief(error), skipped, "the store of files is away");
        }
        Self
    }
}

impl From<FilesAway> for Refusal {
    fn from(_: FilesAway) -> Self {
        Self::files_unavailable()
    }
}

impl From<PostgresAway> for FilesAway {
    fn from(_: PostgresAway) -> Self {
        Self
    }
}

impl From<shared::log_store::Error> for FilesAway {
    fn from(error: shared::log_store::Error) -> Self {
        Self::because(error)
    }
}

pub struct ManagedFiles {
    pub rows: FileRows,
    pub store: LogStore,
    pub settings: FileSettings,
}

impl ManagedFiles {
    pub fn new(database: Database, store: LogStore, settings: FileSettings) -> Self {
        Self { rows: FileRows::new(database, settings.clone()), store, settings }
    }
}
