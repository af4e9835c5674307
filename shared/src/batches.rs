//! Batches: what may stand in an input file, and the object that tells of one. Pure: who runs a batch, and where its rows
//! and files lie, is elsewhere.
//!
//! - `lines`: the lines of a file that comes in pieces, numbered and bounded
//! - `input`: whether they are the input of a batch, and everything that is wrong with them
//! - `metadata`: what a batch says about itself
//! - `object`: the batch object, its statuses and their times

mod input;
mod lines;
mod metadata;
mod object;
#[cfg(test)]
mod tests;

pub use input::{BatchEndpoint, InputCheck, InputSummary, MAX_BYTES, MAX_ERRORS, MAX_ROWS, Models, RowPlace};
pub use lines::{Line, LineTooLong, Lines, MAX_LINE};
pub use metadata::check_metadata;
pub use object::{Batch, BatchError, BatchStatus, RequestCounts, StatusTimes};
