//! Figures about calls, added up from their logs: series over time and groups by what calls have in common. What can be
//! measured is a table (`measure`), what calls can be grouped by another (`dimension`); an operation names rows of both.
//!
//! Everything here is asked of the logs of one `LogView`, so that whoever may not see a log does not see it counted either.

pub mod csv;
pub mod dimension;
pub mod feedback;
pub mod groups;
pub mod measure;
pub mod period;
pub mod series;
