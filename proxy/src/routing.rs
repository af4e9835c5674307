//! Which target a request tries, and what follows when it fails. Decisions only: the clock, chance and the request
//! are arguments, and whoever asks does the calling.

pub mod balance;
pub mod breaker;
pub mod clock;
pub mod course;
pub mod inline_configs;
pub mod latency;
pub mod plan;
pub mod query;
pub mod retry;
pub mod retry_budget;
pub mod warnings;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod simulator_tests;

pub use course::{AfterAttempt, AttemptResult, Course, Speaker, Way};
pub use query::RequestFacts;
