//! Every call is logged, priced and counted, once.

mod bodies;
mod calls;
mod ship;
mod traces;
