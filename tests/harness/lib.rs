//! What integration tests stand on: a database of their own, the real processes on free ports, a mock provider, and
//! a client.

pub mod database;

pub use database::Database;
