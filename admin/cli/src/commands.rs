//! One file for each command: what it takes and what it does.

pub mod api;
pub mod audit;
pub mod completion;
pub mod connect;
pub mod contexts;
pub mod doctor;
pub mod edit;
pub mod explain;
pub mod import;
pub mod keys;
pub mod login;
pub mod logs;
pub mod period;
pub mod providers;
pub mod resources;
pub mod secret_input;
pub mod tree;
pub mod try_call;
pub mod usage;
pub mod whoami;
