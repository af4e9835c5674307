//! How requests and answers are written: errors, JSON bodies with field paths in their errors, queries, times, fields
//! that can be absent, null or a value, and what goes with pages that people see.

pub mod backpressure;
pub mod body;
pub mod dry_run;
pub mod error;
pub mod etag;
pub mod field;
pub mod field_fault;
pub mod json;
pub mod page;
pub mod query;
pub mod schema_check;
pub mod text;
pub mod time;

pub use error::{ApiError, ChangedSince, ErrorExtension, InUseBy, RECENT_MINUTES};
pub use field::Field;
pub use field_fault::FieldFault;
pub use query::{FLAGS, PageSizes, Query};
pub use time::Time;
