//! Every call is logged, priced and counted, once.

mod calls;
mod ship;
