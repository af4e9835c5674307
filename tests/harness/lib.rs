//! What integration tests stand on: a database of their own, the real processes on free ports, a mock provider, and
//! a client. Everything here panics when it fails: a test has nothing better to do.

pub mod aws;
pub mod client;
pub mod database;
pub mod embedder;
pub mod guard;
pub mod issuer;
pub mod node;
pub mod process;
pub mod python;
pub mod sink;
pub mod stack;

pub use client::{Answer, Client};
pub use database::Database;
pub use embedder::embedder_folder;
pub use guard::{AskedGuard, GuardService, Says};
pub use issuer::{Issuer, Serving};
pub use process::Process;
pub use stack::{Replica, Stack, chat, until};
