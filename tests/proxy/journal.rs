//! Every call is logged, priced and counted, once.

mod bodies;
pub mod calls;
mod costs;
mod damaged;
mod disconnects;
mod missing_usage;
mod newer;
mod order;
mod said;
mod ship;
mod texts;
mod traces;
