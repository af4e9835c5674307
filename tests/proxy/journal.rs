//! Every call is logged, priced and counted, once.

mod bodies;
pub mod calls;
mod costs;
mod disconnects;
mod ship;
mod traces;
