//! Programs and parts around the gateway: an embedded Postgres for `make run` and `make test`, a mock provider with
//! scripted faults, and the load comparison of `make bench`.

pub mod compare;
pub mod dev;
pub mod mock;
pub mod open_loop;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod prove;
