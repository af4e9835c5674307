//! Every call is logged, priced and counted, once.

mod bodies;
pub mod calls;
mod ship;
mod traces;
