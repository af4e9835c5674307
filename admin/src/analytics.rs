//! Figures about calls, added up from their logs: series over time and groups by what calls have in common. What can be
//! measured is a table (`measure`), what calls can be grouped by another (`dimension`); an operation names rows of both.
//! Where slots of time have the answer it is read from them (`slots`, `cover`), otherwise from the logs.
//!
//! Everything here is asked of the logs of one `LogView`, so that whoever may not see a log does not see it counted either.

pub mod budgets;
pub mod counted;
pub mod cover;
pub mod csv;
pub mod dimension;
pub mod feedback;
pub mod groups;
pub mod measure;
pub mod period;
pub mod rolled;
pub mod series;
pub mod slots;
