//! Exports of logs as files: which fields there are, how they are written, where the files lie, and the steps by which a
//! job makes them. What is asked for and by whom is `resources/log_exports`.

pub mod fields;
pub mod files;
pub mod format;
pub mod step;

pub use format::ExportFormat;

/// Logs in a file; further ones are in the next.
pub const PER_FILE: i64 = 50_000;
