//! Which target a request tries, and what follows when it fails. Decisions only: the clock, chance and the request
//! are arguments, and whoever asks does the calling.

pub mod balance;
pub mod breaker;
pub mod budget;
pub mod clock;
pub mod course;
pub mod latency;
pub mod query;
pub mod retry;
pub mod retry_after;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod simulator;

pub use course::{Course, Next, Outcome, Speaker, Way};
pub use query::Facts;
