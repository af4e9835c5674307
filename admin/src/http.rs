//! How requests and answers are written: errors, JSON bodies with field paths in their errors, queries, pages, times,
//! and fields that can be absent, null or a value.

pub mod body;
pub mod error;
pub mod field;
pub mod json;
pub mod query;
pub mod text;
pub mod time;

pub use error::{ApiError, ErrorExtension};
pub use field::Field;
pub use query::{PageSizes, Query};
pub use time::Time;
