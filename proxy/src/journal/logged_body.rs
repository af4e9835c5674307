//! The bodies and heads of a call, beside the row of its log. Captured while they pass, without copying what can be
//! shared; written to the journal with the record, and turned into an object of the log store when the journal is
//! shipped.
//!
//! What must not be kept never reaches the disk: secrets are masked before the journal, not after.

pub mod captured;
pub mod exchange;
pub mod head_lines;
mod inline_config;
pub mod mask;
pub mod object;

pub use exchange::{LoggedExchange, Rules};
